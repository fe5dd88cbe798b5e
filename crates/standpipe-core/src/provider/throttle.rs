//! Handles a provider's refusal: how long everybody pauses, and what else follows.
//!
//! Twenty calls refused together are one incident. Only a call that was admitted after the last
//! pause began raises the streak; older ones only lengthen the pause.

use crate::bounds;
use crate::config::LimitId;
use crate::config::compiled::{Constraint, ConstraintKind};
use crate::config::policy::Backoff;
use crate::event::{Hit, Key, ThrottleKind, Throttled};
use crate::id::{ConstraintId, UnitId};
use crate::lease::{Ending, Lease};
use crate::outcome::{Answer, Notice, Reason};

use crate::name::AgentName;
use crate::queue::ticket::QueueKey;
use crate::splitmix::splitmix;
use crate::state::State;
use crate::time::{Instant, Span};
use crate::unit::Amounts;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// The refusals of the present incident, and the pause that began with them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Throttling {
    /// When the last pause began.
    pub pause_began: Option<Instant>,
    /// The refusal that began it, or the last one that lengthened it; during a longer pause by
    /// hand, the first one.
    pub incident: Option<Incident>,
    /// Who set the end of the running pause; `None` if a refusal did. In a box, because few pools
    /// have one and every replica has this struct.
    pub order: Option<Box<PauseOrder>>,
    /// Refusals in a row, of calls that were admitted after the previous pause.
    pub streak: u32,
    /// The same for a provider that is short of capacity.
    pub overloads: u32,
}

/// The order of a pause by hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PauseOrder {
    /// The agent that ordered it, if it has a name.
    pub by: Option<AgentName>,
    /// When.
    pub at: Instant,
}

/// What set the end of a pause.
pub(crate) enum PauseCause {
    Refusal(Incident),
    Order(PauseOrder),
}

/// The refusal that began a pause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incident {
    /// The kind of refusal.
    pub kind: ThrottleKind,
    /// The agent whose call was refused.
    pub agent: Option<AgentName>,
    /// When.
    pub at: Instant,
}

/// The backoff for a provider that is short of capacity, whatever is configured for quotas.
const OVERLOAD: Backoff = Backoff {
    base: Span::secs(2),
    factor_per_mille: 2_000,
    cap: Some(Span::secs(30)),
    jitter: false,
};

/// After too many concurrent calls one second is enough: some of them end.
const CONCURRENCY: Span = Span::secs(1);

/// The shortest pause after a refusal with `Retry-After`: providers round it down.
const SHORTEST: Span = Span::secs(1);

/// The cap of a backoff if no rate is limited.
const A_MINUTE: Span = Span::secs(60);

/// What is known of the call that was refused.
struct RefusedCall {
    /// Whether it is the first of an incident: the others were sent before the pause.
    new: bool,
    /// How many calls were in flight when it was refused.
    in_flight: u64,
    /// The units that it drew on; none if it has no lease.
    drawn: Vec<UnitId>,
}

/// The units that a call draws on.
fn drawn_units(lease: &Lease) -> Vec<UnitId> {
    let charges = lease.charges.iter();
    charges.filter(|own| own.estimate > 0 || own.charged > 0).map(|own| own.unit).collect()
}

impl State {
    /// Settles the refused call and pauses the pool. Recovered refusals name the lease too,
    /// although it may be gone.
    pub(crate) fn throttled(&mut self, key: Key, throttled: &Throttled, now: Instant) -> Answer {
        let lease = throttled.lease.and_then(|lease| self.facts.leases.get(&lease));
        let started = lease.map(|lease| lease.started);
        let agent = lease.map(|lease| self.facts.agents[lease.agent].name.clone());
        let agent = agent.or_else(|| throttled.agent.clone());
        let new = match (started, self.facts.throttling.pause_began) {
            (Some(started), Some(began)) => started > began,
            (Some(_), None) => true,
            (None, _) => self.facts.pause.is_none(),
        };
        let drawn = lease.map(drawn_units).unwrap_or_default();
        let call = RefusedCall { new, in_flight: self.index.slots, drawn };
        let answer = match throttled.lease {
            Some(lease) => self.end_lease(lease, Ending::Refused, &Amounts::default(), now),
            None => Answer::Done,
        };
        if throttled.kind != ThrottleKind::Terminal {
            self.terminal_disproved(throttled.lease, now);
        }
        // Retry-After is believed for days; the end of a terminal stop for as long as stated.
        let longest = match throttled.kind {
            ThrottleKind::Terminal => bounds::SPAN,
            _ => bounds::PAUSE,
        };
        let after = throttled.retry_after.filter(|after| *after <= longest);
        let incident = Incident { kind: throttled.kind, agent, at: now };
        if throttled.retry_after != after {
            self.effects.notices.push(Notice::Unbelieved { retry_after: throttled.retry_after });
        }
        self.follow_up(key, throttled, after, incident, &call, now);
        answer
    }

    fn follow_up(
        &mut self,
        key: Key,
        throttled: &Throttled,
        after: Option<Span>,
        incident: Incident,
        call: &RefusedCall,
        now: Instant,
    ) {
        let agent = incident.agent.clone();
        let new = call.new;
        if new {
            let throttling = &mut self.facts.throttling;
            match throttled.kind {
                ThrottleKind::Quota | ThrottleKind::SlowDown => {
                    throttling.streak = throttling.streak.saturating_add(1);
                }
                ThrottleKind::Overload => {
                    throttling.overloads = throttling.overloads.saturating_add(1);
                }
                ThrottleKind::Concurrency | ThrottleKind::Terminal => {}
            }
        }
        let streak = self.facts.throttling.streak;
        let kind = throttled.kind;
        self.effects.notices.push(Notice::Throttled { agent: agent.clone(), kind, new, streak });
        if kind == ThrottleKind::Terminal {
            self.stop_until(after, incident, now);
            return;
        }
        let hit = self.hit_constraint(throttled.hit.as_ref(), &call.drawn);
        let length = self.pause_length(key, throttled.kind, after, hit, new);
        match kind {
            ThrottleKind::Concurrency => self.lower_concurrency(new, call.in_flight, now),
            ThrottleKind::Quota | ThrottleKind::SlowDown if new => {
                self.start_ramp(kind == ThrottleKind::SlowDown, now + length);
                if kind == ThrottleKind::Quota {
                    self.raise_margin(hit, now);
                }
            }
            _ => {}
        }
        self.pause_until(now + length, PauseCause::Refusal(incident), now);
        if kind != ThrottleKind::Overload {
            self.cascade(agent, now);
        }
        self.recompile(now);
    }

    /// The length of the pause: what the provider asks for, or our own backoff.
    ///
    /// The provider's figure counts alone on the first refusal of an incident, and for calls from
    /// before the last pause. If calls are refused again after a pause, it was too short.
    fn pause_length(
        &self,
        key: Key,
        kind: ThrottleKind,
        after: Option<Span>,
        hit: Option<ConstraintId>,
        new: bool,
    ) -> Span {
        let after = after.map(|after| after.max(SHORTEST));
        let refused_again = new && self.facts.throttling.streak > 1;
        let of_rate = matches!(kind, ThrottleKind::Quota | ThrottleKind::SlowDown);
        match after {
            Some(after) if of_rate && !refused_again => after,
            _ => self.own_backoff(key, kind, hit).max(after).unwrap_or(Span::ZERO),
        }
    }

    /// The length of the pause by our own backoff.
    fn own_backoff(&self, key: Key, kind: ThrottleKind, hit: Option<ConstraintId>) -> Option<Span> {
        let policy = &self.facts.config.as_ref()?.policy;
        let backoff = policy.backoff?;
        Some(match kind {
            ThrottleKind::Concurrency => CONCURRENCY,
            ThrottleKind::Overload => OVERLOAD.length(self.facts.throttling.overloads, A_MINUTE, 0),
            _ => {
                let cap = self.period_of(hit);
                backoff.length(self.facts.throttling.streak, cap, splitmix(key.session, key.number))
            }
        })
    }

    /// One period of the limit that was hit.
    fn period_of(&self, hit: Option<ConstraintId>) -> Span {
        let constraint = hit.map(|at| &self.index.compiled.constraints[at]);
        constraint.and_then(|constraint| constraint.id.period()).unwrap_or(A_MINUTE)
    }

    /// The rate that was hit. If the provider does not name it, the fullest of those that the call
    /// drew on, and of two equals the longer. Nothing is known of a call without a lease.
    fn hit_constraint(&self, hit: Option<&Hit>, drawn: &[UnitId]) -> Option<ConstraintId> {
        let named = |id: &LimitId| {
            hit.is_none_or(|hit| {
                let same = |period: Span| id.period() == Some(period);
                id.unit() == Some(&hit.unit) && hit.period.is_none_or(same)
            })
        };
        let rates = self.index.compiled.constraints.rows();
        let rates = rates.filter(|(_, constraint)| constraint.kind == ConstraintKind::Rate);
        let fullness = |constraint: &Constraint, taken: u64| {
            let taken = u128::from(taken) * u128::from(bounds::AMOUNT);
            taken / u128::from(constraint.spec.effective.max(1))
        };
        let rank = |(at, constraint): &(ConstraintId, &Constraint)| {
            let is_drawn = constraint.unit.is_some_and(|unit| drawn.contains(&unit));
            let full = fullness(constraint, self.usage(*at).taken_at(self.facts.clock));
            (named(&constraint.id), is_drawn, full, constraint.id.period())
        };
        rates.max_by_key(rank).map(|(at, _)| at)
    }

    /// Pauses the pool until an instant. The later end counts; only a resume shortens a pause.
    pub(crate) fn pause_until(&mut self, until: Instant, cause: PauseCause, now: Instant) {
        if until <= now {
            return;
        }
        if self.facts.pause.is_some_and(|before| before >= until) {
            self.facts.throttling.note_refusal(cause);
            return;
        }
        if self.facts.pause.is_none() {
            self.facts.throttling.pause_began = Some(now);
            self.facts.throttling.incident = None;
            self.drop_probe();
        }
        let by = self.facts.throttling.set_cause(cause);
        self.facts.pause = Some(until);
        self.delay_ramp(until);
        self.effects.notices.push(Notice::Paused { until, by });
        self.refuse_past_deadline(Reason::Pause, now);
        self.enqueue_all(now);
    }

    /// Refuses tickets that would return only after their deadline.
    pub(crate) fn refuse_past_deadline(&mut self, why: Reason, now: Instant) {
        let late = self.facts.tickets.iter().filter(|(queue_key, ticket)| {
            let candidate = self.candidate_of(**queue_key, ticket);
            self.held_until(&candidate, now) > ticket.deadline
        });
        let late: Vec<QueueKey> = late.map(|(queue_key, _)| *queue_key).collect();
        for queue_key in late {
            self.effects.wake.push(self.facts.tickets[&queue_key].key);
            self.end_ticket(queue_key, Some(why), now);
        }
    }
}

impl Throttling {
    /// Records the first refusal during a longer pause by hand: a person who ends that pause must
    /// see that the provider asked for time, too.
    fn note_refusal(&mut self, cause: PauseCause) {
        if let (PauseCause::Refusal(incident), None) = (cause, &self.incident) {
            self.incident = Some(incident);
        }
    }

    /// Records what set the end of the pause, and returns the agent that ordered it. A refusal that
    /// changes nothing about the end is not recorded.
    fn set_cause(&mut self, cause: PauseCause) -> Option<AgentName> {
        match cause {
            PauseCause::Refusal(incident) => {
                self.incident = Some(incident);
                self.order = None;
                None
            }
            PauseCause::Order(order) => {
                let by = order.by.clone();
                self.order = Some(Box::new(order));
                by
            }
        }
    }
}

impl Backoff {
    /// The pause after `streak` refusals in a row, at most `period` if no cap is configured.
    /// `chance` is any number and matters only with jitter.
    #[must_use]
    pub fn length(&self, streak: u32, period: Span, chance: u64) -> Span {
        let cap = self.cap.unwrap_or(period).0;
        let mut length = u128::from(self.base.0);
        for _ in 1..streak.max(1) {
            if length >= u128::from(cap) || self.factor_per_mille <= 1_000 {
                break;
            }
            length = length * u128::from(self.factor_per_mille) / 1_000;
        }
        let whole = u64::try_from(length).unwrap_or(u64::MAX).min(cap);
        if !self.jitter {
            return Span(whole);
        }
        // In whole milliseconds, from the base to the whole, both included.
        let steps = whole.saturating_sub(self.base.0) / 1_000 + 1;
        Span(self.base.0.min(cap).saturating_add(chance % steps * 1_000))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(backoff: Backoff, chance: impl Fn(u32) -> u64) -> Vec<u64> {
        (1..=6).map(|n| backoff.length(n, A_MINUTE, chance(n)).0 / 1_000).collect()
    }

    #[test]
    fn the_usual_is_ten_seconds_doubling_to_one_period() {
        assert_eq!(
            lengths(Backoff::USUAL, |_| 7),
            [10_000, 20_000, 40_000, 60_000, 60_000, 60_000]
        );
        assert_eq!(Backoff::USUAL.length(4, Span::secs(3_600), 0), Span::secs(80));
        // A limit per second is full again after a second.
        assert_eq!(Backoff::USUAL.length(1, Span::secs(1), 0), Span::secs(1));
    }

    #[test]
    fn sixty_then_twice_as_long_each_time() {
        let cap = Some(Span::secs(86_400));
        let backoff = Backoff { base: Span::secs(60), factor_per_mille: 2_000, cap, jitter: false };
        let minutes: Vec<u64> = lengths(backoff, |_| 3).iter().map(|ms| ms / 60_000).collect();
        assert_eq!(minutes, [1, 2, 4, 8, 16, 32]);
    }

    /// base + floor(random × (min(base × 2^(n−1), cap) − base + 1)), in milliseconds.
    #[test]
    fn capped_and_jittered_between_base_and_whole() {
        let backoff = Backoff { cap: Some(Span::secs(60)), jitter: true, ..Backoff::USUAL };
        for n in 1..=8_u32 {
            let whole = (10_000_u64 << (n - 1)).min(60_000);
            let range = whole - 10_000;
            let all: Vec<u64> = (0..=range)
                .step_by(97)
                .map(|chance| backoff.length(n, A_MINUTE, chance).0 / 1_000)
                .collect();
            assert_eq!(all.first(), Some(&10_000));
            assert!(all.iter().zip((0..=range).step_by(97)).all(|(ms, c)| *ms == 10_000 + c));
            assert_eq!(backoff.length(n, A_MINUTE, range).0 / 1_000, whole);
            assert_eq!(backoff.length(n, A_MINUTE, range + 1).0 / 1_000, 10_000);
        }
    }

    #[test]
    fn overload_has_its_own_schedule() {
        assert_eq!(lengths(OVERLOAD, |_| 0), [2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
    }
}
