//! Describes the queued calls of a pool: why each waits, and until when.

use standpipe_core::{
    Decision, Key, LimitUsage, Phase, QueueKey, Queued, Reason, Refusal, Reserve, State, Ticket,
};
use standpipe_store::PoolName;

use super::forecast::forecasts;
use super::read::{agent_of, process_of, within};
use super::{
    Delay, KeptUnits, PausedBy, Processes, ProviderReset, TicketStatus, agents_ahead, amounts,
    kept_from, needs_all, next_reason, shortage, slot_holders, superior_of,
};
use crate::pool_set::PoolSet;
use crate::refusal::limit_text;
use crate::refusal::when::When;
use crate::time::Now;

/// The first calls in the queue for which the rule that decides their time is looked up.
const MAX_NEXT: usize = 64;

/// Describes the queued calls, in order.
pub(super) fn tickets(
    pool: &PoolName,
    state: &State,
    figures: &[LimitUsage],
    now: &Now,
    processes: Processes<'_>,
) -> Vec<TicketStatus> {
    let ordered = (1..).zip(&state.facts().tickets);
    let expected = forecasts(state, now.store);
    let status = |(position, (place, ticket)): (usize, (&QueueKey, &Ticket))| {
        let claim = claim_of(state, ticket);
        let why = claim.as_ref().and_then(|claim| why(state, claim, now));
        let next = claim.as_ref().zip(why.as_ref()).filter(|_| position <= MAX_NEXT);
        let next = next.and_then(|(claim, no)| next_reason(state, claim, no, now));
        let ahead = why.as_ref().map(|no| agents_ahead(state, no, *place)).unwrap_or_default();
        let process = process_of(ticket.session, ticket.call.owner, processes);
        let expected = expected.get(&ticket.key).copied();
        let deciding = |no| ProviderReset::deciding_queued(state, figures, (no, expected), now);
        let reset = why.as_ref().and_then(deciding);
        let set = PoolSet::of(&ticket.call);
        let also = set.beside(pool, within(state));
        let when = |no| When::of_queued(no, expected, reset.is_some(), now);
        let when = why.as_ref().map(when).unwrap_or_default();
        TicketStatus {
            agent: agent_of(state, ticket.agent),
            priority: place.tier.into(),
            cost: amounts(&ticket.call.cost),
            position,
            since: now.past(ticket.since),
            waits_ms: now.millis_since(ticket.since),
            reason: why.as_ref().map(|refusal| refusal.reason.into()),
            limit: why.as_ref().and_then(|refusal| refusal.limit.as_ref()).map(limit_text),
            short_by: why.as_ref().map_or(0, |no| shortage(figures, &ticket.call.cost, no)),
            behind: why.as_ref().and_then(|no| Some(no.behind.as_ref()?.to_string())),
            calls_ahead: ahead.calls,
            ahead: ahead.first,
            ahead_more: ahead.more,
            in_use_by: why.as_ref().map(|no| slot_holders(state, no)).unwrap_or_default(),
            alone: why.as_ref().is_some_and(|no| needs_all(figures, &ticket.call.cost, no)),
            kept: why.as_ref().map(|no| kept(state, ticket, no, now)).unwrap_or_default(),
            superior: why.as_ref().and_then(|no| superior_of(state, no, place.tier)),
            delay: delay_of(why.as_ref(), ticket.call.retry_of),
            paused: why.as_ref().and_then(|refusal| PausedBy::of(state, refusal, now)),
            next,
            reset,
            lapsed: ticket.phase == Phase::Lapsed,
            // One pool alone never decides about a call on several.
            when: if also.is_empty() { when } else { when.into_bound() },
            pid: process.map(|process| process.pid),
            stopped: process.is_some_and(|process| process.stopped),
            daemon: false,
            deadline_ms: now.millis_until(ticket.deadline),
            model: ticket.call.model.as_ref().map(ToString::to_string),
            task: ticket.call.task.as_ref().map(ToString::to_string),
            part_of: set.part_of(pool),
            also,
            bound_by: None,
            on: None,
            holds: false,
        }
    };
    ordered.map(status).collect()
}

/// Returns what delays a call. The ledger knows a retry, and not who is upstream.
fn delay_of(why: Option<&Refusal>, retry_of: Option<Key>) -> Option<Delay> {
    let held = why.is_some_and(|no| no.reason == Reason::Hold);
    retry_of.filter(|_| held).map(|_| Delay::Retry)
}

/// Returns the reserve that claims a ticket.
pub(crate) fn claim_of(state: &State, ticket: &Ticket) -> Option<Reserve> {
    let agent = state.facts().agents.get(usize::from(ticket.agent))?.name.clone();
    let mut claim = Reserve::new(agent, ticket.call.cost.clone());
    claim.ticket = Some(ticket.key);
    Some(claim)
}

/// Returns what floors keep from the ticket on the limit that refuses it.
fn kept(state: &State, ticket: &Ticket, no: &Refusal, now: &Now) -> Vec<KeptUnits> {
    let claim = claim_of(state, ticket);
    claim.map(|claim| kept_from(state, &claim, no, now)).unwrap_or_default()
}

/// Returns why the claim of a ticket would be refused now.
fn why(state: &State, claim: &Reserve, now: &Now) -> Option<Refusal> {
    match state.peek(claim, now.store) {
        Decision::Wait(Queued { refusal, .. }) | Decision::Refuse(refusal) => Some(refusal),
        Decision::Admit(_) => None,
    }
}
