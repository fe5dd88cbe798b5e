//! Metrics of the daemon itself.
//!
//! They are present whatever the state of the store.

use std::time::UNIX_EPOCH;

use super::ProcessInfo;
use super::exposition::{Exposition, thousandths};
use super::labels::Label;

const VERSION: Label = Label::any("version");

/// How many pools there are.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PoolCounts {
    pub(super) readable: usize,
    pub(super) unreadable: usize,
    /// Those that have series of their own.
    pub(super) shown: usize,
}

pub(super) fn write(page: &mut Exposition, process: &ProcessInfo, pools: PoolCounts) {
    let help = "Always 1; the label has the version.";
    page.gauge("build_info", &[VERSION], help).put(&[process.version], 1);
    let since = process.started.duration_since(UNIX_EPOCH).unwrap_or_default();
    let since = thousandths(u64::try_from(since.as_millis()).unwrap_or(u64::MAX));
    page.gauge("start_time_seconds", &[], "When the daemon started, since 1970.").put(&[], since);
    let help = "Open HTTP connections.";
    page.gauge("http_connections", &[], help).put(&[], process.connections);
    page.gauge("http_streams", &[], "Open event streams.").put(&[], process.streams);
    let help = "Waiting calls over HTTP.";
    page.gauge("http_waiting", &[], help).put(&[], process.waiting_http);
    let help = "1 if the store is available, 0 if the last known state is shown.";
    page.gauge("store_up", &[], help).put_flag(&[], process.store_up);
    let age = u64::try_from(process.snapshot_age.as_millis()).unwrap_or(u64::MAX);
    let help = "How old the state of the pools is; above 0 while the store is unavailable.";
    page.gauge("snapshot_age_seconds", &[], help).put(&[], thousandths(age));
    page.gauge("pools", &[], "Pools that can be read.").put(&[], pools.readable);
    let help = "Pools that cannot be read: their data is damaged or gone.";
    page.gauge("pools_unreadable", &[], help).put(&[], pools.unreadable);
    let help = "Pools beyond the bound, without series of their own.";
    page.gauge("pools_left_out", &[], help).put(&[], pools.readable.saturating_sub(pools.shown));
}
