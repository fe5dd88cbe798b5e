//! Outcomes that are read off a state instead of being seen: of events that a replica jumped over,
//! and of events that would change nothing.
//!
//! Only reads. What it answers is what the event's sender would have been told, as far as the state
//! still knows.

use standpipe_core::{
    Action, Answer, Commit, Configured, Decision, Event, Facts, Found, Grant, Hold, Instant, Key,
    Known, LeaseAnswer, Outcome, Reason, Refusal, Reserve, State,
};

use crate::replica::Replica;

/// What came of an event that is in the log before the replica's position.
pub(super) fn outcome(replica: &Replica, event: &Event) -> Outcome {
    let (state, now) = (replica.state(), replica.now());
    let ended = |lease: Key| match state.find(lease) {
        Found::Lease => LeaseAnswer::Lives(state.lease_ends(lease)),
        Found::Ticket | Found::Neither => LeaseAnswer::Ended,
    };
    outcome_of(match &event.action {
        Action::Reserve(reserve) => Answer::Decided(decision(state, event.key, reserve, now)),
        Action::Commit(Commit { lease, .. })
        | Action::Cancel { lease }
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

/// The outcome of an action that would leave no trace, if it would leave none.
pub(super) fn without_trace(replica: &Replica, action: &Action) -> Option<Outcome> {
    let (state, now) = (replica.state(), replica.now());
    match action {
        Action::Reserve(reserve) => {
            let Decision::Refuse(refusal) = state.peek(reserve, now) else { return None };
            let traceless = !state.refusal_leaves_trace(reserve, now);
            traceless.then(|| outcome_of(Answer::Decided(Decision::Refuse(refusal))))
        }
        Action::Configure(configure) if !state.would_configure(configure, now) => {
            // Rare, and exact: what the state itself would say.
            let key = Key { session: u64::MAX, number: 1 };
            let outcome = state.clone().apply(&Event { key, action: action.clone() }, now);
            Some(outcome_of(outcome.answer))
        }
        _ => None,
    }
}

/// A lease means it was admitted, a ticket that it waits, neither that it was refused.
fn decision(state: &State, key: Key, reserve: &Reserve, now: Instant) -> Decision {
    let known = known_id(state.facts(), reserve);
    if let Some(Known { first, ended: Some(_) }) = known {
        return Decision::Admit(grant(state, first, true));
    }
    let names = [known.map(|known| known.first), reserve.ticket, Some(key)];
    for name in names.into_iter().flatten() {
        match state.find(name) {
            Found::Lease => return Decision::Admit(grant(state, name, false)),
            Found::Ticket => return Decision::Wait(hold(state, name, reserve, now)),
            Found::Neither => {}
        }
    }
    Decision::Refuse(match state.peek(reserve, now) {
        Decision::Refuse(refusal) | Decision::Wait(Hold { refusal, .. }) => refusal,
        Decision::Admit(_) => passed(now),
    })
}

fn known_id(facts: &Facts, reserve: &Reserve) -> Option<Known> {
    let id = reserve.id.clone()?;
    let agent = facts.agents.iter().position(|agent| agent.name == reserve.agent)?;
    facts.ids.get(&(u16::try_from(agent).ok()?, id)).copied()
}

fn grant(state: &State, lease: Key, settled: bool) -> Grant {
    Grant {
        lease,
        expires_at: if settled { state.clock() } else { state.lease_ends(lease) },
        settled,
        instead_of: None,
    }
}

fn hold(state: &State, ticket: Key, reserve: &Reserve, now: Instant) -> Hold {
    let claim = Reserve { ticket: Some(ticket), ..reserve.clone() };
    if let Decision::Wait(hold) = state.peek(&claim, now) {
        return hold;
    }
    let before = state.facts().tickets.values().take_while(|waiting| waiting.key != ticket);
    Hold { ticket, position: before.count() + 1, refusal: passed(now) }
}

/// Whatever said no then says so no longer: to be asked again at once.
const fn passed(now: Instant) -> Refusal {
    Refusal { reason: Reason::Order, limit: None, short_by: 0, until: Some(now) }
}

const fn outcome_of(answer: Answer) -> Outcome {
    Outcome { answer, notices: Vec::new(), wake: Vec::new(), next: None }
}
