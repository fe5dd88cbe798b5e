//! A connection to the server that has a pool, re-established after it is lost.
//!
//! A call is one round trip and fails after little more than a second. After a failure the next
//! attempt waits for a backoff, and until then every call fails at once. So callers do not queue up
//! behind an unavailable server, and do not rush it when it is available again.
//!
//! Sentinel and Cluster are followed here: a pool lives in one hash slot, so `MOVED` and `ASK` are
//! all it needs, and every connection knows the run id of the server it reaches.
//!
//! Commands sent with [`ServerConnection::send`] get their replies read before the next call's.

pub(crate) mod error;

use std::sync::Arc;
use std::time::{Duration, Instant as Local};

use redis::{
    Client, Cmd, Connection, ConnectionAddr, ConnectionInfo, ErrorKind, IntoConnectionInfo,
    ProtocolVersion, RedisConnectionInfo, RedisError, RedisResult, ServerErrorKind,
    TlsCertificates, Value, cmd,
};
use standpipe_store::StoreError;
use standpipe_store::participant::random_session;

use self::error::{lacks_replicas, script_denied, store_error};
use crate::address::{Address, Node, Route};
use crate::protocol::scripts::Script;

/// Timeout for connecting.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// Timeout for a reply.
pub(crate) const REPLY_TIMEOUT: Duration = Duration::from_secs(1);

/// Stands for the run id of a server that does not show it. A run id has 40 characters.
pub(crate) const UNKNOWN_RUN_ID: &str = "                                        ";

const MIN_BACKOFF: Duration = Duration::from_millis(20);
const MAX_BACKOFF: Duration = Duration::from_millis(500);

/// How many redirects of a cluster a call follows.
const MAX_REDIRECTS: usize = 5;

/// A connection to the server that has a pool.
pub(crate) struct ServerConnection {
    address: Arc<Address>,
    place: String,
    open: Option<OpenConnection>,
    /// The node of a cluster that has the pool, as far as known.
    node: Option<Node>,
    /// The node of a cluster to try first. It changes after a failure: a node that accepts
    /// connections and does not answer must not block the pools of the other nodes.
    first_node: usize,
    backoff: Option<Backoff>,
    /// How many connections were made.
    generation: u64,
}

struct OpenConnection {
    connection: Connection,
    /// The run id of the server process, or [`UNKNOWN_RUN_ID`].
    run_id: String,
    /// Replies to sent commands that were not read yet.
    unread_replies: usize,
}

/// Calls fail with `error` until `retry_at`.
struct Backoff {
    error: StoreError,
    retry_at: Local,
    delay: Duration,
}

/// Why a call failed.
enum CallError {
    /// The server returned an error; the connection is usable.
    Server(RedisError),
    /// The connection failed.
    Io(RedisError),
    /// The call was not sent, or its reply must not be used.
    Store(StoreError),
}

impl ServerConnection {
    pub(crate) fn new(address: Arc<Address>) -> Self {
        let place = address.to_string();
        Self { address, place, open: None, node: None, first_node: 0, backoff: None, generation: 0 }
    }

    /// Returns how many connections were made. The number changes with every reconnect.
    pub(crate) const fn generation(&self) -> u64 {
        self.generation
    }

    /// Runs a script by its hash, and sends its source if the server does not have it.
    ///
    /// With `replicas` above 0 it also waits until that many replicas have the write.
    pub(crate) fn run_script(
        &mut self,
        script: &Script,
        arguments: impl Fn(&mut Cmd),
        replicas: u32,
    ) -> Result<Value, StoreError> {
        self.run_script_with_run_id(script, |command, _| arguments(command), replicas)
    }

    /// Like [`Self::run_script`], and passes the run id of the server to `arguments`, or
    /// [`UNKNOWN_RUN_ID`]. A cluster may redirect the call, so the arguments are built for each
    /// attempt.
    pub(crate) fn run_script_with_run_id(
        &mut self,
        script: &Script,
        arguments: impl Fn(&mut Cmd, &str),
        replicas: u32,
    ) -> Result<Value, StoreError> {
        let by_hash = |run_id: &str| script_command("EVALSHA", &script.hash, &arguments, run_id);
        let mut result = self.try_call(by_hash, replicas);
        if let Err(CallError::Server(error)) = &result
            && is(error, ServerErrorKind::NoScript)
        {
            let by_source =
                |run_id: &str| script_command("EVAL", script.source, &arguments, run_id);
            result = self.try_call(by_source, replicas);
        }
        if let Err(CallError::Server(error)) = &result
            && let Some(denied) = script_denied(error, script.source, &self.place)
        {
            return Err(denied);
        }
        self.finish(result)
    }

    /// Sends a command and waits for its reply.
    pub(crate) fn call(&mut self, command: &Cmd) -> Result<Value, StoreError> {
        let result = self.try_call(|_| command.clone(), 0);
        self.finish(result)
    }

    /// Sends a command if a connection is open. Its reply is read and dropped by the next call.
    pub(crate) fn send(&mut self, command: &Cmd) {
        let Some(open) = &mut self.open else { return };
        match open.connection.send_packed_command(&command.get_packed_command()) {
            Ok(()) => open.unread_replies += 1,
            Err(_) => self.open = None,
        }
    }

    /// Ends the backoff after a success, and begins or extends it after a failure that another
    /// connection may not have.
    fn finish(&mut self, result: Result<Value, CallError>) -> Result<Value, StoreError> {
        let error = match result {
            Ok(value) => {
                self.backoff = None;
                return Ok(value);
            }
            Err(error) => error,
        };
        Err(match error {
            CallError::Server(error) => {
                let store_error = store_error(&error, &self.place);
                // Another server may be the master by now: connect anew.
                let demoted = [ServerErrorKind::ReadOnly, ServerErrorKind::MasterDown];
                if demoted.iter().any(|kind| is(&error, *kind)) || lacks_replicas(&error) {
                    (self.open, self.node) = (None, None);
                    return Err(self.back_off(store_error));
                }
                store_error
            }
            CallError::Io(error) => {
                (self.open, self.node) = (None, None);
                self.back_off(store_error(&error, &self.place))
            }
            CallError::Store(error) => error,
        })
    }

    /// Doubles the backoff, with jitter so that processes do not reconnect at the same moment.
    fn back_off(&mut self, error: StoreError) -> StoreError {
        let before = self.backoff.as_ref().map(|backoff| backoff.delay);
        let delay = before.map_or(MIN_BACKOFF, |delay| (delay * 2).min(MAX_BACKOFF));
        let jitter = u32::try_from(random_session() % 64).unwrap_or_default();
        let retry_at = Local::now() + delay / 2 + delay * jitter / 128;
        self.backoff = Some(Backoff { error: error.clone(), retry_at, delay });
        error
    }

    /// Makes a call and follows redirects of a cluster.
    fn try_call(&mut self, call: impl Fn(&str) -> Cmd, replicas: u32) -> Result<Value, CallError> {
        let mut asking = false;
        for _ in 0..MAX_REDIRECTS {
            let value = self.call_once(&call, replicas, asking)?;
            let Value::ServerError(error) = value else { return Ok(value) };
            let error = RedisError::from(error);
            let moved = is(&error, ServerErrorKind::Moved);
            asking = is(&error, ServerErrorKind::Ask);
            let target = error.redirect_node().filter(|_| moved || asking);
            let Some((node, _)) = target else { return Err(CallError::Server(error)) };
            self.node = Some(self.redirect_target(node));
            self.open = None;
        }
        Err(CallError::Server((ErrorKind::Client, "the cluster redirects in a circle").into()))
    }

    /// Parses the node of a redirect. An empty host stands for the node that answered; the first
    /// node to try is taken for it.
    fn redirect_target(&self, text: &str) -> Node {
        let (host, port) = text.rsplit_once(':').unwrap_or((text, ""));
        let host = match host.is_empty() {
            true => self.nodes().first().map(|node| node.host.clone()).unwrap_or_default(),
            false => host.trim_matches(['[', ']']).to_owned(),
        };
        Node { host, port: port.parse().unwrap_or_default() }
    }

    fn call_once(
        &mut self,
        call: &impl Fn(&str) -> Cmd,
        replicas: u32,
        asking: bool,
    ) -> Result<Value, CallError> {
        let open = self.open_or_connect().map_err(CallError::Store)?;
        let command = call(&open.run_id);
        let (value, copies) = open.exchange(&command, replicas, asking).map_err(CallError::Io)?;
        let succeeded = matches!(value, Value::Array(_) | Value::BulkString(_));
        if copies < i64::from(replicas) && succeeded {
            return Err(CallError::Store(StoreError::transient(format!(
                "{copies} of {replicas} replicas of {} have the last entry; check that they run, \
                 or lower `wait_replicas` in [store]",
                self.place
            ))));
        }
        Ok(value)
    }

    fn open_or_connect(&mut self) -> Result<&mut OpenConnection, StoreError> {
        if self.open.is_none() {
            let waiting = self.backoff.as_ref().filter(|backoff| Local::now() < backoff.retry_at);
            if let Some(backoff) = waiting {
                return Err(backoff.error.clone().unsent());
            }
            match self.connect() {
                Ok(open) => {
                    self.generation += 1;
                    self.open = Some(open);
                }
                Err(error) => {
                    self.try_next_node();
                    let place = match self.node.take() {
                        Some(node) => format!("the node {node} of {}", self.place),
                        None => self.place.clone(),
                    };
                    return Err(self.back_off(store_error(&error, &place)).unsent());
                }
            }
        }
        let unavailable = || StoreError::transient(format!("{} is unavailable", self.place));
        self.open.as_mut().ok_or_else(unavailable)
    }

    fn connect(&self) -> RedisResult<OpenConnection> {
        let mut connection = self.dial()?;
        connection.set_read_timeout(Some(REPLY_TIMEOUT))?;
        connection.set_write_timeout(Some(REPLY_TIMEOUT))?;
        // A user without the right to INFO can still use the store: only a change of server goes
        // unnoticed.
        let info: RedisResult<String> = cmd("INFO").arg("server").query(&mut connection);
        if let Err(error) = &info
            && (error.is_io_error() || error.is_timeout())
        {
            return Err(error.clone());
        }
        let run_id = info.ok().and_then(|info| info_field(&info, "run_id").map(str::to_owned));
        let run_id = format!("{:40}", run_id.unwrap_or_default());
        Ok(OpenConnection { connection, run_id, unread_replies: 0 })
    }

    /// Connects to the server that has the pool, or to a node of its cluster.
    pub(crate) fn dial(&self) -> RedisResult<Connection> {
        match &self.address.route {
            Route::Socket(path) => self.dial_address(ConnectionAddr::Unix(path.clone())),
            Route::Sentinel { sentinels, master } => {
                self.dial_node(&self.find_master(sentinels, master)?)
            }
            Route::Server(_) | Route::Cluster(_) => {
                if let Some(node) = &self.node {
                    return self.dial_node(node);
                }
                let mut last = not_connected();
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

    /// Makes the next connection try another node of a cluster first.
    pub(crate) const fn try_next_node(&mut self) {
        self.first_node = self.first_node.wrapping_add(1);
    }

    fn nodes(&self) -> Vec<Node> {
        match &self.address.route {
            Route::Server(node) => vec![node.clone()],
            Route::Cluster(nodes) => {
                let mut nodes = nodes.clone();
                let first = self.first_node % nodes.len().max(1);
                nodes.rotate_left(first);
                nodes
            }
            Route::Sentinel { sentinels, .. } => sentinels.clone(),
            Route::Socket(_) => Vec::new(),
        }
    }

    /// Asks the sentinels, one after the other, for the address of the master.
    fn find_master(&self, sentinels: &[Node], name: &str) -> RedisResult<Node> {
        let mut last = not_connected();
        for node in sentinels {
            let answer = self.tcp(node).into_connection_info().and_then(|info| {
                let client = self.client(info)?;
                let mut sentinel = client.get_connection_with_timeout(CONNECT_TIMEOUT / 2)?;
                sentinel.set_read_timeout(Some(REPLY_TIMEOUT / 2))?;
                let query = cmd("SENTINEL").arg("get-master-addr-by-name").arg(name).to_owned();
                query.query::<Option<(String, u16)>>(&mut sentinel)
            });
            match answer {
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
        self.dial_address(self.tcp(node))
    }

    fn dial_address(&self, address: ConnectionAddr) -> RedisResult<Connection> {
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
        self.client(info)?.get_connection_with_timeout(CONNECT_TIMEOUT)
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

impl OpenConnection {
    /// Sends a command and returns its reply and the number of replicas that have its write.
    /// `WAIT` goes with the command in the same round trip.
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
            let millis = u64::try_from(REPLY_TIMEOUT.as_millis() / 2).unwrap_or_default();
            packed.extend(cmd("WAIT").arg(replicas).arg(millis).get_packed_command());
        }
        self.connection.send_packed_command(&packed)?;
        for _ in 0..std::mem::take(&mut self.unread_replies) + usize::from(asking) {
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

fn script_command(
    name: &str,
    script: &str,
    arguments: &impl Fn(&mut Cmd, &str),
    run_id: &str,
) -> Cmd {
    let mut command = cmd(name);
    command.arg(script);
    arguments(&mut command, run_id);
    command
}

fn is(error: &RedisError, kind: ServerErrorKind) -> bool {
    error.kind() == ErrorKind::Server(kind)
}

fn not_connected() -> RedisError {
    std::io::Error::from(std::io::ErrorKind::NotConnected).into()
}

/// Returns the value of a line `name:value` of an `INFO` reply.
pub(crate) fn info_field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = info.lines().map(str::trim);
    lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
}
