//! Calls on several pools, seen from each of them.
//!
//! A call on several pools takes a lease on one after another. While it waits on one pool it holds
//! its leases on the earlier ones, but it has not been made. So it waits on all of them: its leases
//! become queued calls, which name the pool that they wait on. The later pools have not been asked,
//! so the instant of one pool is only a bound, and the call has the latest one.
//!
//! A pool also shows what holds up the pools that it lies within.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::{LeaseHolder, LeaseStatus, ParentStatus, PoolStatus, TicketStatus};
use crate::lease_id::LeaseId;
use crate::refusal::When;

/// Returns when a pool would admit a queued call that has not asked it yet; `None` if that is now
/// or not known.
pub type Bound<'a> = &'a dyn Fn(&str, &TicketStatus) -> Option<When>;

/// The most calls whose other pools are asked.
const MAX_ASKED: usize = 16;

/// A call that waits on one of its pools.
struct WaitingCall {
    /// The pool that the caller named.
    named: String,
    /// The pool that it waits on.
    on: String,
    /// Its leases on earlier pools, by their names.
    holds: BTreeMap<String, LeaseId>,
    ticket: TicketStatus,
}

/// Which pool lies within which.
struct Family(BTreeMap<String, String>);

/// Completes the status of pools that were read together. `others` were read only for this: pools
/// that some of them lie within, or that their calls draw on as well.
pub fn join(pools: &mut [PoolStatus], others: &[PoolStatus], bound: Bound<'_>) {
    let all: Vec<&PoolStatus> = pools.iter().chain(others).collect();
    let family = Family::of(&all);
    let calls = waiting_calls(&all, &family, bound);
    let above: BTreeMap<String, ParentStatus> = all
        .iter()
        .filter(|pool| pool.pause.is_some() || pool.terminal.is_some())
        .map(|pool| (pool.pool.to_string(), ParentStatus::of(pool)))
        .collect();
    for pool in pools {
        for call in &calls {
            pool.wait_on(call);
        }
        let parents = family.ancestors(pool.pool.as_str());
        pool.parents = parents.filter_map(|name| above.get(name).cloned()).collect();
    }
}

impl Family {
    fn of(all: &[&PoolStatus]) -> Self {
        let parent = |pool: &&PoolStatus| Some((pool.pool.to_string(), pool.within.clone()?));
        Self(all.iter().filter_map(parent).collect())
    }

    /// The pools that a pool lies within, nearest first.
    fn ancestors<'a>(&'a self, pool: &'a str) -> impl Iterator<Item = &'a str> {
        let parent = |name: &&'a str| self.0.get(*name).map(String::as_str);
        // Two files can make a circle.
        std::iter::successors(Some(pool), parent).skip(1).take(self.0.len())
    }

    /// The place of a pool in the order in which a call asks its pools.
    fn rank<'a>(&self, pool: &'a str) -> (Reverse<usize>, &'a str) {
        (Reverse(self.ancestors(pool).count()), pool)
    }

    /// Adds the pools that these lie within.
    fn complete(&self, own: &str, also: &[String]) -> Vec<String> {
        let mut names = also.to_vec();
        for name in std::iter::once(own).chain(also.iter().map(String::as_str)) {
            for above in self.ancestors(name).filter(|above| *above != own) {
                if names.iter().all(|known| known != above) {
                    names.push(above.to_owned());
                }
            }
        }
        names
    }
}

/// The calls that wait on one of several pools, with what each of these says of them.
fn waiting_calls(all: &[&PoolStatus], family: &Family, bound: Bound<'_>) -> Vec<WaitingCall> {
    let tickets = all.iter().flat_map(|pool| pool.tickets.iter().map(move |one| (pool, one)));
    let several = tickets.filter(|(_, ticket)| !ticket.also.is_empty());
    let mut taken: BTreeSet<LeaseId> = BTreeSet::new();
    let call = |(at, (pool, ticket)): (usize, (&&PoolStatus, &TicketStatus))| {
        let (on, mut ticket) = (pool.pool.to_string(), ticket.clone());
        let named = ticket.part_of.clone().unwrap_or_else(|| on.clone());
        ticket.also = family.complete(&on, &ticket.also);
        let is_earlier = |name: &str| family.rank(name) < family.rank(&on);
        let holds = held(all, &ticket, (&named, &is_earlier), &mut taken);
        // Those are asked after this one.
        let later = ticket.also.clone().into_iter().filter(|name| !is_earlier(name));
        for name in later.filter(|_| at < MAX_ASKED) {
            let other = bound(&name, &ticket);
            if other.is_some_and(|other| ticket.when.raise(&other)) {
                ticket.bound_by = Some(name);
            }
        }
        WaitingCall { named, on, holds, ticket }
    };
    several.enumerate().map(call).collect()
}

/// The leases of a waiting call on pools that it asked earlier.
fn held(
    all: &[&PoolStatus],
    ticket: &TicketStatus,
    (named, is_earlier): (&str, &dyn Fn(&str) -> bool),
    taken: &mut BTreeSet<LeaseId>,
) -> BTreeMap<String, LeaseId> {
    let mut holds = BTreeMap::new();
    let earlier = ticket.also.iter().filter(|name| is_earlier(name));
    for name in earlier {
        let Some(pool) = all.iter().find(|pool| pool.pool.as_str() == name) else { continue };
        let is_its = |lease: &&LeaseStatus| {
            let of = lease.part_of.as_deref().unwrap_or(name);
            // A lease with a time to live has no process.
            let is_same =
                lease.pid == ticket.pid || lease.pid.is_none() && lease.holder == LeaseHolder::Ttl;
            let is_free = !taken.contains(&lease.id);
            is_free && is_same && of == named && lease.agent == ticket.agent
        };
        // The newest: calls of the same process that were admitted everywhere are older.
        if let Some(lease) = pool.leases.iter().rfind(is_its) {
            taken.insert(lease.id.clone());
            holds.insert(name.clone(), lease.id.clone());
        }
    }
    holds
}

impl PoolStatus {
    /// Shows a call that waits on one of several pools as the queued call that it is.
    fn wait_on(&mut self, call: &WaitingCall) {
        let name = self.pool.to_string();
        if name == call.on {
            let same = |ticket: &&mut TicketStatus| ticket.position == call.ticket.position;
            if let Some(ticket) = self.tickets.iter_mut().find(same) {
                ticket.clone_from(&call.ticket);
            }
            return;
        }
        let its = |lease: &LeaseStatus| call.holds.get(&name) == Some(&lease.id);
        let lease = self.leases.iter().position(its).map(|at| self.leases.remove(at));
        if lease.is_none() && name != call.named {
            return;
        }
        self.in_flight = self.in_flight.saturating_sub(usize::from(lease.is_some()));
        self.waiting += 1;
        let mut agents = self.agents.iter_mut();
        if let Some(agent) = agents.find(|agent| agent.name == call.ticket.agent) {
            agent.waiting += 1;
            agent.in_flight = agent.in_flight.saturating_sub(usize::from(lease.is_some()));
            if lease.is_some() && !agent.keeps_for.contains(&call.on) {
                agent.keeps_for.push(call.on.clone());
            }
        }
        self.tickets.push(call.seen_from(&name, lease, self.tickets.len() + 1));
    }
}

impl WaitingCall {
    /// The queued call as another one of its pools shows it.
    fn seen_from(&self, pool: &str, lease: Option<LeaseStatus>, position: usize) -> TicketStatus {
        let others = self.ticket.also.iter().filter(|name| *name != pool);
        let also = std::iter::once(&self.on).chain(others).cloned().collect();
        let part_of = Some(self.named.clone()).filter(|named| named != pool);
        let ticket = self.ticket.clone();
        let (on, holds) = (Some(self.on.clone()), lease.is_some());
        let ticket = TicketStatus { on, holds, also, part_of, position, ..ticket };
        match lease {
            Some(lease) => TicketStatus {
                cost: lease.cost,
                since: lease.since,
                waits_ms: lease.age_ms,
                ..ticket
            },
            None => ticket,
        }
    }
}

impl ParentStatus {
    fn of(pool: &PoolStatus) -> Self {
        let (pause, terminal) = (pool.pause.clone(), pool.terminal.clone());
        Self { pool: pool.pool.to_string(), pause, terminal }
    }
}

#[cfg(test)]
mod tests {
    use standpipe_core::{Limit, Rule};

    use super::*;
    use crate::testing::TestPool;

    fn child_and_parent() -> (PoolStatus, PoolStatus) {
        let pool = || TestPool::new(vec![Limit::new(Rule::Parallel { amount: 5 })]);
        let mut child = pool();
        child.admit("busy", None);
        child.admit("stuck", None);
        let mut child = child.status();
        child.pool = "a/m".parse().unwrap();
        child.within = Some("a/org".to_owned());
        let mut parent = pool();
        parent.admit("busy", None);
        let mut parent = parent.status();
        parent.pool = "a/org".parse().unwrap();
        (child, parent)
    }

    fn waiting(agent: &str, named: &str) -> TicketStatus {
        let ticket = serde_json::json!({
            "agent": agent, "priority": "standard", "cost": {"requests": 1}, "position": 1,
            "since": "2026-01-31T12:00:00.000Z", "waits_ms": 5, "limit": "parallel", "short_by": 1,
            "reason": "limit", "pid": null, "deadline_ms": 1, "model": null, "task": null,
            "until": null, "until_ms": null, "not_before": null, "not_before_ms": null,
            "waiting_for": null, "part_of": named, "also": [named],
        });
        serde_json::from_value(ticket).unwrap()
    }

    #[test]
    fn a_call_that_waits_on_the_parent_waits_on_the_child_too() {
        let (mut child, mut parent) = child_and_parent();
        parent.tickets.push(waiting("stuck", "a/m"));
        join(std::slice::from_mut(&mut child), &[parent], &|_, _| None);
        assert_eq!((child.in_flight, child.waiting), (1, 1));
        assert_eq!(child.leases.len(), 1);
        let [ticket] = &child.tickets[..] else { panic!("{:?}", child.tickets) };
        assert_eq!((ticket.agent.as_str(), ticket.on.as_deref()), ("stuck", Some("a/org")));
        let stuck = child.agents.iter().find(|agent| agent.name == "stuck").unwrap();
        assert_eq!((stuck.in_flight, stuck.waiting), (0, 1));
    }

    #[test]
    fn a_call_of_another_agent_or_pool_stays_in_flight() {
        let (mut child, mut parent) = child_and_parent();
        parent.tickets.push(waiting("other", "a/m"));
        parent.tickets.push(waiting("stuck", "a/n"));
        join(std::slice::from_mut(&mut child), &[parent], &|_, _| None);
        assert_eq!(child.in_flight, 2);
        let [ticket] = &child.tickets[..] else { panic!("{:?}", child.tickets) };
        assert_eq!((ticket.agent.as_str(), ticket.holds), ("other", false));
    }

    fn of_set(mut pool: PoolStatus, name: &str) -> PoolStatus {
        pool.pool = name.parse().unwrap();
        pool
    }

    /// A lower bound so far ahead.
    fn bound(seconds: u64) -> When {
        let at = "2026-01-31T12:00:00.000Z".parse().unwrap();
        When::new(Some((at, seconds * 1_000)), false, None)
    }

    #[test]
    fn the_latest_bound_of_all_pools_counts() {
        let pool = || TestPool::new(vec![Limit::new(Rule::Parallel { amount: 5 })]).status();
        let (mut x, y) = (of_set(pool(), "mu/x"), of_set(pool(), "mu/y"));
        let ticket = TicketStatus { also: vec!["mu/y".to_owned()], ..waiting("second", "mu/x") };
        x.tickets.push(TicketStatus { part_of: None, when: bound(7), ..ticket.clone() });
        x.tickets.push(TicketStatus { when: bound(30), position: 2, ..ticket });
        let mut both = [x, y];
        join(&mut both, &[], &|pool, _| (pool == "mu/y").then(|| bound(19)));
        let [first, later] = &both[0].tickets[..] else { panic!("{:?}", both[0].tickets) };
        assert_eq!(
            (first.when.not_before_ms, first.bound_by.as_deref()),
            (Some(19_000), Some("mu/y"))
        );
        assert_eq!((later.when.not_before_ms, &later.bound_by), (Some(30_000), &None));
        assert_eq!(both[1].tickets, [], "mu/y has not been asked");
    }

    #[test]
    fn a_pool_that_is_asked_later_holds_nothing_for_the_call() {
        let pool = || {
            let mut pool = TestPool::new(vec![Limit::new(Rule::Parallel { amount: 5 })]);
            pool.admit("second", None);
            pool.status()
        };
        let (mut x, mut y) = (of_set(pool(), "mu/x"), of_set(pool(), "mu/y"));
        y.leases[0].part_of = Some("mu/x".to_owned());
        let set = |other: &str| vec![other.to_owned()];
        x.tickets.push(TicketStatus {
            part_of: None,
            also: set("mu/y"),
            ..waiting("second", "mu/x")
        });
        let mut both = [x.clone(), y.clone()];
        join(&mut both, &[], &|_, _| None);
        assert_eq!((both[0].in_flight, both[1].in_flight), (1, 1), "an earlier call of second");
        // It waits on the later one.
        x.tickets.clear();
        y.tickets.push(TicketStatus { also: set("mu/x"), ..waiting("second", "mu/x") });
        let mut both = [x, y];
        join(&mut both, &[], &|_, _| None);
        assert_eq!((both[0].in_flight, both[1].in_flight), (0, 1));
        let [kept] = &both[0].tickets[..] else { panic!("{:?}", both[0].tickets) };
        assert_eq!((kept.on.as_deref(), kept.holds, &kept.part_of), (Some("mu/y"), true, &None));
        assert_eq!(both[0].agents[0].keeps_for, ["mu/y"]);
    }

    #[test]
    fn what_pauses_the_parent_is_shown_on_the_child() {
        let (mut child, mut parent) = child_and_parent();
        parent.pause = Some(super::super::Pause {
            until: parent.at,
            for_ms: 5,
            by: Some("ops".to_owned()),
            at: None,
        });
        join(std::slice::from_mut(&mut child), &[parent], &|_, _| None);
        assert_eq!(child.parents[0].pool, "a/org");
        assert_eq!(child.state().as_str(), "paused");
    }
}
