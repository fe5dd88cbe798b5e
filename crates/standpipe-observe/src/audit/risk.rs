//! The risks of a pool and what to do about them: one function per risk.

mod not_admitted;
mod waits;

use std::collections::{BTreeMap, BTreeSet};

use standpipe_core::Unit;

use super::{AIM, AgentAudit, LimitAudit, PoolAudit, Rate};
use crate::amount::{percent, share};
use crate::finding::{Finding, Level, TOO_MANY_AT_ONCE, UNLIMITED, counted};
use crate::others;
use crate::refusal::Refused;
use crate::time::format_ms;
use standpipe_config::plain;

/// All agents together that wait longer than this on the average are a finding.
const SHORT_MS: u64 = 500;
/// More retries than this share of the calls are more than the ledger's budget.
const RETRIES_PERCENT: u64 = 10;

/// What happened on a pool besides its calls.
#[derive(Debug, Default)]
pub(super) struct Incidents {
    /// Leases that ended without being settled.
    pub(super) reclaimed: u64,
    /// By limit: what the provider counted and Standpipe did not.
    pub(super) outside: BTreeMap<String, u64>,
    /// Refusals of any kind.
    pub(super) refusals: u64,
    /// Of those, the ones of too many calls at once.
    pub(super) at_once: u64,
    /// A client of the proxy retried on its own.
    pub(super) client_retries: bool,
    /// Who ordered pauses by hand.
    pub(super) paused_by: BTreeSet<String>,
    /// The provider has stopped the pool, and it is not resumed yet.
    pub(super) is_stopped: bool,
}

/// All that is found, or that nothing is.
pub(super) fn findings(audit: &PoolAudit, incidents: &Incidents) -> Vec<Finding> {
    let Incidents { reclaimed, outside, .. } = incidents;
    if audit.agents.is_empty() {
        return by_others(audit).into_iter().map(|f| f.on(audit.pool.as_str())).collect();
    }
    let mut found: Vec<Finding> =
        audit.limits.iter().filter_map(|l| contention(audit, l)).collect();
    found.extend(alone(audit));
    let waits = waits::findings(audit, incidents);
    found.extend(full(audit).filter(|_| waits.is_empty()));
    found.extend(used_up(audit).filter(|_| found.is_empty() && waits.is_empty()));
    found.extend(waits);
    found.extend(stops(audit, incidents));
    found.extend(not_admitted::findings(audit, incidents.client_retries));
    found.extend(refusals(audit, incidents));
    found.extend(retries(audit));
    found.extend(by_others(audit));
    found.extend(outside.iter().filter_map(|(limit, units)| bypassed(audit, limit, *units)));
    found.extend(unsettled(*reclaimed));
    found.extend(unstated(audit));
    if found.is_empty() {
        found.push(fine(audit));
    }
    found.into_iter().map(|finding| finding.on(audit.pool.as_str())).collect()
}

/// All agents together come to more than 80 % of the quota.
fn contention(audit: &PoolAudit, limit: &LimitAudit) -> Option<Finding> {
    let (stated, aim) = (limit.stated?, limit.aim?);
    let name = &limit.limit;
    // A notable use by others is a finding of its own.
    let others = if is_notable(limit) { 0 } else { limit.by_others };
    let sum = limit.average.plus(Rate { tenths: others.saturating_mul(10) });
    if sum.tenths > aim.saturating_mul(10) {
        let percent = share(sum.tenths.into(), u128::from(stated) * 10);
        let (sum, stated) = (average(limit, sum), shown(limit, stated));
        let others = match others {
            0 => String::new(),
            others => format!(" and {} by others", shown(limit, others)),
        };
        let what = format!(
            "{name}: the agents' averages{others} add up to {sum}, {percent} of the {stated} \
             stated; when all are active, calls wait"
        );
        return Some(Finding::warning("contention", what).remedy(relief(audit)));
    }
    // A pool that holds calls back was at its peak by its own leave.
    let allowed = limit.peak_stated?;
    if audit.enforce || percent(limit.peak.into(), allowed.into()) < AIM || limit.peak <= aim {
        return None;
    }
    let percent = share(limit.peak.into(), allowed.into());
    let peak = shown(limit, limit.peak);
    let stated = shown(limit, allowed);
    let what = format!("{name}: {peak} in the busiest period, {percent} of the {stated} stated");
    Some(Finding::warning("contention", what).remedy(relief(audit)))
}

fn relief(audit: &PoolAudit) -> &'static str {
    if audit.enforce {
        "give the agents that must not wait a priority or a floor, move others to another time or \
         pool, or ask the provider for a higher limit"
    } else {
        "this pool runs in shadow mode: remove `enforce = false` from its table to keep the agents \
         below the quota"
    }
}

/// One agent uses so much that little is left for the others. Only where limits are enforced.
fn alone(audit: &PoolAudit) -> Option<Finding> {
    let others = |agent: &AgentAudit| {
        audit.agents.iter().filter(|other| other.agent != agent.agent).collect::<Vec<_>>()
    };
    let takes = audit.limits.iter().enumerate().flat_map(|(at, limit)| {
        audit.agents.iter().filter_map(move |agent| {
            let peak = agent.rates.get(at)?.peak;
            let percent = percent(peak.into(), limit.peak_stated?.into());
            (percent >= AIM).then_some((percent, agent, limit, peak))
        })
    });
    let takes = takes.filter(|(_, agent, ..)| others(agent).iter().any(|other| other.calls > 0));
    let (_, agent, limit, peak) = takes.max_by_key(|(percent, ..)| *percent)?;
    if !audit.enforce {
        return None;
    }
    let (who, name, most) = (&agent.agent, &limit.limit, shown(limit, limit.peak_stated?));
    let peak = shown(limit, peak);
    let of = match limit.peak_stated == limit.stated {
        true => format!("the {most} stated"),
        false => format!("the {most} that a full bucket allows in a period"),
    };
    let what = format!("{name}: {who} alone used {peak} of {of} at its peak");
    let remedy = format!(
        "cap it ([agent.{who}] cap = \"50%\"), or give the others a floor or a higher priority"
    );
    let somebody_waited = others(agent).iter().any(|other| other.waited_ms > 0);
    let level = if somebody_waited { Level::Warning } else { Level::Note };
    Some(Finding { level, ..Finding::warning("one agent", what).remedy(remedy).by(who) })
}

/// No agent waited long, but all of them waited.
fn full(audit: &PoolAudit) -> Option<Finding> {
    let waiting: u64 = audit.agents.iter().map(|agent| agent.waiting).sum();
    let each = audit.waited_ms.checked_div(audit.calls.saturating_add(waiting))?;
    let mut waited = audit.agents.iter().filter(|agent| agent.waited_ms > 0);
    // The provider's refusals are a finding of their own.
    let is_refused = |agent: &AgentAudit| {
        matches!(agent.waited_for.as_deref(), Some("pause" | "return_window" | "probe"))
    };
    if waited.clone().all(is_refused) {
        return None;
    }
    if each < SHORT_MS || audit.limits.iter().all(|limit| limit.stated.is_none()) {
        return None;
    }
    let (all, each) = (length(audit.waited_ms), length(each));
    let what =
        format!("calls waited {all} in total, {each} on average: the limits were full at times");
    let remedy =
        if waited.all(|agent| agent.waits_for_slots) { waits::SLOTS } else { relief(audit) };
    Some(Finding::note("contention", what).remedy(remedy))
}

/// No call waited long, but the busiest period used all that is usable.
fn used_up(audit: &PoolAudit) -> Option<Finding> {
    let limit = audit.limits.iter().find(|l| l.peak_usable.is_some_and(|most| l.peak >= most))?;
    let (name, peak) = (&limit.limit, shown(limit, limit.peak));
    let usable = shown(limit, limit.peak_usable?);
    let what = format!("{name}: the busiest period used {peak} of {usable} usable");
    Some(Finding::note("contention", what).remedy(relief(audit)))
}

/// The provider stopped the pool: no limit changes that.
fn stops(audit: &PoolAudit, incidents: &Incidents) -> Option<Finding> {
    let times = match audit.stops {
        0 => return None,
        1 => "once".to_owned(),
        n => format!("{n} times"),
    };
    let what = format!("the provider stopped the pool {times}");
    if !incidents.is_stopped {
        return Some(Finding::note("stopped", format!("{what}; it was resumed")));
    }
    let remedy = format!("{}, then `standpipe resume {}`", Refused::FIX_ACCOUNT, audit.pool);
    Some(Finding::warning("stopped", what).remedy(remedy))
}

/// The provider refused calls, other than by stopping the pool.
fn refusals(audit: &PoolAudit, incidents: &Incidents) -> Option<Finding> {
    if audit.refused <= audit.stops {
        return None;
    }
    let most = audit.agents.iter().filter(|agent| agent.refused > 0);
    let most = most.max_by_key(|agent| agent.refused);
    let who = match most {
        Some(agent) if agent.refused == audit.refused => format!(" of {}", agent.agent),
        Some(agent) => format!(", {} of them of {}", agent.refused, agent.agent),
        None => String::new(),
    };
    let what = match audit.stops {
        0 => format!("the provider refused {}{who}", counted(audit.refused, "call")),
        // Whose calls stopped the pool is not counted by agent.
        stops => format!("the provider refused {} more", counted(audit.refused - stops, "call")),
    };
    let is_single = audit.refused - audit.stops == 1;
    let has_rates = audit.limits.iter().any(|limit| limit.stated.is_some());
    let remedy = if incidents.at_once > 0 && incidents.at_once >= audit.refused - audit.stops {
        TOO_MANY_AT_ONCE
    } else if is_single && has_rates {
        "if it happens again, lower the limit or raise its `margin`"
    } else if has_rates {
        "a limit is set too high, or some calls bypass Standpipe: lower the limit or raise its \
         `margin`; run `standpipe doctor` for details"
    } else {
        UNLIMITED
    };
    // One refusal may be chance, and doctor warns of more than one as well.
    let level = if is_single { Level::Note } else { Level::Warning };
    let finding = Finding { level, ..Finding::warning("429s", what).remedy(remedy) };
    Some(match most {
        Some(agent) => finding.by(&agent.agent),
        None => finding,
    })
}

/// Many calls were other tries of earlier ones.
fn retries(audit: &PoolAudit) -> Option<Finding> {
    let (retries, calls) = (audit.retries, audit.calls);
    let many = retries.saturating_mul(100) > calls.saturating_mul(RETRIES_PERCENT);
    if retries < 3 || !many {
        return None;
    }
    let what = format!("{retries} of {calls} calls were retries");
    let remedy = "find out why they failed: a retry costs as much as the first attempt";
    Some(Finding::warning("retries", what).remedy(remedy))
}

/// Something else than the agents above uses a notable part of a limit now.
fn by_others(audit: &PoolAudit) -> Vec<Finding> {
    let finding = |limit: &LimitAudit| {
        let (name, unit, period_ms) = (&limit.limit, &limit.unit, limit.period_ms);
        let what = others::what(name, unit, limit.by_others, limit.stated?);
        Some(Finding::warning("outside", what).remedy(others::remedy(period_ms)))
    };
    audit.limits.iter().filter(|limit| is_notable(limit)).filter_map(finding).collect()
}

fn is_notable(limit: &LimitAudit) -> bool {
    limit.stated.is_some_and(|stated| others::is_notable(limit.by_others, stated))
}

/// Something else than the agents above used the key during the time.
fn bypassed(audit: &PoolAudit, limit: &str, units: u64) -> Option<Finding> {
    if audit.limits.iter().any(|known| known.limit == limit && is_notable(known)) {
        return None;
    }
    let what = format!("the provider counted {units} of {limit} that did not go through Standpipe");
    let remedy =
        "route the other users of this key through Standpipe; run `standpipe doctor` for details";
    Some(Finding::warning("outside", what).remedy(remedy))
}

/// Leases ended without a report of what their calls used.
fn unsettled(reclaimed: u64) -> Option<Finding> {
    if reclaimed == 0 {
        return None;
    }
    let (leases, theirs) = match reclaimed {
        1 => ("1 lease".to_owned(), "its call"),
        n => (counted(n, "lease"), "their calls"),
    };
    let what = format!("{leases} ended unsettled: what {theirs} used is missing here");
    let remedy = "commit or cancel each lease, also when the call fails (`trap` in a script)";
    Some(Finding::note("unsettled", what).remedy(remedy))
}

/// There is nothing to compare with.
fn unstated(audit: &PoolAudit) -> Option<Finding> {
    if audit.parallel.is_some() || audit.limits.iter().any(|limit| limit.stated.is_some()) {
        return None;
    }
    let what = "no rate is stated for this pool, so there is nothing to compare with";
    let remedy = "state the provider's rate in standpipe.toml, for example requests = \"1000/min\"";
    Some(Finding::note("quota", what).remedy(remedy))
}

/// No agent is at risk. The share has the little that others use.
fn fine(audit: &PoolAudit) -> Finding {
    let used = |limit: &LimitAudit| {
        limit.average.plus(Rate { tenths: limit.by_others.saturating_mul(10) })
    };
    let stated = audit.limits.iter().filter_map(|limit| Some((limit, limit.stated?)));
    // Whole percents of two limits may be equal although one is used more.
    let what = match stated.max_by_key(|(limit, stated)| {
        u128::from(used(limit).tenths) * 1_000_000 / u128::from(*stated).max(1)
    }) {
        Some((limit, stated)) => format!(
            "with all agents{} active, they use {} of the quota ({}), below {AIM} %",
            if limit.by_others > 0 { " and others" } else { "" },
            share(used(limit).tenths.into(), u128::from(stated) * 10),
            limit.limit
        ),
        None => "only calls in flight are limited: there is no rate to exceed".to_owned(),
    };
    let finding = Finding::ok("contention", what);
    if audit.limits.iter().all(|limit| limit.stated.is_none()) {
        return finding;
    }
    finding.remedy("run it again when you add an agent")
}

fn length(ms: u64) -> String {
    format_ms(ms)
}

/// An amount of what a limit counts.
fn shown(limit: &LimitAudit, amount: u64) -> String {
    let unit = Unit::named(&limit.unit);
    unit.map_or_else(|| amount.to_string(), |unit| plain::amount(&unit, amount))
}

/// A sum of averages, to a tenth where that is significant.
fn average(limit: &LimitAudit, sum: Rate) -> String {
    match sum.tenths {
        0..1_000 if limit.unit != "usd" => sum.to_string(),
        tenths => shown(limit, tenths.saturating_add(5) / 10),
    }
}
