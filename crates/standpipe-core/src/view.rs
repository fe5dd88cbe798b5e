//! How a ledger stands, for people to look at: its figures, and the admission rule laid open.
//!
//! Only reads. Nothing here decides anything; it asks the functions that do.

use alloc::borrow::Cow;
use alloc::vec::Vec;

use crate::config::{Limit, Priority};
use crate::event::Reserve;
use crate::judge::{Asker, before};
use crate::learn::limits_in_force;
use crate::outcome::{Reason, Refusal};
use crate::plan::LaneKind;
use crate::state::State;
use crate::tally::{Count, Tally};
use crate::time::Instant;
use crate::unit::Amounts;

/// How one limit stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figures {
    /// The limit, as told.
    pub limit: Limit,
    /// What is used of it, after headroom.
    pub effective: u64,
    /// What is charged.
    pub used: u64,
    /// What calls in flight hold beside that.
    pub held: u64,
    /// What is left of `effective`.
    pub left: u64,
    /// When nothing of it is charged any more if only time passes; none where nothing is charged,
    /// and where time alone brings nothing.
    pub clear_at: Option<Instant>,
    /// When its pace lets the next grant pass; none if that is now.
    pub next_grant: Option<Instant>,
}

/// What the admission rule says to a call, step by step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Laid {
    /// The tier the call is judged in.
    pub tier: Priority,
    /// What it takes, with what is estimated because nobody said.
    pub cost: Amounts,
    /// 1: the provider said stop for good.
    pub terminal: Option<Refusal>,
    /// 2: it is above a stated limit.
    pub never: Option<Refusal>,
    /// Too many calls are second tries.
    pub retry_budget: Option<Refusal>,
    /// 3: everybody waits.
    pub pause: Option<Refusal>,
    /// 3: its instant to come back from the last pause is not there yet.
    pub return_window: Option<Refusal>,
    /// 3: little is left, and its agent keeps a distance.
    pub zone: Option<Refusal>,
    /// 3: somebody it depends on was refused.
    pub hold: Option<Refusal>,
    /// 4: what is left is for higher tiers.
    pub yields: Option<Refusal>,
    /// 4: the agent's own cap.
    pub cap: Option<Refusal>,
    /// 5: the limits for which somebody came first.
    pub order: Vec<Refusal>,
    /// 6: the limits and gates that have no room for it.
    pub room: Vec<Refusal>,
}

impl State {
    /// The ledger as it is at an instant if nothing happens but time.
    #[must_use]
    pub fn at(&self, now: Instant) -> Cow<'_, Self> {
        if self.next.is_none_or(|next| next > now) {
            return Cow::Borrowed(self);
        }
        let mut ahead = self.clone();
        ahead.advance(now);
        ahead.news = crate::state::News::default();
        ahead.next = ahead.next_change(now);
        Cow::Owned(ahead)
    }

    /// How each limit stands at an instant, in the configuration's order.
    #[must_use]
    pub fn figures(&self, now: Instant) -> Vec<Figures> {
        let now = now.max(self.facts.clock);
        let Some(config) = &self.facts.config else { return Vec::new() };
        let mut limits = limits_in_force(config, &self.facts.trouble, &self.facts.outlook);
        // As told, where it was; what is used of it says the rest.
        limits[..config.limits.len()].clone_from_slice(&config.limits);
        let lanes = limits.iter().enumerate();
        lanes.map(|(lane, limit)| self.figures_of(lane, limit, now)).collect()
    }

    /// The admission rule for a call at an instant. Every step is asked, also behind one that says
    /// no. What is said of time is when this one alone would say yes.
    #[must_use]
    pub fn lay_open(&self, reserve: &Reserve, now: Instant) -> Laid {
        let now = now.max(self.facts.clock);
        let agent = self.index.agent_of.get(&reserve.agent).copied();
        let reserve = &*self.completed(reserve);
        let asker = self.newcomer(reserve, agent, now);
        let light = self.light_lets_pass(&asker, now);
        let lacks = self.lacks(&asker, now);
        let (order, room) = lacks.into_iter().partition(|no| no.reason == Reason::Order);
        let until = |refusal: Refusal, until: Instant| Refusal {
            until: Some(until).filter(|until| *until != Instant::NEVER),
            ..refusal
        };
        Laid {
            tier: asker.tier(),
            cost: reserve.cost.clone(),
            terminal: self.terminated(now),
            never: self.never_fits(&asker),
            retry_budget: self.out_of_retries(reserve, now),
            pause: self.paused(now).map(|no| Refusal { until: self.facts.pause, ..no }),
            return_window: before(Reason::ReturnWindow, asker.returns, now)
                .map(|no| until(no, asker.returns)),
            zone: self.zoned(&asker, now).map(|no| until(no, light)),
            hold: before(Reason::Hold, asker.holds, now).map(|no| until(no, asker.holds)),
            yields: self.yields(&asker, now).map(|no| until(no, light)),
            cap: self.capped(&asker, now).map(|no| until(no, self.cap_fits(&asker, now))),
            order,
            room,
        }
    }

    fn lacks(&self, asker: &Asker<'_>, now: Instant) -> Vec<Refusal> {
        let lanes = 0..self.index.plan.lanes.len();
        let lacks = lanes.filter_map(|lane| {
            let lack = self.lack(asker, lane, now)?;
            let fits = (lack.reason != Reason::Order).then(|| self.lane_fits(asker, lane, now));
            Some(Refusal {
                reason: lack.reason,
                limit: self.index.plan.lanes[lane].limit(),
                short_by: lack.short_by,
                until: fits.filter(|until| *until != Instant::NEVER),
            })
        });
        let mut lacks: Vec<Refusal> = lacks.collect();
        // Whoever comes first also takes what is there: that there is no room is said as well.
        for (at, lane) in self.index.plan.lanes.iter().enumerate() {
            let free = self.facts.lanes[at].free_at(now, &lane.spec);
            let short_by = lane.need(asker.cost).saturating_sub(free);
            let limit = lane.limit().filter(|_| lane.kind != LaneKind::Gate);
            let named = |no: &Refusal| no.limit == limit && no.reason != Reason::Order;
            if short_by > 0 && limit.is_some() && !lacks.iter().any(named) {
                let until = Some(self.lane_fits(asker, at, now));
                let until = until.filter(|until| *until != Instant::NEVER);
                lacks.push(Refusal { reason: Reason::Limit, limit, short_by, until });
            }
        }
        lacks
    }

    fn figures_of(&self, lane: usize, limit: &Limit, now: Instant) -> Figures {
        let (tally, spec) = (&self.facts.lanes[lane], &self.index.plan.lanes[lane].spec);
        let used = tally.taken_at(now, spec).saturating_sub(tally.held);
        let clears = matches!(tally.count, Count::Window(_) | Count::Bucket(_)) && used > 0;
        let alone = Tally { held: 0, ..tally.clone() };
        let cleared = clears.then(|| alone.fits_from(spec.effective, now, spec, Vec::new));
        Figures {
            limit: limit.clone(),
            effective: spec.effective,
            used,
            held: tally.held,
            left: tally.free_at(now, spec),
            clear_at: cleared.filter(|at| *at != Instant::NEVER),
            next_grant: self.pace_opens(limit, now),
        }
    }

    fn pace_opens(&self, limit: &Limit, now: Instant) -> Option<Instant> {
        let id = limit.id();
        let lanes = self.index.plan.lanes.iter().zip(&self.facts.lanes);
        let mut gates = lanes.filter(|(lane, _)| lane.kind == LaneKind::Gate && lane.id == id);
        let (gate, tally) = gates.next()?;
        let Count::Gate { last: Some(last) } = tally.count else { return None };
        Some(last + gate.spec.period).filter(|opens| *opens > now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{PoolConfig, Rule};
    use crate::event::{Action, Configure, Event, Key, Source};
    use crate::name::AgentName;
    use crate::time::Span;
    use crate::unit::{Amounts, Unit};
    use alloc::boxed::Box;
    use alloc::vec;

    fn tokens(amount: u64) -> Reserve {
        let cost = Amounts::cost([(Unit::Tokens, amount)]).unwrap();
        Reserve::new(AgentName::new("blog").unwrap(), cost)
    }

    /// 100 tokens in 10 s with a second between grants, two calls in flight; 40 are taken.
    fn state() -> State {
        let period = Span::secs(10);
        let mut rate = Limit::new(Rule::Window { unit: Unit::Tokens, amount: 100, period });
        rate.pace = Some(Span::secs(1));
        let limits = vec![rate, Limit::new(Rule::Parallel { amount: 2 })];
        let configure = Configure { source: Source::Code, config: PoolConfig::new(limits) };
        let mut state = State::new();
        for (number, action) in
            (1..).zip([Action::Configure(Box::new(configure)), Action::from(tokens(40))])
        {
            let _ = state.apply(&Event { key: Key { session: 7, number }, action }, Instant(0));
        }
        state
    }

    #[test]
    fn figures_are_those_of_the_moment() {
        let figures = state().figures(Instant(500_000));
        let rate = &figures[0];
        assert_eq!((rate.effective, rate.used, rate.held, rate.left), (100, 40, 0, 60));
        assert_eq!(rate.clear_at, Some(Instant(10_000_000)));
        assert_eq!(rate.next_grant, Some(Instant(1_000_000)));
        let slots = &figures[1];
        assert_eq!((slots.used, slots.held, slots.left, slots.clear_at), (0, 1, 1, None));
        let later = state().figures(Instant(10_000_000));
        assert_eq!((later[0].used, later[0].clear_at, later[0].next_grant), (0, None, None));
    }

    #[test]
    fn every_step_is_asked_and_dated() {
        let laid = state().lay_open(&tokens(101), Instant(500_000));
        assert_eq!(laid.never.map(|no| no.short_by), Some(1));
        assert_eq!((laid.terminal, laid.pause, laid.cap), (None, None, None));
        let laid = state().lay_open(&tokens(70), Instant(500_000));
        assert_eq!(laid.never, None);
        let room: Vec<_> = laid.room.iter().map(|no| (no.reason, no.until)).collect();
        let (rate, gate) = (Some(Instant(10_000_000)), Some(Instant(1_000_000)));
        assert_eq!(room, [(Reason::Limit, rate), (Reason::Pace, gate)]);
    }

    #[test]
    fn looking_ahead_changes_nothing() {
        let state = state();
        assert!(matches!(state.at(Instant(1)), Cow::Borrowed(_)));
        let ahead = state.at(Instant(500_000_000));
        assert!(ahead.facts().leases.is_empty(), "its session has been silent");
        assert_eq!(state.facts().leases.len(), 1);
    }
}
