//! Losses of the ledger: it was deleted, damaged or replaced, or lacks its latest entries.

use std::collections::BTreeMap;

use super::{Scene, length, or_ok};
use crate::finding::Finding;
use crate::journal::EventData;
use crate::status::PoolOverview;
use crate::time::Timestamp;

pub(super) const NAME: &str = "ledgers";

/// Parts of the store's messages about a loss. Others are about a store that was unavailable.
const LOSSES: [&str; 5] =
    ["lost its latest entries", "was deleted", "was lost on", "is damaged", "replaced the ledger"];

/// The losses of one pool.
#[derive(Clone, Copy)]
struct Loss<'a> {
    times: u64,
    last: Timestamp,
    what: &'a str,
}

pub(super) fn check(scene: &Scene) -> Vec<Finding> {
    let mut losses: BTreeMap<&str, Loss<'_>> = BTreeMap::new();
    for event in &scene.week {
        let EventData::Store { what } = &event.what else { continue };
        if is_loss(what) {
            let first = Loss { times: 0, last: event.at, what };
            let known = losses.entry(event.pool.as_str()).or_insert(first);
            *known = Loss { times: known.times + 1, last: event.at, what };
        }
    }
    let recovers = scene.readable().filter_map(|(name, pool)| Some((name.as_str(), left(pool)?)));
    let recovers: BTreeMap<&str, u64> = recovers.collect();
    let mut found: Vec<Finding> = recovers
        .iter()
        .map(|(pool, left)| recovering(scene, pool, *left, losses.get(pool).copied()))
        .collect();
    let over = losses.iter().filter(|(pool, _)| !recovers.contains_key(*pool));
    found.extend(over.map(|(pool, loss)| lost(scene, pool, *loss)));
    // What this look itself found is among the messages of the store.
    let mut messages = scene.store.iter().flat_map(|store| &store.messages);
    if !scene.has_journal() || messages.any(|text| is_loss(text)) {
        return found;
    }
    or_ok(found, NAME, || "no loss of a ledger was recorded in 7 days".to_owned())
}

/// Whether a message of the store is about a loss.
pub(super) fn is_loss(what: &str) -> bool {
    LOSSES.iter().any(|words| what.contains(words))
}

/// In how long the limits of a pool are free again after a loss.
fn left(pool: &PoolOverview) -> Option<u64> {
    let (learning, recovering) = (&pool.status.learning, &pool.status.recovering);
    learning.iter().chain(recovering).map(|pause| pause.for_ms).max()
}

/// The limits count as full, because what was used is not known.
fn recovering(scene: &Scene, pool: &str, left: u64, loss: Option<Loss<'_>>) -> Finding {
    let when = loss.map(|loss| format!(" {}", when(scene, loss))).unwrap_or_default();
    let what = format!(
        "the store lost the ledger of `{pool}`{when}; its limits count as full and are free again \
         in {}; {CONSEQUENCE}",
        length(left)
    );
    Finding::warning(NAME, what).remedy(keep(scene)).on(pool)
}

fn lost(scene: &Scene, pool: &str, loss: Loss<'_>) -> Finding {
    let cause = loss.what.split("; ").next().unwrap_or_default();
    let cause = cause.split(". It is kept").next().unwrap_or_default();
    let what = format!("`{pool}`: {cause} {}; {CONSEQUENCE}", when(scene, loss));
    Finding::warning(NAME, what).remedy(keep(scene)).on(pool)
}

const CONSEQUENCE: &str = "until processes restored their calls, those in flight were unknown, so \
                           limits may have been exceeded";

/// `2 min ago`, `3 times in 7 days, last 2 min ago`
fn when(scene: &Scene, loss: Loss<'_>) -> String {
    let ago = length(scene.now.millis.saturating_sub(loss.last.millis));
    match loss.times {
        1 => format!("{ago} ago"),
        times => format!("{times} times in 7 days, last {ago} ago"),
    }
}

pub(super) fn keep(scene: &Scene) -> String {
    match &scene.survey {
        Some(survey) => format!(
            "find out what deleted or replaced it; keep {} and exclude it from cleaners, backups \
             and synchronisation (docs/recipes/backup.md)",
            survey.path.display()
        ),
        None => "find out what deleted the keys or restarted the server, and let its data survive \
                 a restart (docs/redis.md)"
            .to_owned(),
    }
}
