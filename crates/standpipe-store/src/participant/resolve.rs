//! Outcomes read off a state: of events that the replica jumped over, and of events that would
//! change nothing.
//!
//! This module only reads. It returns the answer that applying the event gave its sender, as far as
//! the state still shows it.

use standpipe_core::{
    Action, Answer, CallId, Commit, Configured, Decision, Event, Facts, Found, Grant, IdRecord,
    Instant, Key, LeaseAnswer, LeaseOwner, Notice, Outcome, Queued, Reason, Refusal, Reserve,
    State,
};

use super::own_events::OwnEvents;
use super::pending::PendingEvent;
use crate::replica::Replica;

/// Returns the outcome of an event that is in the log before the replica's position.
pub(super) fn outcome(replica: &Replica, event: &Event) -> Outcome {
    let (state, now) = (replica.state(), replica.now());
    let ended = |lease: Key| match state.find(lease) {
        Found::Lease => LeaseAnswer::Lives(state.lease_ends(lease)),
        Found::Ticket | Found::Absent => LeaseAnswer::Ended,
    };
    outcome_of(match &event.action {
        Action::Reserve(reserve) => Answer::Decided(decision(state, event.key, reserve, now)),
        Action::Commit(Commit { lease, .. })
        | Action::Cancel { lease }
        | Action::Redate { lease }
        | Action::Withdraw { lease }
        | Action::Heartbeat { lease: Some(lease), .. } => Answer::Lease(ended(*lease)),
        Action::Throttled(throttled) => match throttled.lease {
            Some(lease) => Answer::Lease(ended(lease)),
            None => Answer::Done,
        },
        Action::Configure(configure) => {
            let same = state.facts().config.as_ref() == Some(&configure.config);
            Answer::Configured(if same { Configured::Applied } else { Configured::Kept })
        }
        _ => Answer::Done,
    })
}

/// Returns whether an event created the lease that its outcome grants.
///
/// It did if the lease has the event's own key, or the key of a ticket that waited until this
/// event. Any other event with the same call id receives a lease that already existed.
pub(super) fn created(key: Key, outcome: &Outcome) -> bool {
    let Answer::Decided(Decision::Admit(grant)) = &outcome.answer else { return false };
    let became =
        |notice: &Notice| matches!(notice, Notice::Waited { ticket, .. } if *ticket == grant.lease);
    grant.lease == key || outcome.notices.iter().any(became)
}

/// Records an event that the replica jumped over.
///
/// Its notices are unknown, so a lease of its session counts as created by it.
pub(super) fn record(
    own_events: &mut OwnEvents,
    replica: &Replica,
    pending: &PendingEvent,
    outcome: &Outcome,
) {
    let event = &pending.event;
    let created = match &outcome.answer {
        Answer::Decided(Decision::Admit(grant)) => {
            let owner = replica.state().facts().leases.get(&grant.lease).map(|lease| lease.owner);
            let session = event.key.session;
            grant.lease.session == session || owner == Some(LeaseOwner::Session(session))
        }
        _ => false,
    };
    own_events.record(event, pending.body.take(), replica.now(), &outcome.answer, created);
}

/// Returns the outcome of an action that changes nothing and needs no entry, or `None` if it must
/// be appended.
pub(super) fn no_op_outcome(replica: &Replica, action: &Action) -> Option<Outcome> {
    let (state, now) = (replica.state(), replica.now());
    match action {
        Action::Reserve(reserve) => {
            let Decision::Refuse(refusal) = state.peek(reserve, now) else { return None };
            let no_op = !state.refusal_leaves_trace(reserve, now);
            no_op.then(|| outcome_of(Answer::Decided(Decision::Refuse(refusal))))
        }
        Action::Configure(configure) if !state.would_configure(configure, now) => {
            // Applying it to a copy gives the exact answer; configurations are rare.
            let key = Key { session: u64::MAX, number: 1 };
            let outcome = state.clone().apply(&Event { key, action: action.clone() }, now);
            Some(outcome_of(outcome.answer))
        }
        _ => None,
    }
}

/// Returns the decision on a reserve: a lease means admitted, a ticket queued, neither refused.
fn decision(state: &State, key: Key, reserve: &Reserve, now: Instant) -> Decision {
    let known = known_id(state.facts(), reserve);
    if let Some(IdRecord { first, ended: Some(_) }) = known {
        return Decision::Admit(grant(state, first, true));
    }
    let candidates = [known.map(|known| known.first), reserve.ticket, Some(key)];
    for found in candidates.into_iter().flatten() {
        match state.find(found) {
            Found::Lease => return Decision::Admit(grant(state, found, false)),
            Found::Ticket => return Decision::Wait(queued(state, found, reserve, now)),
            Found::Absent => {}
        }
    }
    Decision::Refuse(match state.peek(reserve, now) {
        Decision::Refuse(refusal) | Decision::Wait(Queued { refusal, .. }) => refusal,
        Decision::Admit(_) => retry_now(now),
    })
}

fn known_id(facts: &Facts, reserve: &Reserve) -> Option<IdRecord> {
    facts.ids.get(&CallId::of(reserve)?).copied()
}

fn grant(state: &State, lease: Key, settled: bool) -> Grant {
    Grant {
        lease,
        expires_at: if settled { state.clock() } else { state.lease_ends(lease) },
        settled,
        instead_of: None,
    }
}

fn queued(state: &State, ticket: Key, reserve: &Reserve, now: Instant) -> Queued {
    let claim = Reserve { ticket: Some(ticket), ..reserve.clone() };
    if let Decision::Wait(queued) = state.peek(&claim, now) {
        return queued;
    }
    let before = state.facts().tickets.values().take_while(|waiting| waiting.key != ticket);
    Queued { ticket, position: before.count() + 1, refusal: retry_now(now) }
}

/// Returns a refusal whose cause no longer holds: the caller may retry at once.
const fn retry_now(now: Instant) -> Refusal {
    let (reason, limit, until) = (Reason::Order, None, Some(now));
    Refusal { reason, limit, short_by: 0, until, exact: false, behind: None }
}

const fn outcome_of(answer: Answer) -> Outcome {
    Outcome { answer, notices: Vec::new(), wake: Vec::new(), next: None }
}
