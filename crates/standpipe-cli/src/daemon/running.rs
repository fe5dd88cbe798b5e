//! Asks the daemon of this machine about itself: a rejected configuration, an unavailable store.

use std::time::Duration;

use standpipe::Snapshot;
use standpipe_server::{Log, running};

use super::{Address, DaemonClient};
use crate::context::Context;

/// A daemon that does not answer in time is not waited for: the view is about the ledger.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Returns what a running daemon shows. `None` if none runs or it does not answer.
pub(crate) fn snapshot(context: &Context) -> Option<Snapshot> {
    let reply = client(context)?.get("/v1/pools?rows=1").ok()?;
    serde_json::from_value(reply).ok()
}

/// What to know if the daemon of this state directory uses another store: its calls and those of
/// this command are counted apart.
pub(crate) fn other_store(
    context: &Context,
    daemon: &Snapshot,
    ours: &str,
) -> Option<(String, String)> {
    (daemon.store != ours && !context.names_store()).then(|| {
        let what = format!("the running daemon uses {}, and this command {ours}", daemon.store);
        let remedy = "state the store once for both, as `url` in [store] of standpipe.toml: calls \
                      on different stores are not counted together";
        (what, remedy.to_owned())
    })
}

/// Returns the process of the daemon that runs on the directory of this store.
pub(crate) fn pid(context: &Context) -> Option<u32> {
    let directory = context.daemon(None, Log::default()).directory().ok()?;
    running(&directory).map(|running| running.pid)
}

/// Returns why the store of a running daemon is unavailable; `None` if it answers.
pub(crate) fn store_outage(context: &Context) -> Option<String> {
    client(context)?.get("/readyz").err()
}

/// Whether a daemon runs and does not answer in time.
pub(crate) fn is_silent(context: &Context) -> bool {
    client(context).is_some_and(|client| client.get("/healthz").is_err())
}

/// Makes a running daemon write what its calls used so far: an audit right after them has all.
pub(crate) fn write_journal(context: &Context) {
    let reply = client(context).map(|client| client.get("/v1/events?since=1s&limit=1"));
    // Without a daemon the journal is complete, and without its answer the audit says what is not.
    drop(reply);
}

fn client(context: &Context) -> Option<DaemonClient> {
    let directory = context.daemon(None, Log::default()).directory().ok()?;
    let running = running(&directory)?;
    let has_socket = running.socket.is_some();
    let address = running.socket.map_or(Address::Tcp(running.address), Address::Unix);
    // Over the socket no token is needed, and the file that names one may be the rejected one.
    let found = context.config().ok().filter(|_| !has_socket);
    let token = found.and_then(|found| found.server.token_file);
    Some(DaemonClient::with_token_file(address, token.as_deref()).ok()?.within(TIMEOUT))
}
