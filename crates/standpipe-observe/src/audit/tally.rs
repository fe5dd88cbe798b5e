//! Adds up the journal's events by pool and agent.

mod measure;

use std::collections::BTreeMap;

use standpipe_core::{Priority, Unit};
use standpipe_store::PoolName;

use self::measure::{Measure, measures};
use super::risk::Incidents;
use super::series::Series;
use super::{AIM, AgentAudit, AgentRate, LimitAudit, Parts, PoolAudit, Rate, risk};
use crate::amount::percent;
use crate::journal::{Event, EventData, Usage};
use crate::status::{AgentStatus, Label, LimitKind, PoolStatus};
use crate::time::Timestamp;

/// How often a running process writes what its calls used.
const WRITTEN_EVERY_MS: u64 = 10_000;
/// How far the clocks of a store and of the calendar may be apart.
const SKEW_MS: u64 = 1_000;

/// The totals of all pools.
#[derive(Debug, Default)]
pub(super) struct JournalTotals {
    pools: BTreeMap<String, Pool>,
    /// By pool: what a million of each unit costs, in millionths of a dollar.
    prices: BTreeMap<String, Prices>,
}

/// What a million of each unit costs, in millionths of a dollar.
pub type Prices = BTreeMap<Unit, u64>;

/// The totals of one pool.
#[derive(Debug, Default)]
struct Pool {
    /// By mode: in shadow mode, and while calls are held back.
    modes: [BTreeMap<String, Agent>; 2],
    overloads: u64,
    stops: u64,
    incidents: Incidents,
    /// By agent: when a process last wrote what it did.
    written: BTreeMap<String, Timestamp>,
    /// By agent: refusals for a reason of quota, which are recorded at once.
    throttles: BTreeMap<String, u64>,
    /// When the last refusal was recorded.
    throttled_at: Option<Timestamp>,
}

/// The totals of one agent on a pool.
#[derive(Debug, Default)]
struct Agent {
    models: Vec<String>,
    /// Calls that were admitted, with those that were cancelled.
    admissions: u64,
    cancelled: u64,
    retries: u64,
    refused: u64,
    /// As calls that ended report it.
    waited_ms: u64,
    longest_ms: u64,
    /// Calls that wait now.
    waiting: u64,
    /// Calls that are in flight now.
    in_flight: u64,
    /// Calls that were not admitted, by reason.
    not_admitted_for: BTreeMap<String, u64>,
    priority: Option<Label<Priority>>,
    /// By reason, and whether it was for a slot.
    waited_for: BTreeMap<(String, bool), u64>,
    gave_up: u64,
    admitted: Series,
    units: BTreeMap<String, Series>,
    parts: Parts,
}

impl JournalTotals {
    pub(super) fn new(prices: BTreeMap<String, Prices>) -> Self {
        Self { prices, ..Self::default() }
    }

    pub(super) fn add(&mut self, event: Event) {
        let prices = self.prices.get(&event.pool);
        let pool = self.pools.entry(event.pool).or_default();
        match event.what {
            EventData::Usage(mut usage) => {
                if let Some(prices) = prices {
                    // Costs that calls reported, and computed costs of the others.
                    let cost = cost(prices, &usage);
                    let reported = usage.units.entry("usd".to_owned()).or_default();
                    *reported = reported.saturating_add(cost);
                }
                pool.written.insert(usage.agent.clone(), event.at);
                pool.agent(&usage.agent, usage.enforced).used(&usage);
            }
            EventData::Wait {
                agent,
                reason,
                limit,
                also,
                ended,
                count,
                waited_ms,
                longest_ms,
                ..
            } => {
                // In shadow mode no call waits.
                let agent = pool.agent(&agent, true);
                let others = also.iter().map(|part| part.waited_ms).fold(0, u64::saturating_add);
                agent.add_wait(reason, limit.as_deref(), waited_ms.saturating_sub(others));
                for part in also {
                    agent.add_wait(part.reason, part.limit.as_deref(), part.waited_ms);
                }
                agent.longest_ms = agent.longest_ms.max(longest_ms);
                let late = if ended == "refused" { count } else { 0 };
                agent.gave_up = agent.gave_up.saturating_add(late);
            }
            EventData::Throttle { agent, about, .. } => {
                pool.throttled_at = pool.throttled_at.max(Some(event.at));
                if let Some(agent) = agent.filter(|_| about != "overload") {
                    *pool.throttles.entry(agent).or_default() += 1;
                }
                pool.overloads += u64::from(about == "overload");
                pool.stops += u64::from(about == "terminal");
                pool.incidents.refusals += 1;
                pool.incidents.at_once += u64::from(about == "concurrency");
            }
            EventData::Pause { by: Some(by), .. } => drop(pool.incidents.paused_by.insert(by)),
            EventData::ClientRetry { .. } => pool.incidents.client_retries = true,
            EventData::Reclaim { .. } => pool.incidents.reclaimed += 1,
            EventData::Outside { limit, units, .. } => {
                let seen = pool.incidents.outside.entry(limit).or_default();
                *seen = seen.saturating_add(units);
            }
            _ => {}
        }
    }

    /// Until when the journal is complete, if a running process has not written its last calls.
    pub(super) fn complete_until(
        &self,
        name: &PoolName,
        status: Option<&PoolStatus>,
        until: Timestamp,
    ) -> Option<Timestamp> {
        let (status, none) = (status?, Pool::default());
        let pool = self.pools.get(name.as_str()).unwrap_or(&none);
        let is_behind = pool.lacks_refusal(status, until)
            || status.agents.iter().any(|agent| pool.is_behind(agent, status, until));
        let millis = until.millis.saturating_sub(WRITTEN_EVERY_MS);
        is_behind.then_some(Timestamp { millis })
    }

    /// All that is to be reported of one pool. `status` is how it stands, if there is still such a
    /// pool.
    pub(super) fn audit(&mut self, name: &PoolName, status: Option<&PoolStatus>) -> PoolAudit {
        let mut pool = self.pools.remove(name.as_str()).unwrap_or_default();
        let enforce = status.is_none_or(|status| status.enforce);
        let (mut known, left_out) = pool.of_mode(enforce);
        status.into_iter().for_each(|status| add_present(&mut known, status, &pool.written));
        pool.add_throttles(&mut known);
        known.retain(|_, agent| agent.did_something());
        known.values_mut().for_each(Agent::sort);
        let sent: Vec<Series> = known.values().map(Agent::sent_series).collect();
        let sent = Series::sum(&sent);
        let measures = measures(status);
        let mut agents: Vec<AgentAudit> =
            known.iter().map(|(name, agent)| agent.audit(name, &measures)).collect();
        agents.sort_by(|one, other| (other.calls, &one.agent).cmp(&(one.calls, &other.agent)));
        let together =
            (0..).zip(&measures).map(|(at, measure)| together(&known, measure, &agents, at));
        let all =
            |figure: fn(&AgentAudit) -> u64| agents.iter().map(figure).fold(0, u64::saturating_add);
        let moment = |second: u64| Timestamp { millis: second.saturating_mul(1_000) };
        let mut audit = PoolAudit {
            pool: name.clone(),
            within: status.and_then(|status| status.within.clone()),
            enforce,
            complete_until: None,
            left_out,
            calls: all(|agent| agent.calls),
            retries: all(|agent| agent.retries),
            refused: all(|agent| agent.refused),
            overloads: pool.overloads,
            stops: pool.stops,
            waited_ms: all(|agent| agent.waited_ms),
            first: sent.ends().map(|(first, _)| moment(first)),
            last: sent.ends().map(|(_, last)| moment(last)),
            limits: together.collect(),
            parallel: status.and_then(parallel),
            agents,
            findings: Vec::new(),
        };
        pool.incidents.is_stopped = status.is_some_and(|status| status.terminal.is_some());
        audit.findings = risk::findings(&audit, &pool.incidents);
        audit
    }
}

impl Pool {
    /// Whether an agent did something that no process has written yet.
    fn is_behind(&self, agent: &AgentStatus, status: &PoolStatus, until: Timestamp) -> bool {
        let admitted = status.leases.iter().filter(|lease| lease.agent == agent.name);
        let last = match agent.in_flight + agent.waiting {
            0 => Some(until.millis.saturating_sub(agent.active_ms)),
            _ => admitted.map(|lease| lease.since.millis).max(),
        };
        let written = self.written.get(&agent.name).map_or(0, |written| written.millis);
        // What is older and not here is in the journal of another machine.
        let recent = until.millis.saturating_sub(WRITTEN_EVERY_MS + SKEW_MS)..;
        let last = last.filter(|last| !agent.never_called && recent.contains(last));
        last.is_some_and(|last| last > written.saturating_add(SKEW_MS))
    }

    /// Whether the pool knows a recent refusal that no process has written yet.
    fn lacks_refusal(&self, status: &PoolStatus, until: Timestamp) -> bool {
        let recent = until.millis.saturating_sub(WRITTEN_EVERY_MS + SKEW_MS);
        let written = self.throttled_at.map_or(0, |at| at.millis.saturating_add(SKEW_MS));
        let incident = status.trouble.incident.as_ref();
        incident.is_some_and(|seen| seen.at.millis >= recent && seen.at.millis > written)
    }

    /// A running process writes the outcome of its calls every ten seconds, but a refusal at once.
    fn add_throttles(&self, known: &mut BTreeMap<String, Agent>) {
        for (agent, count) in &self.throttles {
            let agent = known.entry(agent.clone()).or_default();
            agent.refused = agent.refused.max(*count);
        }
    }

    fn agent(&mut self, name: &str, enforced: bool) -> &mut Agent {
        let agents = &mut self.modes[usize::from(enforced)];
        agents.entry(name.to_owned()).or_default()
    }

    /// The agents as they are in the pool's present mode, and how many calls of the other are left
    /// out. Where there is nothing of the present one, the other has to do.
    fn of_mode(&mut self, enforce: bool) -> (BTreeMap<String, Agent>, u64) {
        let [shadow, held_back] = std::mem::take(&mut self.modes);
        let (present, other) = if enforce { (held_back, shadow) } else { (shadow, held_back) };
        let calls = |agents: &BTreeMap<String, Agent>| {
            agents.values().fold(0_u64, |sum, agent| sum.saturating_add(agent.calls()))
        };
        match calls(&present) {
            0 if calls(&other) > 0 => (other, 0),
            _ => (present, calls(&other)),
        }
    }
}

/// What calls cost by what they used, in millionths of a dollar.
fn cost(prices: &Prices, usage: &Usage) -> u64 {
    let each = prices.iter().map(|(unit, price)| {
        let units = usage.units.get(unit.name()).copied().unwrap_or(0);
        u128::from(units) * u128::from(*price)
    });
    let total = each.fold(0, u128::saturating_add).div_ceil(1_000_000);
    u64::try_from(total).unwrap_or(u64::MAX)
}

/// All agents on the limit that is the `at`-th of each.
fn together(
    known: &BTreeMap<String, Agent>,
    measure: &Measure,
    agents: &[AgentAudit],
    at: usize,
) -> LimitAudit {
    let Measure { limit, unit, period_ms, stated, peak_stated, peak_usable, by_others } = measure;
    let each: Vec<Series> = known.values().map(|agent| agent.series(unit)).collect();
    let (peak, peak_at) = Series::sum(&each).peak(*period_ms);
    let averages = agents.iter().filter_map(|agent| agent.rates.get(at));
    let average = averages.fold(Rate::default(), |sum, rate| sum.plus(rate.average));
    LimitAudit {
        limit: limit.clone(),
        unit: unit.clone(),
        period_ms: *period_ms,
        stated: *stated,
        aim: stated.map(|stated| stated / 100 * AIM + stated % 100 * AIM / 100),
        average,
        average_percent: stated.map(|stated| average.percent_of(stated)),
        peak,
        peak_stated: *peak_stated,
        peak_usable: *peak_usable,
        peak_percent: peak_stated.map(|stated| percent(u128::from(peak), u128::from(stated))),
        peak_at: peak_at.map(|second| Timestamp { millis: second.saturating_mul(1_000) }),
        by_others: *by_others,
    }
}

/// Adds what a pool shows now and the journal does not have yet: calls in flight, calls that wait,
/// and tiers. `written` has when a process last wrote what an agent did.
fn add_present(
    known: &mut BTreeMap<String, Agent>,
    status: &PoolStatus,
    written: &BTreeMap<String, Timestamp>,
) {
    let recent = status.at.millis.saturating_sub(WRITTEN_EVERY_MS);
    for lease in &status.leases {
        let agent = known.entry(lease.agent.clone()).or_default();
        agent.in_flight += 1;
        let written = written.get(&lease.agent).map(|at| at.millis);
        // An older call is in the journal, unless another machine made it.
        if written.is_none_or(|written| lease.since.millis > written.max(recent)) {
            agent.admissions = agent.admissions.saturating_add(1);
            agent.parts.calls += u64::from(lease.part_of.is_some());
            agent.admitted.add(lease.since.millis / 1_000, 1);
        }
    }
    for ticket in status.tickets.iter().filter(|_| status.enforce) {
        let agent = known.entry(ticket.agent.clone()).or_default();
        agent.waiting += 1;
        agent.longest_ms = agent.longest_ms.max(ticket.waits_ms);
        let reason = ticket.reason.map_or("order", |reason| reason.as_str());
        agent.add_wait(reason.to_owned(), ticket.limit.as_deref(), ticket.waits_ms);
    }
    for agent in &status.agents {
        if let Some(known) = known.get_mut(&agent.name) {
            known.priority = Some(agent.priority);
        }
    }
}

impl Agent {
    /// Calls that were sent, or will be: the one meaning of a call in an audit.
    const fn calls(&self) -> u64 {
        self.admissions.saturating_sub(self.cancelled)
    }

    fn did_something(&self) -> bool {
        let waits = [self.gave_up, self.waiting, self.waited_ms];
        let counts = [self.calls(), self.cancelled, self.refused, self.in_flight];
        let counts = counts.into_iter().chain(waits);
        let used = self.units.values().any(|series| series.total() > 0);
        let was_denied = !self.not_admitted_for.is_empty();
        used || was_denied
            || !self.waited_for.is_empty()
            || counts.into_iter().any(|count| count > 0)
    }

    /// Calls that timed out. One that waited may have been refused for another reason at the end.
    fn late(&self) -> u64 {
        let timed_out = self.not_admitted_for.get("deadline").copied().unwrap_or(0);
        // Lines of older versions have no reasons.
        let known = if self.not_admitted_for.is_empty() { self.gave_up } else { timed_out };
        self.gave_up.min(known)
    }

    fn not_admitted(&self) -> u64 {
        let all = self.not_admitted_for.values().fold(0, |sum: u64, n| sum.saturating_add(*n));
        all.max(self.late())
    }

    fn add_wait(&mut self, reason: String, limit: Option<&str>, waited_ms: u64) {
        let waited_for = self.waited_for.entry((reason, limit == Some("parallel"))).or_default();
        *waited_for = waited_for.saturating_add(waited_ms);
    }

    /// Calls in flight have recorded their waits, but not their use: the larger sum is the truth.
    fn all_waits_ms(&self) -> u64 {
        let by_reason = self.waited_for.values().fold(0, |sum: u64, ms| sum.saturating_add(*ms));
        self.waited_ms.max(by_reason).max(self.longest_ms)
    }

    fn used(&mut self, usage: &Usage) {
        self.admissions = self.admissions.saturating_add(usage.calls);
        self.cancelled = self.cancelled.saturating_add(usage.cancelled);
        self.retries = self.retries.saturating_add(usage.retries);
        self.refused = self.refused.saturating_add(usage.refused);
        self.waited_ms = self.waited_ms.saturating_add(usage.waited_ms);
        if usage.part {
            self.parts.add(usage);
        }
        for (reason, count) in &usage.refusals {
            let known = self.not_admitted_for.entry(reason.clone()).or_default();
            *known = known.saturating_add(*count);
        }
        if let Some(model) = usage.model.as_ref().filter(|model| !self.models.contains(model)) {
            self.models.push(model.clone());
        }
        let mut calls: Vec<(u64, u64)> = usage.seconds().collect();
        calls.iter().for_each(|(second, calls)| self.admitted.add(*second, *calls));
        if calls.is_empty() {
            // They were admitted before, maybe by another process: all ended about then.
            calls.push((usage.from.millis / 1_000, 1));
        }
        for (unit, amount) in &usage.units {
            self.units.entry(unit.clone()).or_default().spread(*amount, &calls);
        }
    }

    fn sort(&mut self) {
        self.models.sort_unstable();
        self.admitted = std::mem::take(&mut self.admitted).sorted();
        for series in self.units.values_mut() {
            *series = std::mem::take(series).sorted();
        }
    }

    /// What it used of a unit. Requests count when they are admitted: how many there were is only
    /// known later, and is the same as the calls but for those who make several with one.
    fn series(&self, unit: &str) -> Series {
        let ended = self.units.get(unit);
        if unit != "requests" {
            return ended.cloned().unwrap_or_default();
        }
        let requests = ended.map_or(0, Series::total).max(self.calls());
        self.admitted.with_total(requests)
    }

    /// Its calls. Which of the admissions were cancelled is not recorded.
    fn sent_series(&self) -> Series {
        self.admitted.with_total(self.calls())
    }

    fn audit(&self, name: &str, measures: &[Measure]) -> AgentAudit {
        let rate = |measure: &Measure| {
            let series = self.series(&measure.unit);
            let peak = series.peak(measure.period_ms).0;
            // An average is over whole minutes, which may have one more shorter period than fits.
            let most = Rate { tenths: peak.saturating_mul(10) };
            let average = series.average(measure.period_ms).min(most);
            AgentRate { limit: measure.limit.clone(), average, peak }
        };
        let waited_for = self.waited_for.iter().max_by_key(|(_, waited_ms)| **waited_ms);
        AgentAudit {
            agent: name.to_owned(),
            models: self.models.clone(),
            calls: self.calls(),
            parts: self.parts,
            cancelled: self.cancelled,
            retries: self.retries,
            refused: self.refused,
            waited_ms: self.all_waits_ms(),
            longest_ms: self.longest_ms,
            waited_for: waited_for.map(|((reason, _), _)| reason.clone()),
            waits_for_slots: waited_for.is_some_and(|((_, is_slot), _)| *is_slot),
            gave_up: self.late(),
            not_admitted: self.not_admitted(),
            not_admitted_for: self.not_admitted_for.clone(),
            in_flight: self.in_flight,
            waiting: self.waiting,
            priority: self.priority,
            rates: measures.iter().map(rate).collect(),
            units: self.units.iter().map(|(unit, used)| (unit.clone(), used.total())).collect(),
            micro_usd: self.units.get("usd").map(Series::total),
        }
    }
}

fn parallel(status: &PoolStatus) -> Option<u64> {
    status.limits.iter().find(|limit| limit.kind == LimitKind::Parallel).map(|limit| limit.amount)
}

#[cfg(test)]
mod tests;
