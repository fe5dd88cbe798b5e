//! Retries that stack: an SDK below Standpipe retries on its own.

use std::collections::{BTreeMap, BTreeSet};

use super::{Scene, or_ok};
use crate::finding::Finding;
use crate::journal::EventData;
use crate::time::Timestamp;

pub(super) const NAME: &str = "retries";

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
    found.extend(behind_the_proxy(scene));
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
            "{agent} got {count} 429s within 10 s on `{pool}`: it retries on its own, or has many \
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
            EventData::Resume { .. } => drop(pauses.remove(pool)),
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

/// Clients of the proxy that retry what the proxy has retried already.
fn behind_the_proxy(scene: &Scene) -> Vec<Finding> {
    let seen: BTreeSet<(&str, &str, &str, bool)> = scene
        .week
        .iter()
        .filter_map(|event| match &event.what {
            EventData::ClientRetry { agent, client, guessed } => {
                Some((event.pool.as_str(), agent.as_str(), client.as_str(), *guessed))
            }
            _ => None,
        })
        .collect();
    let is_certain = |(pool, agent, client, _): &(_, _, _, bool)| {
        seen.contains(&(*pool, *agent, *client, false))
    };
    let finding = |(pool, agent, client, guessed): (&str, &str, &str, bool)| match guessed {
        false => {
            let what =
                format!("{agent} ({client}) retries on its own on top of the proxy on `{pool}`");
            Finding::warning(NAME, what).remedy(switch(client)).on(pool).by(agent)
        }
        true => {
            let what = format!(
                "{agent} ({client}) repeated a refused call within 30 s on `{pool}`: it may retry \
                 on its own on top of the proxy"
            );
            let remedy = format!("if it does, {}", switch(client));
            Finding::note(NAME, what).remedy(remedy).on(pool).by(agent)
        }
    };
    let reported = seen.iter().filter(|seen| !seen.3 || !is_certain(seen)).copied();
    reported.take(MAX_CLIENTS).map(finding).collect()
}

/// The most clients that are listed.
const MAX_CLIENTS: usize = 20;

/// Parts of the names of clients, and what turns their retries off.
const SWITCHES: [(&str, &str); 12] = [
    ("claude-cli", "set CLAUDE_CODE_MAX_RETRIES=0, as `standpipe run` does"),
    ("codex", "set request_max_retries = 0 and stream_max_retries = 0 for the model provider"),
    ("litellm", "set num_retries=0"),
    ("langchain", "set max_retries=0 (1 for Google) and remove with_retry()"),
    ("octokit", "set retry: { enabled: false } and throttle: { enabled: false }"),
    ("google-genai", "leave http_options.retry_options unset, or set attempts=1"),
    ("ai-sdk", "set maxRetries: 0"),
    ("ai/", "set maxRetries: 0"),
    ("boto", "set AWS_MAX_ATTEMPTS=1"),
    ("/python", "set max_retries=0 on the client"),
    ("/js", "set maxRetries: 0 on the client"),
    ("/node", "set maxRetries: 0 on the client"),
];

/// What turns the retries of a client off.
fn switch(client: &str) -> &'static str {
    let lower = client.to_ascii_lowercase();
    let known = SWITCHES.iter().find(|(part, _)| lower.contains(part));
    known.map_or("disable the client's own retries: the proxy retries for it", |(_, how)| how)
}

const OFF: &str = "disable the SDK's own retries (max_retries=0 for anthropic and openai) and \
                   reserve each retry with --retry-of";
