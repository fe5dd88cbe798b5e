//! Maps errors of the driver and the server to [`StoreError`]: whether a retry can help, and what
//! to do.
//!
//! No message contains a password: driver texts are passed on only where they cannot hold one.

use redis::{ErrorKind, RedisError, ServerErrorKind};
use standpipe_store::StoreError;

/// Converts an error of the driver or the server.
pub(crate) fn store_error(error: &RedisError, place: &str) -> StoreError {
    let transient = |what: &str| StoreError::transient(format!("{place} {what}"));
    let unusable = |what: &str| StoreError::unusable(format!("{place} {what}"));
    match error.kind() {
        ErrorKind::AuthenticationFailed => unusable(WRONG_PASSWORD),
        ErrorKind::Server(kind) => server_error(kind, error, place),
        ErrorKind::Extension => error_by_code(error, place),
        ErrorKind::InvalidClientConfig => {
            let detail = error.detail().unwrap_or("the connection settings are invalid");
            unusable(&format!("cannot be connected to: {detail}"))
        }
        _ if error.is_timeout() => transient("did not answer in time"),
        _ if error.is_connection_refusal() => {
            transient("refuses connections; check that the server runs and listens there")
        }
        _ if error.is_io_error() => transient(&format!("cannot be reached: {error}")),
        _ => transient(&format!("sent a reply that cannot be read: {}", error.category())),
    }
    .caused_by(DriverError(error.category().to_owned()))
}

fn server_error(kind: ServerErrorKind, error: &RedisError, place: &str) -> StoreError {
    let transient = |what: &str| StoreError::transient(format!("{place} {what}"));
    match kind {
        ServerErrorKind::BusyLoading => transient("is still loading its data"),
        ServerErrorKind::ClusterDown | ServerErrorKind::TryAgain => {
            transient("is a cluster that cannot serve this pool at the moment")
        }
        ServerErrorKind::MasterDown | ServerErrorKind::ReadOnly => transient(
            "is a read-only replica; name the master in the store's URL, or let Sentinel find it \
             with redis+sentinel://",
        ),
        ServerErrorKind::NoPerm => {
            missing_right(error.detail().unwrap_or("a right is missing"), place)
        }
        _ => error_by_code(error, place),
    }
}

fn missing_right(what: &str, place: &str) -> StoreError {
    StoreError::unusable(format!(
        "{place} denies this user a command or key: {what}; it needs these rights: {RIGHTS}"
    ))
}

/// Converts the error of a script whose user may not run one of its commands. Returns `None` for
/// any other error.
///
/// Some servers name only the line of the script, so the command is looked up in its source.
pub(crate) fn script_denied(error: &RedisError, script: &str, place: &str) -> Option<StoreError> {
    let text = error.detail().unwrap_or_default();
    if !["can't run this command", "ACL failure", "no permissions", "NOPERM"]
        .iter()
        .any(|words| text.contains(words))
    {
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

fn error_by_code(error: &RedisError, place: &str) -> StoreError {
    let detail = error.detail().unwrap_or_default();
    let text = format!("{} {detail}", error.code().unwrap_or_default());
    let contains = |word: &str| text.contains(word);
    if contains("WRONGTYPE") {
        return StoreError::damaged(format!(
            "a key of this pool on {place} holds something that Standpipe did not write; remove \
             it, or choose another `prefix` in [store]"
        ));
    }
    // A server answers "unauthenticated" to a long call of a client that has not logged in.
    if contains("NOAUTH") || contains("WRONGPASS") || contains("unauthenticated") {
        return StoreError::unusable(format!("{place} {WRONG_PASSWORD}"));
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
        return server_error(ServerErrorKind::ReadOnly, error, place);
    }
    if contains("BUSY") {
        return StoreError::transient(format!("{place} is busy with a long-running script"));
    }
    StoreError::transient(format!("{place} returned an error: {}", text.trim()))
}

/// Whether the server refuses writes because too few replicas follow it. Another server may be the
/// master by now.
pub(crate) fn lacks_replicas(error: &RedisError) -> bool {
    error.code() == Some(NO_REPLICAS)
        || error.detail().is_some_and(|text| text.contains(NO_REPLICAS))
}

const NO_REPLICAS: &str = "NOREPLICAS";

const WRONG_PASSWORD: &str = "does not accept the user and password; give them in the store's URL, \
                              or with `password_file` or `password_env` in [store]";

/// The rights that a user needs, with the default prefix. `docs/redis.md` lists the same.
const RIGHTS: &str = "~standpipe:* &standpipe:* +eval +evalsha +hget +hmget +hset +get +set \
                      +getrange +setrange +append +strlen +rename +del +exists +pexpire +pexpireat \
                      +time +zadd +zrangebyscore +zrem +publish +subscribe +info +ping +wait";

/// The driver's category of an error, as a source: it cannot contain a secret.
#[derive(Debug)]
struct DriverError(String);

impl std::fmt::Display for DriverError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for DriverError {}
