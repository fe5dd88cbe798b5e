//! A connection to the server that has a pool, re-established after it is lost.
//!
//! A call is one round trip. It ends by its caller's deadline, and a second for connecting and a
//! second for the reply are the most it takes. After a failure the next attempt waits for a
//! backoff, and until then every call fails at once. So callers do not queue up behind an
//! unavailable server, and do not rush it when it is available again.
//!
//! Sentinel and Cluster are followed here: a pool lives in one hash slot, so `MOVED` and `ASK` are
//! all it needs, and every connection knows the run id of the server it reaches.
//!
//! Commands sent with [`ServerConnection::send`] get their replies read before the next call's. So
//! do replies that came after their caller's deadline: a caller in a hurry does not cost the others
//! their connection.
//!
//! Read next: `dial` for connecting, `stream` for bytes, `socket` for deadlines, `servers` for what
//! connections share.

pub(crate) mod deadline;
pub(crate) mod dial;
pub(crate) mod error;
mod handshake;
mod resolve;
pub(crate) mod servers;
mod socket;
mod stream;
mod tls;

use std::sync::Arc;
use std::time::{Duration, Instant as Local};

use standpipe_store::StoreError;
use standpipe_store::participant::random_session;

use self::deadline::Deadline;
use self::dial::Dialled;
use self::error::{Failure, may_be_demoted, script_denied, server_error};
use self::servers::Servers;
use crate::address::{Node, Route};
use crate::protocol::resp::{Command, Reply, ServerError, cmd};
use crate::protocol::scripts::Script;

/// The most that connecting takes, with login and discovery.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// The most that a reply takes.
pub(crate) const REPLY_TIMEOUT: Duration = Duration::from_secs(1);
/// The most that a step takes, however many calls it makes.
pub(crate) const STEP_TIMEOUT: Duration = Duration::from_secs(2);

/// Stands for the run id of a server that does not show it. A run id has 40 characters.
pub(crate) const UNKNOWN_RUN_ID: &str = "                                        ";

const MIN_BACKOFF: Duration = Duration::from_millis(20);
const MAX_BACKOFF: Duration = Duration::from_millis(500);

/// How many redirects of a cluster a call follows.
const MAX_REDIRECTS: usize = 5;

/// A connection to the server that has a pool.
pub(crate) struct ServerConnection {
    servers: Arc<Servers>,
    open: Option<OpenConnection>,
    /// The node of a cluster that has the pool, as far as known.
    node: Option<Node>,
    backoff: Option<Backoff>,
    /// How many connections were made.
    generation: u64,
    /// The bytes of a call, kept for the next one.
    packed: Vec<u8>,
}

struct OpenConnection {
    dialled: Dialled,
    /// Replies that were not read yet: of sent commands, and of calls whose deadline passed.
    unread_replies: usize,
    /// Since when a caller has been waiting without any reply.
    silent_since: Option<Local>,
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
    Server(ServerError),
    /// The connection failed.
    Connection(Failure),
    /// The call was not sent, or its reply must not be used.
    Store(StoreError),
}

impl ServerConnection {
    pub(crate) const fn new(servers: Arc<Servers>) -> Self {
        let packed = Vec::new();
        Self { servers, open: None, node: None, backoff: None, generation: 0, packed }
    }

    /// Returns how many connections were made. The number changes with every reconnect.
    pub(crate) const fn generation(&self) -> u64 {
        self.generation
    }

    /// Runs a script by its hash, and sends its source if the server does not have it.
    ///
    /// With `replicas` above 0 it also waits until that many replicas have the write.
    ///
    /// `arguments` gets the run id of the server, or [`UNKNOWN_RUN_ID`]. A cluster may redirect the
    /// call, so the arguments are built for each attempt.
    pub(crate) fn run_script(
        &mut self,
        script: &Script,
        arguments: impl Fn(&mut Command, &str),
        replicas: u32,
        deadline: Deadline,
    ) -> Result<Reply, StoreError> {
        let by_hash = |run_id: &str| script_command("EVALSHA", &script.hash, &arguments, run_id);
        let mut result = self.try_call(by_hash, replicas, deadline);
        if let Err(CallError::Server(error)) = &result
            && error.code() == "NOSCRIPT"
        {
            let by_source =
                |run_id: &str| script_command("EVAL", script.source, &arguments, run_id);
            result = self.try_call(by_source, replicas, deadline);
        }
        if let Err(CallError::Server(error)) = &result
            && let Some(denied) = script_denied(error, script.source, &self.servers.place)
        {
            return Err(denied);
        }
        self.finish(result)
    }

    /// Sends a command and waits for its reply.
    pub(crate) fn call(
        &mut self,
        command: &Command,
        deadline: Deadline,
    ) -> Result<Reply, StoreError> {
        let result = self.try_call(|_| command.clone(), 0, deadline);
        self.finish(result)
    }

    /// Sends commands if a connection is open. Their replies are read and dropped by the next call.
    pub(crate) fn send(&mut self, commands: &[Command]) {
        let Some(open) = &mut self.open else { return };
        self.packed.clear();
        commands.iter().for_each(|command| command.encode_to(&mut self.packed));
        match open.dialled.stream.send(&self.packed, Deadline::within(REPLY_TIMEOUT)) {
            Ok(()) => open.unread_replies += commands.len(),
            Err(_) => self.open = None,
        }
    }

    /// Ends the backoff after a success, and begins or extends it after a failure that another
    /// connection may not have.
    fn finish(&mut self, result: Result<Reply, CallError>) -> Result<Reply, StoreError> {
        let error = match result {
            Ok(value) => {
                self.backoff = None;
                return Ok(value);
            }
            Err(error) => error,
        };
        Err(match error {
            CallError::Server(error) => {
                let store_error = server_error(&error, &self.servers.place);
                if may_be_demoted(&error) {
                    (self.open, self.node) = (None, None);
                    return Err(self.back_off(store_error));
                }
                store_error
            }
            CallError::Connection(failure) => {
                if let Some(node) = self.open.take().and_then(|open| open.dialled.node)
                    && failure.is_timeout()
                {
                    self.servers.record_answer(&node, false);
                }
                self.node = None;
                self.back_off(failure.to_store_error(&self.servers.place))
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
    fn try_call(
        &mut self,
        call: impl Fn(&str) -> Command,
        replicas: u32,
        deadline: Deadline,
    ) -> Result<Reply, CallError> {
        let mut asking = false;
        for _ in 0..MAX_REDIRECTS {
            let reply = self.call_once(&call, replicas, asking, deadline)?;
            let Reply::Error(error) = reply else { return Ok(reply) };
            let moved = error.code() == "MOVED";
            asking = error.code() == "ASK";
            let target = error.detail().split(' ').nth(1).filter(|_| moved || asking);
            let Some(target) = target else { return Err(CallError::Server(error)) };
            let node = self.redirect_target(target);
            self.servers.add_redirect_target(&node);
            self.node = Some(node);
            self.open = None;
        }
        let circle = format!("{} redirects in a circle", self.servers.place);
        Err(CallError::Store(StoreError::transient(circle)))
    }

    /// Parses the node of a redirect. An empty host stands for the node that answered; the first
    /// node of the URL is taken for it if that has no name.
    fn redirect_target(&self, text: &str) -> Node {
        let (host, port) = text.rsplit_once(':').unwrap_or((text, ""));
        let host = match host.is_empty() {
            true => self.answering_host().unwrap_or_default(),
            false => host.trim_matches(['[', ']']).to_owned(),
        };
        Node { host, port: port.parse().unwrap_or_default() }
    }

    fn answering_host(&self) -> Option<String> {
        let node = self.open.as_ref().and_then(|open| open.dialled.node.as_ref());
        let first = match &self.servers.address.route {
            Route::Cluster(nodes) => nodes.first(),
            Route::Server(node) => Some(node),
            Route::Socket(_) | Route::Sentinel { .. } => None,
        };
        node.or(first).map(|node| node.host.clone())
    }

    fn call_once(
        &mut self,
        call: &impl Fn(&str) -> Command,
        replicas: u32,
        asking: bool,
        deadline: Deadline,
    ) -> Result<Reply, CallError> {
        if deadline.remaining().is_none() {
            return Err(CallError::Store(self.not_in_time().unsent()));
        }
        let mut packed = std::mem::take(&mut self.packed);
        let open = self.open_or_connect(deadline).map_err(CallError::Store)?;
        packed.clear();
        if asking {
            cmd("ASKING").encode_to(&mut packed);
        }
        call(&open.dialled.run_id).encode_to(&mut packed);
        let begun = Local::now();
        let deadline = deadline.or_within(REPLY_TIMEOUT);
        if replicas > 0 {
            // The reply must arrive before the deadline, also if replicas are missing.
            let wait = deadline.remaining().unwrap_or_default() / 2;
            let millis = u64::try_from(wait.as_millis()).unwrap_or_default().max(1);
            cmd("WAIT").arg(replicas).arg(millis).encode_to(&mut packed);
        }
        let exchanged = open.exchange(&packed, replicas > 0, asking, begun, deadline);
        let is_late = exchanged.as_ref().is_err_and(|failure| open.is_only_late(failure));
        self.packed = packed;
        if is_late {
            return Err(CallError::Store(self.not_in_time()));
        }
        let (reply, copies) = exchanged.map_err(CallError::Connection)?;
        let succeeded = matches!(reply, Reply::Array(_) | Reply::Bulk(_));
        if copies < i64::from(replicas) && succeeded {
            return Err(CallError::Store(StoreError::transient(format!(
                "{copies} of {replicas} replicas of {} have the last entry; check that they run, \
                 or lower `wait_replicas` in [store]",
                self.servers.place
            ))));
        }
        Ok(reply)
    }

    /// The error of a call whose deadline passed.
    fn not_in_time(&self) -> StoreError {
        Failure::from(socket::timed_out()).to_store_error(&self.servers.place)
    }

    fn open_or_connect(&mut self, deadline: Deadline) -> Result<&mut OpenConnection, StoreError> {
        if self.open.is_none() {
            let waiting = self.backoff.as_ref().filter(|backoff| Local::now() < backoff.retry_at);
            if let Some(backoff) = waiting {
                return Err(backoff.error.clone().unsent());
            }
            let own = Deadline::within(CONNECT_TIMEOUT);
            let sooner = own.or_sooner(Some(deadline.at()));
            match self.servers.dial(self.node.as_ref(), sooner) {
                Ok(dialled) => {
                    self.generation += 1;
                    self.open =
                        Some(OpenConnection { dialled, unread_replies: 0, silent_since: None });
                }
                // Only the caller was in a hurry: the next one may try at once.
                Err(failure) if failure.is_timeout() && sooner != own => {
                    self.node = None;
                    return Err(failure.to_store_error(&self.servers.place).unsent());
                }
                Err(failure) => {
                    let place = match self.node.take() {
                        Some(node) => format!("the node {node} of {}", self.servers.place),
                        None => self.servers.place.clone(),
                    };
                    return Err(self.back_off(failure.to_store_error(&place)).unsent());
                }
            }
        }
        let place = &self.servers.place;
        let unavailable = || StoreError::transient(format!("{place} is unavailable"));
        self.open.as_mut().ok_or_else(unavailable)
    }
}

impl OpenConnection {
    /// Sends a call and returns its reply and the number of replicas that have its write. `ASKING`
    /// goes before it and `WAIT` behind it, in the same round trip.
    fn exchange(
        &mut self,
        packed: &[u8],
        waits: bool,
        asking: bool,
        begun: Local,
        deadline: Deadline,
    ) -> Result<(Reply, i64), Failure> {
        // A part of the call may have been sent: nothing can follow it.
        self.dialled.stream.send(packed, deadline).inspect_err(|_| self.silent_since = None)?;
        self.silent_since = self.silent_since.or(Some(begun));
        let own = 1 + usize::from(waits);
        self.unread_replies += own + usize::from(asking);
        while self.unread_replies > own {
            self.receive(deadline)?;
        }
        let reply = self.receive(deadline)?;
        let copies = if waits { self.receive(deadline)? } else { Reply::Int(0) };
        self.silent_since = None;
        Ok((reply, if let Reply::Int(copies) = copies { copies } else { 0 }))
    }

    fn receive(&mut self, deadline: Deadline) -> Result<Reply, Failure> {
        let reply = self.dialled.stream.receive(deadline)?;
        self.unread_replies -= 1;
        self.silent_since = Some(Local::now());
        Ok(reply)
    }

    /// Whether a failure only means that its caller was in a hurry: the server was not silent for
    /// long enough to give it up.
    fn is_only_late(&self, failure: &Failure) -> bool {
        let waiting = self.silent_since.is_some_and(|since| since.elapsed() < REPLY_TIMEOUT);
        failure.is_timeout() && waiting
    }
}

fn script_command(
    name: &str,
    script: &str,
    arguments: &impl Fn(&mut Command, &str),
    run_id: &str,
) -> Command {
    let mut command = cmd(name);
    command.arg(script);
    arguments(&mut command, run_id);
    command
}
