//! What a server's errors mean for whoever waits, and what to do about them.
//!
//! Nothing here shows a password: the driver's own texts are only passed on where they cannot hold
//! one.

use redis::{ErrorKind, RedisError, ServerErrorKind};
use standpipe_store::StoreError;

/// What an error of the driver means.
pub(crate) fn told(error: &RedisError, place: &str) -> StoreError {
    let transient = |what: &str| StoreError::transient(format!("{place} {what}"));
    let unusable = |what: &str| StoreError::unusable(format!("{place} {what}"));
    match error.kind() {
        ErrorKind::AuthenticationFailed => unusable(WRONG_PASSWORD),
        ErrorKind::Server(kind) => of_server(kind, error, place),
        ErrorKind::Extension => by_code(error, place),
        ErrorKind::InvalidClientConfig => {
            let detail = error.detail().unwrap_or("it cannot be used like this");
            unusable(&format!("cannot be connected to: {detail}"))
        }
        _ if error.is_timeout() => transient("did not answer in time"),
        _ if error.is_connection_refusal() => {
            transient("refuses connections; see that the server runs and listens there")
        }
        _ if error.is_io_error() => transient(&format!("cannot be reached: {error}")),
        _ => transient(&format!("answered what cannot be read: {}", error.category())),
    }
    .caused_by(Plain(error.category().to_owned()))
}

fn of_server(kind: ServerErrorKind, error: &RedisError, place: &str) -> StoreError {
    let transient = |what: &str| StoreError::transient(format!("{place} {what}"));
    match kind {
        ServerErrorKind::BusyLoading => transient("is still loading its data"),
        ServerErrorKind::ClusterDown | ServerErrorKind::TryAgain => {
            transient("is a cluster that cannot serve this pool just now")
        }
        ServerErrorKind::MasterDown | ServerErrorKind::ReadOnly => transient(
            "is a read-only replica; name the master in the store's URL, or let Sentinel find it \
             with redis+sentinel://",
        ),
        ServerErrorKind::NoPerm => lacks(error.detail().unwrap_or("a right is missing"), place),
        _ => by_code(error, place),
    }
}

fn lacks(what: &str, place: &str) -> StoreError {
    StoreError::unusable(format!(
        "{place} does not let this user do that: {what}; it needs these rights: {RIGHTS}"
    ))
}

/// A script came to a command that its user may not run; none if it is something else. A server
/// may name only the line.
pub(crate) fn not_allowed(error: &RedisError, script: &str, place: &str) -> Option<StoreError> {
    let text = error.detail().unwrap_or_default();
    if !["can't run this command", "ACL failure", "no permissions", "NOPERM"]
        .iter()
        .any(|words| text.contains(words))
    {
        return None;
    }
    let line = text.rsplit_once("user_script:").map_or("", |(_, behind)| behind.trim_start());
    let digits = line.find(|c: char| !c.is_ascii_digit()).unwrap_or(line.len());
    let at = line[..digits].parse::<usize>().ok().and_then(|line| line.checked_sub(1));
    let source = at.and_then(|at| script.lines().nth(at)).unwrap_or_default();
    let calls = source.split("redis.call('").skip(1).filter_map(|rest| rest.split('\'').next());
    let calls: Vec<String> = calls.map(|name| format!("'{}'", name.to_lowercase())).collect();
    let what = match calls.is_empty() {
        true => text.to_owned(),
        false => format!("no permission to run {}", calls.join(" or ")),
    };
    Some(lacks(&what, place))
}

fn by_code(error: &RedisError, place: &str) -> StoreError {
    let detail = error.detail().unwrap_or_default();
    let text = format!("{} {detail}", error.code().unwrap_or_default());
    let says = |word: &str| text.contains(word);
    if says("WRONGTYPE") {
        return StoreError::unusable(format!(
            "a key of this pool on {place} holds something that Standpipe did not write; remove \
             it, or choose another `prefix` in [store]"
        ));
    }
    // The last is what a server says to a call too long for somebody who has not logged in.
    if says("NOAUTH") || says("WRONGPASS") || says("unauthenticated") {
        return StoreError::unusable(format!("{place} {WRONG_PASSWORD}"));
    }
    if says("OOM") {
        return StoreError::transient(format!(
            "{place} is out of memory and takes no writes; raise `maxmemory` or remove keys"
        ));
    }
    if says("MISCONF") {
        return StoreError::transient(format!(
            "{place} takes no writes because it cannot save to its disk; see the server's log"
        ));
    }
    if says("READONLY") {
        return of_server(ServerErrorKind::ReadOnly, error, place);
    }
    if says("BUSY") {
        return StoreError::transient(format!("{place} is busy with somebody's script"));
    }
    StoreError::transient(format!("{place} says: {}", text.trim()))
}

const WRONG_PASSWORD: &str = "does not accept the user and password; give them in the store's URL, \
                              or with `password_file` or `password_env` in [store]";

/// What a user of the server must be allowed to do, with the usual prefix.
const RIGHTS: &str = "~standpipe:* &standpipe:* +eval +evalsha +hget +hmget +hset +get +set \
                      +getrange +setrange +append +strlen +rename +del +exists +pexpire +pexpireat \
                      +time +zadd +zrangebyscore +zrem +publish +subscribe +info +ping +wait";

/// A cause in words that cannot hold a secret.
#[derive(Debug)]
struct Plain(String);

impl std::fmt::Display for Plain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Plain {}
