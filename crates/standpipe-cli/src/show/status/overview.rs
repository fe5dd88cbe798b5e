//! What `status` adds around the pools: how many are in which state, and where limits come from.

use std::collections::BTreeMap;
use std::path::Path;

use standpipe::Snapshot;
use standpipe::observe::{Origin, PoolState};

use crate::show::amount::counted;
use crate::show::local_time::day_and_clock;
use crate::show::style::{Style, TextRole};
use crate::show::table::sentence;

/// Of more pools than this, the first line counts them by state.
const MANY: usize = 10;

/// `30 pools: 1 stopped, 1 paused, 3 waiting, 1 full`; empty if there are few pools.
pub(crate) fn counts(style: Style, snapshot: &Snapshot) -> String {
    let all = snapshot.pools.len() + snapshot.lost.len() + snapshot.unreadable.len();
    if all <= MANY {
        return String::new();
    }
    let mut states: BTreeMap<PoolState, usize> = BTreeMap::new();
    for pool in &snapshot.pools {
        *states.entry(pool.state()).or_default() += 1;
    }
    let odd = states.iter().filter(|(state, _)| **state < PoolState::Active);
    let odd = odd.map(|(state, count)| (*count, state.as_str()));
    let others = [(snapshot.unreadable.len(), "unreadable"), (snapshot.lost.len(), "lost")];
    let others = others.into_iter().filter(|(count, _)| *count > 0);
    let each: Vec<String> =
        others.chain(odd).map(|(count, state)| format!("{count} {state}")).collect();
    let active = states.get(&PoolState::Active).copied().unwrap_or(0);
    let each = match (each.as_slice(), active) {
        ([], 0) => "all idle".to_owned(),
        ([], active) if active == all => "all active".to_owned(),
        ([], active) => format!("{active} active, {} idle", all - active),
        (each, _) => each.join(", "),
    };
    let text = format!("{}: {each}", counted(all as u64, "pool"));
    style.paint(TextRole::Title, &text) + "\n\n"
}

/// Where the limits of a pool come from. `file` is this process's, if it configures the pool.
pub(crate) fn origin(style: Style, origin: &Origin, file: Option<&Path>) -> String {
    let source = match (origin.source.as_str(), file) {
        ("file", Some(file)) => format!("limits from {}", file.display()),
        ("file", None) => "limits from a configuration file".to_owned(),
        ("code", _) if origin.learned => "limits learned from the provider's responses".to_owned(),
        ("code", _) => "limits from code or --limit".to_owned(),
        _ => return String::new(),
    };
    let version = origin.version.map(|version| format!(", version {version}"));
    let written = origin.written.map(|at| format!(", written {}", day_and_clock(at)));
    let changes = match origin.changes {
        0 => String::new(),
        changes => format!(", changed {} since", counted(changes, "time")),
    };
    let (version, written) = (version.unwrap_or_default(), written.unwrap_or_default());
    let text = format!("{source}{version}{written}{changes}");
    let lines = sentence(2, style.width, &style.paint(TextRole::Muted, &text));
    lines.join("\n") + "\n"
}
