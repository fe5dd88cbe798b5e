//! The breaker that sees the wall coming: by the rate at which units are burnt, would a call like
//! this have to wait?
//!
//! It never withholds a unit. It only advises: to ask for less, or to go elsewhere.

use crate::bounds;
use crate::config::LimitId;
use crate::event::Reserve;
use crate::judge::Asker;
use crate::outcome::Notice;
use crate::plan::LaneKind;
use crate::state::State;
use crate::tally::Count;
use crate::time::{Instant, Span};
use crate::trouble::Probe;

/// A wait worth advice; and how far ahead the burn rate is believed.
const LONG: Span = Span::secs(5);

/// Of those who wait so many are looked at.
const MANY: usize = 32;

/// What a caller had better do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    /// How long a call like this would wait.
    pub wait: Span,
    /// For which limit.
    pub limit: LimitId,
    /// So many units of it could be had without.
    pub fits: u64,
}

/// Whether calls pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breaker {
    /// They do.
    Closed,
    /// They do, but soon will have to wait.
    PreEmptive,
    /// They do not: everybody pauses.
    Open,
    /// One does, to see.
    HalfOpen,
}

impl Breaker {
    /// The word for it, the same on every face.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::PreEmptive => "pre_emptive",
            Self::Open => "open",
            Self::HalfOpen => "half_open",
        }
    }
}

impl State {
    /// How the breaker stands. Where nothing was burnt for a while there is no wall ahead.
    #[must_use]
    pub fn breaker(&self, now: Instant) -> Breaker {
        if self.facts.pause.is_some() || self.facts.terminal.is_some() {
            Breaker::Open
        } else if self.facts.trouble.probe != Probe::Over {
            Breaker::HalfOpen
        } else if self.facts.outlook.pre_emptive && now < self.facts.used + LONG {
            Breaker::PreEmptive
        } else {
            Breaker::Closed
        }
    }

    /// What a caller of such a call had better do: nothing, as long as it would not wait long.
    #[must_use]
    pub fn advise(&self, reserve: &Reserve, now: Instant) -> Option<Advice> {
        let now = now.max(self.facts.clock);
        let reserve = self.completed(reserve);
        let agent = self.index.agent_of.get(&reserve.agent).copied();
        self.foresee(&self.newcomer(&reserve, agent, now), now)
    }

    fn foresee(&self, asker: &Asker<'_>, now: Instant) -> Option<Advice> {
        let on = self.facts.config.as_ref().is_some_and(|config| config.policy.breaker);
        if !on {
            return None;
        }
        let lanes = 0..self.index.plan.lanes.len();
        let advice = lanes.filter_map(|lane| self.foresee_on(asker, lane, now));
        advice.max_by_key(|advice| advice.wait)
    }

    /// If others burn for a while as they did just now, and those who wait take theirs: when does
    /// it fit beside that?
    fn foresee_on(&self, asker: &Asker<'_>, lane: usize, now: Instant) -> Option<Advice> {
        let (plan, tally) = (&self.index.plan.lanes[lane], &self.facts.lanes[lane]);
        let need = plan.need(asker.cost);
        if need == 0 || plan.kind != LaneKind::Rate || need > plan.spec.effective {
            return None;
        }
        let free = tally.free_at(now, &plan.spec);
        let taken = tally.taken_at(now, &plan.spec);
        // Nobody waits, and even if all that counts was burnt just now there is room.
        if self.facts.tickets.is_empty() && need.saturating_add(taken) <= free {
            return None;
        }
        // Behind so many the wait is long in any case.
        let first = self.facts.tickets.values().take(MANY);
        let waiting = first.map(|ticket| plan.need(&ticket.call.cost));
        let waiting = waiting.fold(0, u64::saturating_add).min(bounds::AMOUNT);
        let burnt = match &tally.count {
            Count::Window(window) => window.charged_since(now - LONG),
            _ => 0,
        };
        let beside = burnt.saturating_add(waiting);
        let want = need.saturating_add(beside).min(plan.spec.effective);
        let fits = tally.fits_from(want, now, &plan.spec, || self.holdings_on(lane));
        let wait = fits.since(now);
        let limit = plan.id.clone();
        (wait > LONG).then(|| Advice { wait, limit, fits: free.saturating_sub(beside).min(need) })
    }

    /// A call asks: does the burn rate say that calls will have to wait?
    pub(crate) fn look_ahead(&mut self, reserve: &Reserve, now: Instant) {
        let agent = self.index.agent_of.get(&reserve.agent).copied();
        let on = self.foresee(&self.newcomer(reserve, agent, now), now).is_some();
        if self.facts.outlook.pre_emptive != on {
            self.facts.outlook.pre_emptive = on;
            self.news.notices.push(Notice::Breaker { on });
        }
    }
}
