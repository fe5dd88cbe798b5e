//! The provider refuses a call: how long everybody pauses, and what else follows.
//!
//! Twenty calls that are refused together are one incident. Only a call that was admitted after the
//! last pause began says something new; older ones only lengthen the pause.

use crate::bounds;
use crate::config::LimitId;
use crate::event::{Hit, Key, ThrottleKind, Throttled};
use crate::lease::Ending;
use crate::mix::mix;
use crate::outcome::{Answer, Notice, Reason};
use crate::plan::{Lane, LaneKind};
use crate::policy::Backoff;
use crate::state::State;
use crate::tally::Tally;
use crate::ticket::Place;
use crate::time::{Instant, Span};
use crate::trouble::Incident;
use crate::unit::Amounts;
use alloc::vec::Vec;

/// For a provider that is short of capacity, whatever the configuration says of quotas.
const OVERLOAD: Backoff = Backoff {
    base: Span::secs(2),
    factor_per_mille: 2_000,
    cap: Some(Span::secs(30)),
    jitter: false,
};

/// After too many calls at once, one second is enough: some of them will have ended.
const CONCURRENCY: Span = Span::secs(1);

/// What the cap of a backoff is where no rate is limited.
const A_MINUTE: Span = Span::secs(60);

impl State {
    /// A provider's refusal settles the call it names and pauses the pool. Recovered ones have the
    /// lease's name too, though the lease may be gone.
    pub(crate) fn throttled(&mut self, key: Key, throttled: &Throttled, now: Instant) -> Answer {
        let lease = throttled.lease.and_then(|lease| self.facts.leases.get(&lease));
        let started = lease.map(|lease| lease.started);
        let agent = lease.map(|lease| self.facts.agents[usize::from(lease.agent)].name.clone());
        let agent = agent.or_else(|| throttled.agent.clone());
        let new = match (started, self.facts.trouble.began) {
            (Some(started), Some(began)) => started > began,
            (Some(_), None) => true,
            (None, _) => self.facts.pause.is_none(),
        };
        let in_flight = self.facts.leases.len();
        let answer = match throttled.lease {
            Some(lease) => self.end_lease(lease, Ending::Refused, &Amounts::default(), now),
            None => Answer::Done,
        };
        if throttled.kind != ThrottleKind::Terminal {
            self.heard_otherwise(throttled.lease);
        }
        // A pause is believed for days, the end of a month's budget for as long as it takes.
        let longest = match throttled.kind {
            ThrottleKind::Terminal => bounds::SPAN,
            _ => bounds::PAUSE,
        };
        let after = throttled.retry_after.filter(|after| *after <= longest);
        let incident = Incident { kind: throttled.kind, agent, at: now };
        if throttled.retry_after != after {
            self.news.notices.push(Notice::Unbelieved { retry_after: throttled.retry_after });
        }
        self.follow_up(key, throttled, after, incident, (new, in_flight), now);
        answer
    }

    fn follow_up(
        &mut self,
        key: Key,
        throttled: &Throttled,
        after: Option<Span>,
        incident: Incident,
        (new, in_flight): (bool, usize),
        now: Instant,
    ) {
        let agent = incident.agent.clone();
        if new {
            match throttled.kind {
                ThrottleKind::Quota | ThrottleKind::SlowDown => {
                    self.facts.trouble.streak = self.facts.trouble.streak.saturating_add(1);
                }
                ThrottleKind::Overload => {
                    self.facts.trouble.overloads = self.facts.trouble.overloads.saturating_add(1);
                }
                ThrottleKind::Concurrency | ThrottleKind::Terminal => {}
            }
        }
        let streak = self.facts.trouble.streak;
        let kind = throttled.kind;
        self.news.notices.push(Notice::Throttled { agent: agent.clone(), kind, new, streak });
        if kind == ThrottleKind::Terminal {
            self.stop(after, incident, now);
            return;
        }
        let own = self.own_backoff(key, throttled);
        let length = own.into_iter().chain(after).max().unwrap_or(Span::ZERO);
        match kind {
            ThrottleKind::Concurrency => self.bear_less(new, in_flight, now),
            ThrottleKind::Quota | ThrottleKind::SlowDown if new => {
                self.slow_down(kind == ThrottleKind::SlowDown, now + length);
                if kind == ThrottleKind::Quota {
                    self.cool_down(throttled.hit.as_ref(), now);
                }
            }
            _ => {}
        }
        self.pause_until(now + length, Some(incident), now);
        if kind != ThrottleKind::Overload {
            self.cascade(agent, now);
        }
        self.retune(now);
    }

    /// How long the pool pauses for reasons of its own.
    fn own_backoff(&self, key: Key, throttled: &Throttled) -> Option<Span> {
        let policy = &self.facts.config.as_ref()?.policy;
        let backoff = policy.backoff?;
        let trouble = &self.facts.trouble;
        Some(match throttled.kind {
            ThrottleKind::Concurrency => CONCURRENCY,
            ThrottleKind::Overload => OVERLOAD.length(trouble.overloads, A_MINUTE, 0),
            _ => {
                let cap = self.period_of(throttled.hit.as_ref());
                backoff.length(trouble.streak, cap, mix(key.session, key.number))
            }
        })
    }

    /// One period of the limit that was hit. Where the provider does not say which, it was the one
    /// that is fullest, and of two the longer.
    fn period_of(&self, hit: Option<&Hit>) -> Span {
        let lane = self.hit_lane(hit).map(|at| &self.index.plan.lanes[at]);
        lane.and_then(|lane| lane.id.period()).unwrap_or(A_MINUTE)
    }

    /// The rate that was hit.
    pub(crate) fn hit_lane(&self, hit: Option<&Hit>) -> Option<usize> {
        let named = |id: &LimitId| {
            hit.is_none_or(|hit| {
                let same = |period: Span| id.period() == Some(period);
                id.unit() == Some(&hit.unit) && hit.period.is_none_or(same)
            })
        };
        let rates = self.index.plan.lanes.iter().zip(&self.facts.lanes).enumerate();
        let rates = rates.filter(|(_, (lane, _))| lane.kind == LaneKind::Rate);
        let fullness = |lane: &Lane, taken: u64| {
            let taken = u128::from(taken) * u128::from(bounds::AMOUNT);
            taken / u128::from(lane.spec.effective.max(1))
        };
        let rank = |(_, (lane, tally)): &(usize, (&Lane, &Tally))| {
            let full = fullness(lane, tally.taken_at(self.facts.clock, &lane.spec));
            (named(&lane.id), full, lane.id.period())
        };
        rates.max_by_key(rank).map(|(at, _)| at)
    }

    /// Nobody is admitted before then. Pauses add up to the later end; nothing but a resume
    /// shortens one.
    pub(crate) fn pause_until(&mut self, until: Instant, incident: Option<Incident>, now: Instant) {
        if until <= now || self.facts.pause.is_some_and(|before| before >= until) {
            return;
        }
        if self.facts.pause.is_none() {
            self.facts.trouble.began = Some(now);
            self.facts.trouble.incident = incident;
            self.call_off_the_probe();
        }
        self.facts.pause = Some(until);
        self.news.notices.push(Notice::Paused { until });
        self.turn_away_those_too_late(Reason::Pause, now);
        self.stand_all(now);
    }

    /// Those who come back only after their deadline are told at once.
    pub(crate) fn turn_away_those_too_late(&mut self, why: Reason, now: Instant) {
        let late = self.facts.tickets.iter().filter(|(place, ticket)| {
            let asker = self.asker_of(**place, ticket);
            self.own_reasons_end(&asker, now) > ticket.deadline
        });
        let late: Vec<Place> = late.map(|(place, _)| *place).collect();
        for place in late {
            self.news.wake.push(self.facts.tickets[&place].key);
            self.end_ticket(place, Some(why), now);
        }
    }
}

impl Backoff {
    /// After so many refusals in a row, at most `period` where no cap is given. `chance` is any
    /// number; it decides only where there is jitter.
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
