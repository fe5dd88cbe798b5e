//! What the daemon says of itself.

use std::time::UNIX_EPOCH;

use standpipe::Snapshot;

use super::About;
use super::page::{Page, thousandths};

pub(super) fn write(page: &mut Page, about: &About, snapshot: &Snapshot, shown: usize) {
    let help = "Always 1; the label has the version.";
    page.gauge("build_info", help).put(&[("version", about.version)], 1);
    let since = about.started.duration_since(UNIX_EPOCH).unwrap_or_default();
    let since = thousandths(u64::try_from(since.as_millis()).unwrap_or(u64::MAX));
    page.gauge("start_time_seconds", "When the daemon began, since 1970.").put(&[], since);
    let help = "HTTP connections that are open.";
    page.gauge("http_connections", help).put(&[], about.connections);
    page.gauge("http_streams", "Event streams that are open.").put(&[], about.streams);
    let help = "Calls over HTTP that wait to be admitted.";
    page.gauge("http_waiting", help).put(&[], about.waiting_http);
    page.gauge("pools", "Pools that can be read.").put(&[], snapshot.pools.len());
    let help = "Pools that cannot be read: the store holds something else than was written.";
    page.gauge("pools_unreadable", help).put(&[], snapshot.unreadable.len());
    let help = "Pools beyond those that are shown here.";
    page.gauge("pools_left_out", help).put(&[], snapshot.pools.len().saturating_sub(shown));
}
