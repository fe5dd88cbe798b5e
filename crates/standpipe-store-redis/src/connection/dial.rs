//! Connecting: to a server or a socket, to the master that Sentinel names, or to a node of a
//! cluster; and the login.
//!
//! All of it ends by one deadline. Where several nodes can be asked, none gets the time of those
//! behind it.

use rustls::pki_types::ServerName;

use super::deadline::Deadline;
use super::error::{Failure, is_turned_away};
use super::handshake;
use super::servers::Servers;
use super::socket::Socket;
use super::stream::Stream;
use crate::address::{Node, Route};
use crate::protocol::reply::text;
use crate::protocol::resp::{Reply, cmd};

/// A connection that is logged in.
#[derive(Debug)]
pub(crate) struct Dialled {
    pub(crate) stream: Stream,
    /// The node it leads to, if it has a name.
    pub(crate) node: Option<Node>,
    /// The run id of the server process, 40 characters, blank if the server does not show it.
    pub(crate) run_id: String,
}

/// The time for connecting is divided into at most this many parts.
const MAX_PARTS: usize = 4;

impl Servers {
    /// Connects to `node`, or else to the server of the address or any node of the cluster.
    pub(crate) fn dial(&self, node: Option<&Node>, deadline: Deadline) -> Result<Dialled, Failure> {
        self.dial_any(node, deadline).map_err(|failure| match failure {
            // It has another cause than the end of a connection that was used.
            Failure::Io(error) if handshake::is_closed(&error) => Failure::Closed(error),
            other => other,
        })
    }

    fn dial_any(&self, node: Option<&Node>, deadline: Deadline) -> Result<Dialled, Failure> {
        if let Some(node) = node {
            return self.dial_node(node, deadline);
        }
        match &self.address.route {
            Route::Socket(path) => {
                let socket = Socket::connect_unix(path, deadline)?;
                self.log_in(Stream::plain(socket), None, deadline)
            }
            Route::Server(node) => self.dial_node(node, deadline),
            Route::Cluster(nodes) => {
                self.first_of(nodes, 0, deadline, |node, deadline| self.dial_node(node, deadline))
            }
            Route::Sentinel { sentinels, master } => {
                let ask = |node: &Node, deadline| self.ask_sentinel(node, master, deadline);
                // One part is left for the master itself.
                let found = self.first_of(sentinels, 1, deadline, ask)?;
                self.dial_node(&found, deadline)
            }
        }
    }

    /// Asks one node after the other, those last that did not answer before. Each gets an equal
    /// part of the time, and `more` parts are left.
    fn first_of<T>(
        &self,
        nodes: &[Node],
        more: usize,
        deadline: Deadline,
        ask: impl Fn(&Node, Deadline) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let nodes = self.in_order(nodes);
        let mut last = Failure::from(std::io::Error::from(std::io::ErrorKind::NotConnected));
        for (index, node) in nodes.iter().enumerate() {
            let parts = (nodes.len() - index + more).min(MAX_PARTS);
            match ask(node, deadline.share(parts)) {
                Ok(answer) => return Ok(answer),
                Err(failure) => last = failure,
            }
        }
        Err(last)
    }

    fn dial_node(&self, node: &Node, deadline: Deadline) -> Result<Dialled, Failure> {
        let connected = self
            .open_stream(node, deadline)
            .and_then(|stream| self.log_in(stream, Some(node.clone()), deadline));
        self.record_outcome(node, &connected);
        connected
    }

    fn record_outcome<T>(&self, node: &Node, outcome: &Result<T, Failure>) {
        match outcome {
            Err(Failure::Io(_)) => self.record_answer(node, false),
            _ => self.record_answer(node, true),
        }
    }

    fn open_stream(&self, node: &Node, deadline: Deadline) -> Result<Stream, Failure> {
        let addresses = self.resolver.resolve(&node.host, node.port, deadline)?;
        let socket = Socket::connect_tcp(&addresses, deadline)?;
        if !self.address.encrypted {
            return Ok(Stream::plain(socket));
        }
        let config = self.tls_config().map_err(Failure::Settings)?;
        let name = ServerName::try_from(node.host.clone())
            .map_err(|_| Failure::Settings(NO_TLS_NAME.to_owned()))?;
        Ok(Stream::encrypted(socket, config, name, deadline)?)
    }

    /// Logs in, selects the database and asks for the run id, in one round trip.
    fn log_in(
        &self,
        mut stream: Stream,
        node: Option<Node>,
        deadline: Deadline,
    ) -> Result<Dialled, Failure> {
        let (password, database) = (self.address.password(), self.address.database);
        let mut packed = Vec::new();
        if let Some(password) = password {
            let mut login = cmd("AUTH");
            if let Some(user) = &self.address.user {
                login.arg(user);
            }
            login.arg(password).encode_to(&mut packed);
        }
        if database != 0 {
            cmd("SELECT").arg(u64::from(database)).encode_to(&mut packed);
        }
        cmd("INFO").arg("server").encode_to(&mut packed);
        stream.send(&packed, deadline)?;
        if password.is_some()
            && let Reply::Error(error) = stream.receive(deadline)?
        {
            return Err(Failure::Login(error));
        }
        if database != 0
            && let Reply::Error(error) = stream.receive(deadline)?
        {
            return Err(Failure::Database { error, database });
        }
        // A user without the right to INFO can still use the store: only a change of server goes
        // unnoticed.
        let info = match stream.receive(deadline)? {
            Reply::Error(error) if is_turned_away(&error) => return Err(Failure::Server(error)),
            reply => text(&reply).unwrap_or_default(),
        };
        let run_id = format!("{:40}", info_field(&info, "run_id").unwrap_or_default());
        Ok(Dialled { stream, node, run_id })
    }

    /// Asks a sentinel for the address of the master.
    fn ask_sentinel(&self, node: &Node, name: &str, deadline: Deadline) -> Result<Node, Failure> {
        let asked = self.open_stream(node, deadline).and_then(|mut sentinel| {
            let mut packed = Vec::new();
            let mut query = cmd("SENTINEL");
            query.arg("get-master-addr-by-name").arg(name).encode_to(&mut packed);
            sentinel.send(&packed, deadline)?;
            sentinel.receive(deadline)
        });
        self.record_outcome(node, &asked);
        match asked? {
            Reply::Error(error) => {
                let scheme = if self.address.encrypted { "rediss" } else { "redis" };
                Err(Failure::Sentinel { error, node: node.clone(), scheme })
            }
            Reply::Nil => Err(Failure::Settings(format!(
                "its Sentinel knows no master `{name}`; write one of these names at the end of \
                 the store's URL: redis-cli -h {} -p {} SENTINEL MASTERS",
                node.host, node.port
            ))),
            Reply::Array(parts) => {
                let mut parts = parts.iter().filter_map(text);
                let (host, port) = (parts.next(), parts.next());
                let port = port.and_then(|port| port.parse().ok());
                host.zip(port).map(|(host, port)| Node { host, port }).ok_or(Failure::Malformed)
            }
            _ => Err(Failure::Malformed),
        }
    }
}

const NO_TLS_NAME: &str = "its host is not a name that a certificate can have; write the host as \
                           in the server's certificate";

/// Returns the value of a line `name:value` of an `INFO` reply.
pub(crate) fn info_field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = info.lines().map(str::trim);
    lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
}
