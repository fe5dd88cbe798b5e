//! One connection to the server that has a pool, found again after it is lost.
//!
//! A call takes one round trip and at most a little over a second. After a failure the next attempt
//! waits a while, longer each time, and until then every call fails at once: so a crowd of callers
//! does not queue up behind a server that is away, and does not rush it when it is back.
//!
//! Wake-ups are sent without waiting for their answers, which are read before the next call's.

use std::sync::Arc;
use std::time::{Duration, Instant as Local};

use redis::{
    Client, Cmd, Connection, ConnectionAddr, ConnectionInfo, ErrorKind, IntoConnectionInfo,
    ProtocolVersion, RedisConnectionInfo, RedisError, RedisResult, ServerErrorKind,
    TlsCertificates, Value, cmd,
};
use standpipe_store::StoreError;
use standpipe_store::member::random_session;

use crate::address::{Address, Node, Route};
use crate::error::{not_allowed, told};
use crate::scripts::Script;

/// How long a connection may take to be made, and a call to be answered.
pub(crate) const CONNECT: Duration = Duration::from_secs(1);
pub(crate) const ANSWER: Duration = Duration::from_secs(1);

/// How long to wait before the next attempt, at first and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LAST_PAUSE: Duration = Duration::from_millis(500);

/// How often a call follows a cluster that says the pool is elsewhere.
const HOPS: usize = 5;

/// One connection to the server that has a pool.
pub(crate) struct Link {
    address: Arc<Address>,
    place: String,
    open: Option<Open>,
    /// The node of a cluster that has the pool, as far as is known.
    node: Option<Node>,
    down: Option<Down>,
    /// How often a connection was made.
    opened: u64,
}

struct Open {
    connection: Connection,
    /// Which server process it is.
    server: String,
    /// Answers to wake-ups that were not read yet.
    owed: usize,
}

/// It failed lately.
struct Down {
    error: StoreError,
    retry_at: Local,
    pause: Duration,
}

/// Why a call did not come to an answer.
enum Failed {
    /// The server said no; the connection is fine.
    Said(RedisError),
    /// The connection is not.
    Lost(RedisError),
    /// It was not asked, or its answer does not count.
    Away(StoreError),
}

impl Link {
    pub(crate) fn new(address: Arc<Address>) -> Self {
        let place = address.to_string();
        Self { address, place, open: None, node: None, down: None, opened: 0 }
    }

    /// Which server process it speaks to, or would: nothing if it cannot tell.
    pub(crate) fn server(&mut self) -> Result<String, StoreError> {
        self.opened().map(|open| open.server.clone())
    }

    /// How often a connection was made: another number, another connection.
    pub(crate) const fn generation(&self) -> u64 {
        self.opened
    }

    /// Runs a script of ours; one that the server does not have is sent to it.
    pub(crate) fn run(
        &mut self,
        script: &Script,
        arguments: impl Fn(&mut Cmd),
        replicas: u32,
    ) -> Result<Value, StoreError> {
        let by_hash = made("EVALSHA", &script.hash, &arguments);
        match self.try_call(&by_hash, replicas) {
            Err(Failed::Said(error)) if is(&error, ServerErrorKind::NoScript) => {
                let whole = made("EVAL", script.source, &arguments);
                let called = self.try_call(&whole, replicas);
                self.ran(script, called)
            }
            called => self.ran(script, called),
        }
    }

    fn ran(&mut self, script: &Script, called: Result<Value, Failed>) -> Result<Value, StoreError> {
        if let Err(Failed::Said(error)) = &called
            && let Some(told) = not_allowed(error, script.source, &self.place)
        {
            return Err(told);
        }
        self.finish(|_| called)
    }

    /// Sends a command and waits for its answer.
    pub(crate) fn call(&mut self, command: &Cmd) -> Result<Value, StoreError> {
        self.finish(|link| link.try_call(command, 0))
    }

    /// Sends a command if there is a connection, and does not wait for its answer.
    pub(crate) fn send(&mut self, command: &Cmd) {
        let Some(open) = &mut self.open else { return };
        match open.connection.send_packed_command(&command.get_packed_command()) {
            Ok(()) => open.owed += 1,
            Err(_) => self.open = None,
        }
    }

    fn finish(
        &mut self,
        call: impl FnOnce(&mut Self) -> Result<Value, Failed>,
    ) -> Result<Value, StoreError> {
        match call(self) {
            Ok(value) => Ok(self.answered(value)),
            Err(failed) => Err(self.failed(failed)),
        }
    }

    fn answered(&mut self, value: Value) -> Value {
        self.down = None;
        value
    }

    fn failed(&mut self, failed: Failed) -> StoreError {
        match failed {
            Failed::Said(error) => {
                let told = told(&error, &self.place);
                // Somebody else may be the master by now.
                if is(&error, ServerErrorKind::ReadOnly) || is(&error, ServerErrorKind::MasterDown)
                {
                    (self.open, self.node) = (None, None);
                    return self.goes_down(told);
                }
                told
            }
            Failed::Lost(error) => {
                (self.open, self.node) = (None, None);
                self.goes_down(told(&error, &self.place))
            }
            Failed::Away(error) => error,
        }
    }

    fn goes_down(&mut self, error: StoreError) -> StoreError {
        let before = self.down.as_ref().map(|down| down.pause);
        let pause = before.map_or(FIRST_PAUSE, |pause| (pause * 2).min(LAST_PAUSE));
        // Not all at the same moment.
        let part = u32::try_from(random_session() % 64).unwrap_or_default();
        let retry_at = Local::now() + pause / 2 + pause * part / 128;
        self.down = Some(Down { error: error.clone(), retry_at, pause });
        error
    }

    fn try_call(&mut self, command: &Cmd, replicas: u32) -> Result<Value, Failed> {
        let mut asking = false;
        for _ in 0..HOPS {
            let value = self.once(command, replicas, asking)?;
            let Value::ServerError(said) = value else { return Ok(value) };
            let error = RedisError::from(said);
            let moved = is(&error, ServerErrorKind::Moved);
            asking = is(&error, ServerErrorKind::Ask);
            let elsewhere = error.redirect_node().filter(|_| moved || asking);
            let Some((node, _)) = elsewhere else { return Err(Failed::Said(error)) };
            self.node = Some(self.redirected(node));
            self.open = None;
        }
        Err(Failed::Said((ErrorKind::Client, "the cluster sends this call around").into()))
    }

    /// A node as a cluster names it; without a host it is the one that answered.
    fn redirected(&self, text: &str) -> Node {
        let (host, port) = text.rsplit_once(':').unwrap_or((text, ""));
        let host = match host.is_empty() {
            true => self.nodes().first().map(|node| node.host.clone()).unwrap_or_default(),
            false => host.trim_matches(['[', ']']).to_owned(),
        };
        Node { host, port: port.parse().unwrap_or_default() }
    }

    fn once(&mut self, command: &Cmd, replicas: u32, asking: bool) -> Result<Value, Failed> {
        let open = self.opened().map_err(Failed::Away)?;
        let (value, copies) = open.exchange(command, replicas, asking).map_err(Failed::Lost)?;
        if copies < i64::from(replicas) && matches!(value, Value::Array(_)) {
            return Err(Failed::Away(StoreError::transient(format!(
                "{copies} of {replicas} replicas of {} have the last entry; see that they run, or \
                 lower `wait_replicas` in [store]",
                self.place
            ))));
        }
        Ok(value)
    }

    /// The connection, made if there is none.
    fn opened(&mut self) -> Result<&mut Open, StoreError> {
        if self.open.is_none() {
            if let Some(down) = self.down.as_ref().filter(|down| Local::now() < down.retry_at) {
                return Err(down.error.clone().unsent());
            }
            match self.connect() {
                Ok(open) => {
                    self.opened += 1;
                    self.open = Some(open);
                }
                Err(error) => {
                    let told = match self.node.take() {
                        Some(node) => told(&error, &format!("the node {node} of {}", self.place)),
                        None => told(&error, &self.place),
                    };
                    return Err(self.goes_down(told).unsent());
                }
            }
        }
        self.open.as_mut().ok_or_else(|| StoreError::transient(format!("{} is away", self.place)))
    }

    fn connect(&self) -> RedisResult<Open> {
        let mut connection = self.connection()?;
        connection.set_read_timeout(Some(ANSWER))?;
        connection.set_write_timeout(Some(ANSWER))?;
        // A user who may not ask loses a warning, not the service.
        let info: RedisResult<String> = cmd("INFO").arg("server").query(&mut connection);
        if let Err(error) = &info
            && (error.is_io_error() || error.is_timeout())
        {
            return Err(error.clone());
        }
        let server = info.ok().and_then(|info| field(&info, "run_id").map(str::to_owned));
        Ok(Open { connection, server: server.unwrap_or_default(), owed: 0 })
    }

    /// A connection to whoever has the pool, or may know who has.
    pub(crate) fn connection(&self) -> RedisResult<Connection> {
        match &self.address.route {
            Route::Socket(path) => self.dial(ConnectionAddr::Unix(path.clone())),
            Route::Sentinel { sentinels, master } => {
                self.dial_node(&self.master(sentinels, master)?)
            }
            Route::Server(_) | Route::Cluster(_) => {
                if let Some(node) = &self.node {
                    return self.dial_node(node);
                }
                let mut last = unreachable();
                for node in self.nodes() {
                    match self.dial_node(&node) {
                        Ok(connection) => return Ok(connection),
                        Err(error) => last = error,
                    }
                }
                Err(last)
            }
        }
    }

    fn nodes(&self) -> Vec<Node> {
        match &self.address.route {
            Route::Server(node) => vec![node.clone()],
            Route::Cluster(nodes) => nodes.clone(),
            Route::Sentinel { sentinels, .. } => sentinels.clone(),
            Route::Socket(_) => Vec::new(),
        }
    }

    /// Asks the sentinels, one after the other, who the master is.
    fn master(&self, sentinels: &[Node], name: &str) -> RedisResult<Node> {
        let mut last = unreachable();
        for node in sentinels {
            let asked = self.tcp(node).into_connection_info().and_then(|info| {
                let mut sentinel = self.client(info)?.get_connection_with_timeout(CONNECT / 2)?;
                sentinel.set_read_timeout(Some(ANSWER / 2))?;
                let ask = cmd("SENTINEL").arg("get-master-addr-by-name").arg(name).to_owned();
                ask.query::<Option<(String, u16)>>(&mut sentinel)
            });
            match asked {
                Ok(Some((host, port))) => return Ok(Node { host, port }),
                Ok(None) => {
                    let what = "the sentinels know no master of this name";
                    last = (ErrorKind::InvalidClientConfig, what, what.to_owned()).into();
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn dial_node(&self, node: &Node) -> RedisResult<Connection> {
        self.dial(self.tcp(node))
    }

    fn dial(&self, address: ConnectionAddr) -> RedisResult<Connection> {
        let mut login = RedisConnectionInfo::default()
            .set_protocol(ProtocolVersion::RESP2)
            .set_skip_set_lib_name()
            .set_db(self.address.database);
        if let Some(user) = &self.address.user {
            login = login.set_username(user);
        }
        if let Some(password) = self.address.password() {
            login = login.set_password(password);
        }
        let info = address.into_connection_info()?.set_redis_settings(login);
        self.client(info)?.get_connection_with_timeout(CONNECT)
    }

    fn client(&self, info: ConnectionInfo) -> RedisResult<Client> {
        if !self.address.encrypted {
            return Client::open(info);
        }
        let root_cert = self.address.authority.clone();
        Client::build_with_tls(info, TlsCertificates { client_tls: None, root_cert })
    }

    fn tcp(&self, node: &Node) -> ConnectionAddr {
        let Node { host, port } = node.clone();
        match self.address.encrypted {
            true => ConnectionAddr::TcpTls { host, port, insecure: false, tls_params: None },
            false => ConnectionAddr::Tcp(host, port),
        }
    }
}

impl Open {
    /// Sends a command and waits for its answer, and for so many replicas to have what it wrote.
    fn exchange(
        &mut self,
        command: &Cmd,
        replicas: u32,
        asking: bool,
    ) -> RedisResult<(Value, i64)> {
        let mut packed = Vec::new();
        if asking {
            packed.extend(cmd("ASKING").get_packed_command());
        }
        packed.extend(command.get_packed_command());
        if replicas > 0 {
            let millis = u64::try_from(ANSWER.as_millis() / 2).unwrap_or_default();
            packed.extend(cmd("WAIT").arg(replicas).arg(millis).get_packed_command());
        }
        self.connection.send_packed_command(&packed)?;
        for _ in 0..std::mem::take(&mut self.owed) + usize::from(asking) {
            self.connection.recv_response()?;
        }
        let value = self.connection.recv_response()?;
        let copies = match replicas {
            0 => Value::Int(0),
            _ => self.connection.recv_response()?,
        };
        Ok((value, if let Value::Int(copies) = copies { copies } else { 0 }))
    }
}

fn made(how: &str, script: &str, arguments: &impl Fn(&mut Cmd)) -> Cmd {
    let mut command = cmd(how);
    command.arg(script);
    arguments(&mut command);
    command
}

fn is(error: &RedisError, kind: ServerErrorKind) -> bool {
    error.kind() == ErrorKind::Server(kind)
}

fn unreachable() -> RedisError {
    std::io::Error::from(std::io::ErrorKind::NotConnected).into()
}

/// A line `name:value` of what a server tells about itself.
pub(crate) fn field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = info.lines().map(str::trim);
    lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
}
