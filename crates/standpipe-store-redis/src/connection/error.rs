//! Maps failures of a connection and errors of the server to [`StoreError`]: whether a retry can
//! help, and what to do.
//!
//! No message contains a password: no text of the server is shown where it could repeat one.

use std::io::{Error, ErrorKind};

use standpipe_store::{StoreError, plain_io};

use super::handshake;
use crate::address::Node;
use crate::protocol::resp::ServerError;

/// Why a connection could not be made or used.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The network failed, or the server did not answer in time.
    Io(Error),
    /// The server closed the connection before its first reply.
    Closed(Error),
    /// The server returned an error.
    Server(ServerError),
    /// The server does not accept the user and password.
    Login(ServerError),
    /// The server does not let this user select the database.
    Database {
        /// The server's error.
        error: ServerError,
        /// The number of the database.
        database: u16,
    },
    /// A server that is asked as a Sentinel returned an error.
    Sentinel {
        /// The server's error.
        error: ServerError,
        /// The server.
        node: Node,
        /// The scheme of its own URL.
        scheme: &'static str,
    },
    /// What the server sent is not a reply.
    Malformed,
    /// The settings of the store are wrong: `what; remedy`.
    Settings(String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Io(error)
    }
}

impl Failure {
    /// Whether the deadline passed.
    pub(crate) fn is_timeout(&self) -> bool {
        matches!(self, Self::Io(error) if error.kind() == ErrorKind::TimedOut)
    }

    /// Converts the failure for callers of the store.
    pub(crate) fn to_store_error(&self, place: &str) -> StoreError {
        let transient = |what: &str| StoreError::transient(format!("{place} {what}"));
        match self {
            Self::Io(error) => io_error(error, place).caused_by(Error::from(error.kind())),
            Self::Closed(error) => closed(place).caused_by(Error::from(error.kind())),
            Self::Server(error) => server_error(error, place),
            // Any other error is not about the password, as `max number of clients reached`.
            Self::Login(error) if is_login_error(error) => wrong_password(place),
            Self::Login(error) => server_error(error, place),
            Self::Database { error, database } => database_error(error, *database, place),
            Self::Sentinel { error, node, scheme } => sentinel_error(error, node, scheme, place),
            Self::Malformed => transient(
                "sent a reply that cannot be read; if it uses TLS, write rediss instead of redis \
                 in the store's URL, else check that it is Redis or Valkey",
            ),
            Self::Settings(what) => {
                StoreError::unusable(format!("{place} cannot be connected to: {what}"))
            }
        }
    }
}

fn io_error(error: &Error, place: &str) -> StoreError {
    let transient = |what: &str| StoreError::transient(format!("{place} {what}"));
    let is_socket = place.starts_with("redis+unix");
    match error.kind() {
        ErrorKind::TimedOut => transient(&timed_out(place)),
        ErrorKind::ConnectionRefused => {
            transient("refuses connections; check that the server runs and listens there")
        }
        ErrorKind::NotFound if is_socket => transient(
            "does not exist; check the path, and that the server has it as its `unixsocket`",
        ),
        ErrorKind::PermissionDenied if is_socket => transient(
            "does not let this user connect; give the socket to a group of this user \
             (`unixsocketperm 770` on the server)",
        ),
        _ if error.to_string().contains("cannot be resolved") => transient(
            "cannot be reached: its host name cannot be resolved; check the host in --store or \
             [store] url, and DNS",
        ),
        _ if is_socket => transient(&format!(
            "cannot be connected to: {}; check that it is the socket of a server that runs",
            plain_io(error)
        )),
        _ => match handshake::why(error) {
            Some(why) => transient(&why),
            None => transient(&format!(
                "cannot be reached: {}; check that the server runs and the network",
                plain_io(error)
            )),
        },
    }
}

/// A server that expects TLS closes a connection without it, and one without TLS may close one
/// with it.
fn closed(place: &str) -> StoreError {
    let remedy = match place {
        _ if place.starts_with("rediss") => {
            "if it does not use TLS, write redis instead of rediss in the store's URL, else see"
        }
        _ if place.starts_with("redis+unix") => "see",
        _ => "if it uses TLS, write rediss instead of redis in the store's URL, else see",
    };
    StoreError::transient(format!(
        "{place} closed the connection before its first reply; {remedy} the server's log"
    ))
}

/// A plain server does not know the commands of a Sentinel.
fn sentinel_error(error: &ServerError, node: &Node, scheme: &str, place: &str) -> StoreError {
    if error.text.contains("unknown command") {
        return StoreError::unusable(format!(
            "{node} of {place} is not a Sentinel; name the port of a Sentinel (26379), or write \
             {scheme}://{node}"
        ));
    }
    if is_login_error(error) {
        return StoreError::unusable(format!(
            "{node} of {place} wants a password before it names the master; let the user \
             `default` run SENTINEL without one, because Standpipe logs in to the master only"
        ));
    }
    server_error(error, place)
}

/// How a person finds out whether the server hangs. Sentinel and Cluster have no single address.
fn check(place: &str) -> String {
    let is_one = ["redis://", "rediss://"].iter().any(|scheme| place.starts_with(scheme));
    let how = match is_one && !place.contains(',') {
        true => format!("redis-cli -u {place} ping"),
        false => "redis-cli ping on each server".to_owned(),
    };
    format!("check that the server is not stopped or overloaded: {how}")
}

/// Converts an error that the server returned.
pub(crate) fn server_error(error: &ServerError, place: &str) -> StoreError {
    let transient = |what: &str| StoreError::transient(format!("{place} {what}"));
    match error.code() {
        "LOADING" => transient("is still loading its data"),
        "CLUSTERDOWN" | "TRYAGAIN" => {
            transient("is a cluster that cannot serve this pool at the moment")
        }
        "MASTERDOWN" | "READONLY" => read_only(place),
        "NOPERM" => missing_right(error.detail(), place),
        _ => error_by_text(&error.text, place),
    }
}

/// A server without TLS does not answer the first message of TLS.
fn timed_out(place: &str) -> String {
    let check = check(place);
    match place.starts_with("rediss") {
        true => format!(
            "did not answer in time; {check}; if it does not use TLS, write redis instead of \
             rediss in the store's URL"
        ),
        false => format!("did not answer in time; {check}"),
    }
}

fn read_only(place: &str) -> StoreError {
    StoreError::transient(format!(
        "{place} is a read-only replica; name the master in the store's URL, or let Sentinel find \
         it with redis+sentinel://"
    ))
}

fn missing_right(what: &str, place: &str) -> StoreError {
    StoreError::unusable(format!(
        "{place} denies this user a command or key: {what}; it needs these rights: {RIGHTS}"
    ))
}

fn database_error(error: &ServerError, database: u16, place: &str) -> StoreError {
    let text = &error.text;
    if is_denied(text) {
        return StoreError::unusable(format!(
            "{place} does not let this user select database {database}; grant it the right \
             +select, or leave the number out of the store's URL"
        ));
    }
    if ["out of range", "not allowed in cluster mode"].iter().any(|words| text.contains(words)) {
        return StoreError::unusable(format!(
            "{place} has no database {database}; leave the number out of the store's URL, or \
             raise `databases` on the server"
        ));
    }
    server_error(error, place)
}

/// Converts the error of a script whose user may not run one of its commands. Returns `None` for
/// any other error.
///
/// Some servers name only the line of the script, so the command is looked up in its source.
pub(crate) fn script_denied(error: &ServerError, script: &str, place: &str) -> Option<StoreError> {
    let text = error.detail();
    if !is_denied(text) {
        return None;
    }
    let line = text.rsplit_once("user_script:").map_or("", |(_, after)| after.trim_start());
    let digits = line.find(|c: char| !c.is_ascii_digit()).unwrap_or(line.len());
    let index = line[..digits].parse::<usize>().ok().and_then(|line| line.checked_sub(1));
    let source = index.and_then(|index| script.lines().nth(index)).unwrap_or_default();
    let calls = source.split("call('").skip(1).filter_map(|rest| rest.split('\'').next());
    let calls: Vec<String> = calls.map(|name| format!("'{}'", name.to_lowercase())).collect();
    let what = match calls.is_empty() {
        true => text.to_owned(),
        false => format!("no permission to run {}", calls.join(" or ")),
    };
    Some(missing_right(&what, place))
}

/// Whether the server denies the user a right. Inside of scripts the code is another one.
fn is_denied(text: &str) -> bool {
    let words = ["can't run this command", "ACL failure", "no permissions", "NOPERM"];
    words.iter().any(|words| text.contains(words))
}

fn error_by_text(text: &str, place: &str) -> StoreError {
    let contains = |word: &str| text.contains(word);
    if contains("WRONGTYPE") {
        return StoreError::damaged(format!(
            "a key of this pool on {place} holds something that Standpipe did not write; remove \
             it, or choose another `prefix` in [store]"
        ));
    }
    if contains("WRONGPASS") {
        return wrong_password(place);
    }
    if contains("NOAUTH") || contains("unauthenticated") {
        return password_required(place);
    }
    if contains("OOM") {
        return StoreError::transient(format!(
            "{place} is out of memory and takes no writes; raise `maxmemory` or remove keys"
        ));
    }
    if contains("MISCONF") {
        return StoreError::transient(format!(
            "{place} takes no writes because it cannot save to its disk; see the server's log"
        ));
    }
    if contains(NO_REPLICAS) {
        return StoreError::transient(format!(
            "{place} takes no writes because too few replicas follow it (`min-replicas-to-write`); \
             check that they run and reach it"
        ));
    }
    if contains("READONLY") {
        return read_only(place);
    }
    if contains("BUSY") {
        return StoreError::transient(format!("{place} is busy with a long-running script"));
    }
    if contains("unknown command") {
        let command = text.split(['\'', '`']).nth(1).unwrap_or("that Standpipe needs");
        return StoreError::unusable(format!(
            "{place} has no command {command}; if it is a Sentinel, write \
             redis+sentinel://host:26379/mymaster, else enable the command on the server"
        ));
    }
    StoreError::transient(format!(
        "{place} returned an error: {}; see the server's log",
        text.trim()
    ))
}

/// Whether the server rejects the login. One without passwords rejects any: `ERR AUTH … called
/// without any password configured`.
fn is_login_error(error: &ServerError) -> bool {
    // A server answers "unauthenticated" to a long call of a client that has not logged in.
    let words = ["WRONGPASS", "NOAUTH", "AUTH", "invalid password", "unauthenticated"];
    words.iter().any(|words| error.text.contains(words))
}

/// Whether the server closes the connection, whatever is asked: it is in protected mode, or has too
/// many clients.
pub(crate) fn is_turned_away(error: &ServerError) -> bool {
    error.code() == "DENIED" || error.text.contains("max number of clients")
}

/// The server was given no password. One that was given and is wrong is another error.
fn password_required(place: &str) -> StoreError {
    StoreError::unusable(format!("{place} {PASSWORD_REQUIRED}"))
}

fn wrong_password(place: &str) -> StoreError {
    StoreError::unusable(format!("{place} {WRONG_PASSWORD}"))
}

/// Whether another server may be the master by now: this one is a replica, or refuses writes
/// because too few replicas follow it.
pub(crate) fn may_be_demoted(error: &ServerError) -> bool {
    matches!(error.code(), "READONLY" | "MASTERDOWN") || error.text.contains(NO_REPLICAS)
}

const NO_REPLICAS: &str = "NOREPLICAS";

const WRONG_PASSWORD: &str = "does not accept the user and password; give them in the store's URL, \
                              or with `password_file` or `password_env` in [store]";

const PASSWORD_REQUIRED: &str = "requires a password; give it in the store's URL, or with \
                                 `password_file` or `password_env` in [store]";

/// The rights that a user needs, with the default prefix. `docs/redis.md` lists the same.
const RIGHTS: &str = "~standpipe:* &standpipe:* +eval +evalsha +hget +hmget +hset +get +set \
                      +getrange +setrange +append +strlen +rename +del +exists +pexpire +pexpireat \
                      +time +zadd +zrangebyscore +zrem +publish +subscribe +info +ping +wait, and \
                      +select for a database other than 0";
