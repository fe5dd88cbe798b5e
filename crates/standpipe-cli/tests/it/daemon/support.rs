//! A daemon in a home of its own, and a small HTTP client that can also say what no client would.

#[path = "../../../../standpipe-server/tests/it/support/client.rs"]
#[expect(dead_code, reason = "the server's own tests share it and use more of it")]
mod client;
#[path = "../../../../standpipe-server/tests/it/support/common.rs"]
mod common;
#[path = "../../../../standpipe-server/tests/it/support/daemon.rs"]
#[expect(dead_code, reason = "the server's own tests share it and use more of it")]
mod daemon;
mod running;
#[path = "../../../../standpipe-server/tests/it/support/sse.rs"]
#[expect(dead_code, reason = "the server's own tests share it and use more of it")]
mod sse;

pub(crate) use self::client::{Answer, Client};
pub(crate) use self::common::{
    BOUND, files, lease, limit, line_of, take_the_slot, until, until_waiting, wants_the_slot,
};
pub(crate) use self::daemon::Daemon;
pub(crate) use self::sse::Sse;

use serde_json::Value;
use standpipe::{Settings, Standpipe, StoreUrl};

use crate::support::Home;

/// Waits until so many calls are in flight on a pool.
#[track_caller]
pub(crate) fn until_in_flight(home: &Home, pool: &str, many: u64) -> Value {
    until(&format!("{many} are in flight on {pool}"), || {
        let status = home.status(pool);
        (status["in_flight"] == many).then_some(status)
    })
}

/// The library in this process, on the pools of a home.
pub(crate) fn library(home: &Home) -> Standpipe {
    let state = home.path.join("state");
    let tap = Standpipe::builder().settings(Settings::default()).home(&state);
    tap.store(StoreUrl::File(Some(state))).open().unwrap()
}
