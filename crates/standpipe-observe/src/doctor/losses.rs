//! Losses of the ledger: it was deleted, damaged or replaced, or lacks its latest entries.

use std::collections::BTreeMap;

use super::{Scene, length, or_ok};
use crate::finding::Finding;
use crate::journal::EventData;
use crate::status::{LostLedger, Pause, PoolStatus, reset_if_idle};
use crate::time::Timestamp;

pub(super) const NAME: &str = "ledgers";

/// Parts of the store's messages about a loss. Others are about a store that was unavailable.
const LOSSES: [&str; 5] =
    ["lost its latest entries", "was deleted", "was lost on", "is damaged", "replaced the ledger"];

/// Messages this close together are about one loss: each process restores its entries with its next
/// heartbeat, which comes every 30 s.
const ONE_LOSS_MS: u64 = 45_000;

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
        if is_loss(what) && is_of_store(scene, &event.pool, what) {
            let first = Loss { times: 0, last: event.at, what };
            let known = losses.entry(event.pool.as_str()).or_insert(first);
            let is_same = known.times > 0 && known.last.millis + ONE_LOSS_MS > event.at.millis;
            let times = known.times + u64::from(!is_same);
            // The first message of a loss has its cause.
            let what = if is_same { known.what } else { what };
            *known = Loss { times, last: event.at, what };
        }
    }
    let mut found: Vec<Finding> =
        scene.store.iter().flat_map(|store| &store.lost).map(gone).collect();
    let recovers = scene.readable().filter(|(_, pool)| pool.status.recovers());
    let recovers: BTreeMap<&str, &PoolStatus> =
        recovers.map(|(name, pool)| (name.as_str(), &pool.status)).collect();
    let recovering_now = recovers.iter();
    found.extend(
        recovering_now
            .map(|(pool, status)| recovering(scene, pool, status, losses.get(pool).copied())),
    );
    let over = losses.iter().filter(|(pool, _)| !recovers.contains_key(*pool));
    found.extend(over.map(|(pool, loss)| lost(scene, pool, *loss)));
    // What this look itself found is among the messages of the store.
    let mut messages = scene.store.iter().flat_map(|store| &store.messages);
    if !scene.has_journal() || messages.any(|text| is_loss(text)) {
        return found;
    }
    or_ok(found, NAME, || "no loss of a ledger was recorded in 7 days".to_owned())
}

/// Whether a loss is one of the store in use: the journal has those of all stores.
fn is_of_store(scene: &Scene, pool: &str, what: &str) -> bool {
    let Ok(store) = &scene.store else { return true };
    let other_server = what.contains("was lost on ") && !what.contains(&store.place);
    let known = store
        .pools
        .as_ref()
        .map_or(true, |pools| pools.iter().any(|(name, _)| name.as_str() == pool));
    known && !other_server
}

/// Whether a message of the store is about a loss.
pub(super) fn is_loss(what: &str) -> bool {
    LOSSES.iter().any(|words| what.contains(words))
}

/// The file is gone, and no call has made a new one.
fn gone(lost: &LostLedger) -> Finding {
    let what = format!("`{}`: {}; {}", lost.pool, lost.what(), lost.effect());
    let remedy = format!("find out what deleted it; {}", lost.remedy());
    Finding::failure(NAME, what).remedy(remedy).on(lost.pool.as_str())
}

/// What counts as full because its use is not known, and until when.
fn recovering(scene: &Scene, pool: &str, status: &PoolStatus, loss: Option<Loss<'_>>) -> Finding {
    let when = loss.map(|loss| format!(" {}", when(scene, loss))).unwrap_or_default();
    let full = |what: &str, pause: &Option<Pause>| {
        let pause = pause.as_ref()?;
        Some(format!("{what} count as full for another {}", length(pause.for_ms)))
    };
    let slots = full("slots", &status.learning);
    let rates = full("rates", &status.recovering);
    let both: Vec<String> = slots.into_iter().chain(rates).collect();
    let what =
        format!("the store lost the ledger of `{pool}`{when}; {}; {CONSEQUENCE}", both.join(", "));
    let remedy = format!("{}; {}", reset_if_idle(pool), keep(scene));
    Finding::warning(NAME, what).remedy(remedy).on(pool)
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
    // The state directory of a store on the network has no ledger.
    let is_remote = scene.store.as_ref().is_ok_and(|store| store.place.starts_with("redis"));
    match scene.survey.as_ref().filter(|_| !is_remote) {
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
