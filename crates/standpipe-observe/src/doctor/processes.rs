//! How many processes are on a pool: each reads what all others do.

use super::{Scene, or_ok};
use crate::finding::Finding;

pub(super) const NAME: &str = "processes";

/// What the file store is meant for.
const MOST: usize = 64;

pub(super) fn check(scene: &Scene) -> Vec<Finding> {
    let crowded = scene.readable().filter(|(_, pool)| pool.processes > MOST);
    let found = crowded.map(|(name, pool)| {
        let count = pool.processes;
        let what =
            format!("{count} busy processes on `{name}`; the store is designed for about {MOST}");
        let remedy =
            "let several callers share one process, for example the daemon (`standpipe up`)";
        Finding::warning(NAME, what).remedy(remedy).on(name.as_str())
    });
    or_ok(found.collect(), NAME, || {
        let most = scene.readable().map(|(_, pool)| pool.processes).max().unwrap_or(0);
        let busy = if most == 0 { "none busy".to_owned() } else { format!("at most {most} busy") };
        format!("{busy} on a pool now; the store is designed for about {MOST}")
    })
}
