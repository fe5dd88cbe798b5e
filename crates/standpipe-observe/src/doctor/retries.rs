//! Retries that stack: an SDK below Standpipe retries on its own.

use std::collections::{BTreeMap, BTreeSet};

use super::{Scene, or_ok};
use crate::finding::Finding;
use crate::journal::EventData;
use crate::time::Timestamp;

const NAME: &str = "retries";

/// So many refusals of one agent within so long are no coincidence.
const MANY: usize = 3;
const WITHIN_MS: u64 = 10_000;
/// A call that was under way when a pause began is answered by then.
const UNDER_WAY_MS: u64 = 5_000;

pub(super) fn check(scene: &Scene) -> Vec<Finding> {
    if !scene.has_journal() {
        return Vec::new();
    }
    let mut found = bursts(scene);
    found.extend(during_pauses(scene));
    or_ok(found, NAME, || "no retries outside Standpipe".to_owned())
}

/// One agent, refused again and again.
fn bursts(scene: &Scene) -> Vec<Finding> {
    let mut times: BTreeMap<(&str, &str), Vec<Timestamp>> = BTreeMap::new();
    for (at, pool, agent) in scene.refusals() {
        times.entry((pool, agent.unwrap_or("a caller"))).or_default().push(at);
    }
    let each = times.iter().map(|(whose, times)| (*whose, most_at_once(times)));
    let many = each.filter(|(_, count)| *count >= MANY);
    let finding = |((pool, agent), count): ((&str, &str), usize)| {
        let what = format!(
            "{agent} got {count} 429s within 10s on `{pool}`: it retries on its own, or has many \
             calls in flight"
        );
        Finding::warning(NAME, what).remedy(OFF).on(pool).by(agent)
    };
    many.map(finding).collect()
}

/// How many of these, which are in order, lie within ten seconds of each other.
fn most_at_once(times: &[Timestamp]) -> usize {
    let mut first = 0;
    let within = times.iter().enumerate().map(|(last, time)| {
        let old = |old: &Timestamp| time.millis.saturating_sub(old.millis) > WITHIN_MS;
        first += times[first..=last].iter().take_while(|time| old(time)).count();
        last - first + 1
    });
    within.max().unwrap_or(0)
}

/// A 429 while no call was admitted: the call did not go through Standpipe.
fn during_pauses(scene: &Scene) -> Vec<Finding> {
    let mut pauses: BTreeMap<&str, (Timestamp, Timestamp)> = BTreeMap::new();
    let mut seen: BTreeSet<(&str, &str)> = BTreeSet::new();
    for event in &scene.week {
        let pool = event.pool.as_str();
        match &event.what {
            EventData::Pause { until, .. } => {
                // A longer pause is the same one, if that is not over.
                let pause = pauses.entry(pool).or_insert((event.at, *until));
                let begins = if pause.1 < event.at { event.at } else { pause.0 };
                *pause = (begins, *until);
            }
            EventData::Resume => drop(pauses.remove(pool)),
            EventData::Throttle { agent, about, .. } if about != "overload" => {
                let paused = pauses.get(pool).is_some_and(|(began, until)| {
                    event.at.millis > began.millis.saturating_add(UNDER_WAY_MS) && event.at < *until
                });
                if paused {
                    seen.insert((pool, agent.as_deref().unwrap_or("a caller")));
                }
            }
            _ => {}
        }
    }
    let finding = |(pool, agent): (&str, &str)| {
        let what = format!(
            "{agent} got a 429 while `{pool}` was paused: some of its calls bypass Standpipe"
        );
        Finding::warning(NAME, what).remedy(OFF).on(pool).by(agent)
    };
    seen.into_iter().map(finding).collect()
}

const OFF: &str = "disable the SDK's own retries (max_retries=0 for anthropic and openai) and \
                   reserve each retry with --retry-of";
