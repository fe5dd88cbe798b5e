//! Pools on which no call, or fewer calls than possible, can run now: stopped, paused, or blocked
//! by a stopped process.

use std::collections::BTreeMap;

use standpipe_store::PoolName;

use super::{Scene, length, or_ok};
use crate::finding::{Finding, counted, retry_budget};
use crate::journal::{Event, EventData};
use crate::status::{LimitKind, Pause, PausedBy, PoolStatus};

pub(super) const NAME: &str = "pools";

pub(super) fn check(scene: &Scene) -> Vec<Finding> {
    let mut found = Vec::new();
    for (name, pool) in scene.readable() {
        let status = &pool.status;
        let states = [
            stopped(scene, name, status),
            paused(name, status),
            retries(scene, name, status),
            in_shadow_mode(name, status),
        ];
        let holders = stopped_holders(name, status);
        let all = states.into_iter().flatten().chain(holders).chain(stopped_waiters(name, status));
        found.extend(all.map(|finding| finding.on(name.as_str())));
    }
    or_ok(found, NAME, || "no pool is stopped, paused or blocked".to_owned())
}

/// The provider stopped the pool: only a person can fix the account.
fn stopped(scene: &Scene, name: &PoolName, status: &PoolStatus) -> Option<Finding> {
    let stop = status.terminal.as_ref()?;
    let end = stop.for_ms.map(|ms| format!(" for another {}", length(ms))).unwrap_or_default();
    let what = format!(
        "the provider stopped `{name}`{end}, so no call is admitted{}",
        refusal(scene, name).unwrap_or_default()
    );
    let remedy = format!(
        "fix the account at the provider (credit, spend limit, key), then: standpipe resume {name}"
    );
    Some(Finding::failure(NAME, what).remedy(remedy))
}

/// Who got the refusal that stopped the pool, when, and the provider's message.
fn refusal(scene: &Scene, name: &PoolName) -> Option<String> {
    let on_pool = scene.week.iter().rev().filter(|event| event.pool == name.as_str());
    let mut refusals = on_pool.filter_map(|event| match &event.what {
        EventData::Throttle { agent, about, said, .. } if about == "terminal" => {
            Some((event.at, agent.as_deref(), said.as_deref()))
        }
        _ => None,
    });
    let (at, agent, said) = refusals.next()?;
    let agent = agent.unwrap_or("a call");
    let ago = length(scene.now.millis.saturating_sub(at.millis));
    let said = said.map(|said| format!(" (\"{said}\")")).unwrap_or_default();
    Some(format!("; {agent} was refused {ago} ago{said}"))
}

fn paused(name: &PoolName, status: &PoolStatus) -> Option<Finding> {
    let pause = status.pause.as_ref().filter(|_| status.terminal.is_none())?;
    let what = format!(
        "`{name}` is paused for another {}{}",
        length(pause.for_ms),
        cause(status, pause).unwrap_or_default()
    );
    let remedy = format!("wait, or end the pause: standpipe resume {name}");
    Some(Finding::note(NAME, what).remedy(remedy))
}

/// Who caused the pause, by what, and when: `: blog got a 429 (quota) 12 s ago`.
fn cause(status: &PoolStatus, pause: &Pause) -> Option<String> {
    let by_hand = || {
        let (by, at) = (pause.by.clone()?, pause.at?);
        Some(PausedBy { by, at, until: None, refusal: None })
    };
    let refused = || {
        // A pause that was ordered does not follow the last refusal.
        let incident = status.trouble.incident.as_ref().filter(|_| pause.at.is_none())?;
        let by = incident.agent.clone().unwrap_or_else(|| "a call".to_owned());
        Some(PausedBy { by, at: incident.at, until: None, refusal: Some(incident.kind) })
    };
    let paused = by_hand().or_else(refused)?;
    let ago = length(status.at.millis.saturating_sub(paused.at.millis));
    Some(match paused.refusal {
        None => format!(", ordered{} {ago} ago", paused.cause()),
        Some(_) => format!("{} {ago} ago", paused.cause()),
    })
}

/// Calls are admitted whatever the limits say.
fn in_shadow_mode(name: &PoolName, status: &PoolStatus) -> Option<Finding> {
    if status.enforce {
        return None;
    }
    let what = format!("`{name}` runs in shadow mode: its limits are not enforced");
    let remedy = "remove `enforce = false` from its table when `standpipe audit` has shown enough";
    Some(Finding::note(NAME, what).remedy(remedy))
}

/// Every retry is refused, although first attempts are admitted.
fn retries(scene: &Scene, name: &PoolName, status: &PoolStatus) -> Option<Finding> {
    let retries = status.trouble.retries.as_ref()?;
    let left = length(retries.used_up.as_ref()?.for_ms);
    let what = format!(
        "the retry budget of `{name}` is used up: 0 of {} left, so retries are refused for \
         another {left}",
        retries.per_minute
    );
    let is_retry = |event: &Event| matches!(event.what, EventData::ClientRetry { .. });
    let of_clients = scene.week.iter().any(|event| event.pool == name.as_str() && is_retry(event));
    Some(Finding::warning(NAME, what).remedy(retry_budget(of_clients)))
}

/// A stopped process keeps its place in the queue, and does not take its turn.
fn stopped_waiters(name: &PoolName, status: &PoolStatus) -> Vec<Finding> {
    let mut waiters: BTreeMap<u32, &str> = BTreeMap::new();
    for ticket in status.tickets.iter().filter(|ticket| ticket.stopped) {
        waiters.extend(ticket.pid.map(|pid| (pid, ticket.agent.as_str())));
    }
    let finding = |(pid, agent): (u32, &str)| {
        let what = format!(
            "process {pid} ({agent}) is stopped and waits on `{name}`: room that is free is \
             reserved for it, 2 s at each turn"
        );
        let remedy = format!("kill -CONT {pid} resumes it; kill -9 {pid} ends it and its wait");
        Finding::warning(NAME, what).remedy(remedy).by(agent)
    };
    waiters.into_iter().map(finding).collect()
}

/// Stopped processes keep what they hold, because they are alive.
fn stopped_holders(name: &PoolName, status: &PoolStatus) -> Vec<Finding> {
    let mut holders: BTreeMap<u32, (&str, u64)> = BTreeMap::new();
    for lease in status.leases.iter().filter(|lease| lease.stopped) {
        let Some(pid) = lease.pid else { continue };
        holders.entry(pid).or_insert((&lease.agent, 0)).1 += 1;
    }
    let finding = |(pid, (agent, leases)): (u32, (&str, u64))| {
        let leases = counted(leases, "lease");
        let what = format!("process {pid} ({agent}) is stopped and holds {leases} of `{name}`");
        let remedy =
            format!("kill -CONT {pid} resumes it; kill -9 {pid} ends it and frees what it holds");
        let finding = match waiting(status).filter(|_| slots_are_full(status)) {
            Some(calls) => Finding::warning(NAME, format!("{what}, and {calls}")),
            None => Finding::note(NAME, what),
        };
        finding.remedy(remedy).by(agent)
    };
    holders.into_iter().map(finding).collect()
}

/// `2 calls wait`; none if no call does.
pub(super) fn waiting(status: &PoolStatus) -> Option<String> {
    let verb = if status.waiting == 1 { "waits" } else { "wait" };
    (status.waiting > 0).then(|| format!("{} {verb}", counted(status.waiting as u64, "call")))
}

/// Whether only a call that ends brings room.
pub(super) fn slots_are_full(status: &PoolStatus) -> bool {
    status.limits.iter().any(|limit| limit.kind == LimitKind::Parallel && limit.left == 0)
}
