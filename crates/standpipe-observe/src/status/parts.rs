//! Calls on several pools, seen from each of them.
//!
//! A call on several pools takes a lease on one after another. While it waits on one pool it holds
//! its leases on the others, but it has not been made. So it waits on all of them: its leases
//! become queued calls, which name the pool that they wait on. A pool also shows what holds up the
//! pools that it lies within.

use std::collections::BTreeMap;

use super::{LeaseStatus, ParentStatus, PoolStatus, TicketStatus};

/// A call that waits on one of its pools.
struct WaitingCall {
    /// The pool that the caller named.
    named: String,
    /// The pool that it waits on.
    on: String,
    ticket: TicketStatus,
}

/// Completes the status of pools that were read together. `parents` are pools that others lie
/// within and that were read only for this.
pub fn join(pools: &mut [PoolStatus], parents: &[PoolStatus]) {
    let all = || pools.iter().chain(parents);
    let calls: Vec<WaitingCall> = all().flat_map(waiting_calls).collect();
    let above: BTreeMap<String, ParentStatus> = all()
        .filter(|pool| pool.pause.is_some() || pool.terminal.is_some())
        .map(|pool| (pool.pool.to_string(), ParentStatus::of(pool)))
        .collect();
    let within: BTreeMap<String, String> =
        all().filter_map(|pool| Some((pool.pool.to_string(), pool.within.clone()?))).collect();
    for pool in pools {
        for call in &calls {
            pool.wait_on(call);
        }
        let first = pool.within.as_ref();
        let chain = std::iter::successors(first, |name| within.get(*name));
        pool.parents =
            chain.take(within.len()).filter_map(|name| above.get(name).cloned()).collect();
    }
}

fn waiting_calls(pool: &PoolStatus) -> impl Iterator<Item = WaitingCall> {
    let on = pool.pool.to_string();
    pool.tickets.iter().filter_map(move |ticket| {
        let named = ticket.part_of.clone()?;
        Some(WaitingCall { named, on: on.clone(), ticket: ticket.clone() })
    })
}

impl PoolStatus {
    /// Shows the lease that a waiting call holds here as the queued call that it is.
    fn wait_on(&mut self, call: &WaitingCall) {
        let name = self.pool.to_string();
        if name == call.on {
            return;
        }
        let is_its = |lease: &LeaseStatus| {
            let named = lease.part_of.as_deref().unwrap_or(&name);
            named == call.named && lease.agent == call.ticket.agent && lease.pid == call.ticket.pid
        };
        // The newest: calls of the same process that were admitted everywhere are older.
        let Some(at) = self.leases.iter().rposition(is_its) else { return };
        let lease = self.leases.remove(at);
        self.in_flight = self.in_flight.saturating_sub(1);
        self.waiting += 1;
        if let Some(agent) = self.agents.iter_mut().find(|agent| agent.name == lease.agent) {
            agent.in_flight = agent.in_flight.saturating_sub(1);
            agent.waiting += 1;
        }
        self.tickets.push(TicketStatus {
            on: Some(call.on.clone()),
            cost: lease.cost,
            position: self.tickets.len() + 1,
            since: lease.since,
            waits_ms: lease.age_ms,
            part_of: lease.part_of,
            ..call.ticket.clone()
        });
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
            "waiting_for": null, "part_of": named,
        });
        serde_json::from_value(ticket).unwrap()
    }

    #[test]
    fn a_call_that_waits_on_the_parent_waits_on_the_child_too() {
        let (mut child, mut parent) = child_and_parent();
        parent.tickets.push(waiting("stuck", "a/m"));
        join(std::slice::from_mut(&mut child), &[parent]);
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
        join(std::slice::from_mut(&mut child), &[parent]);
        assert_eq!((child.in_flight, child.waiting), (2, 0));
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
        join(std::slice::from_mut(&mut child), &[parent]);
        assert_eq!(child.parents[0].pool, "a/org");
        assert_eq!(child.state().as_str(), "paused");
    }
}
