//! The headroom that tunes itself: the share of each stated rate that is used.
//!
//! It begins at 80 %, rises by one after a clean period with enough calls, and falls by a tenth
//! when the provider says that the rate was exceeded. Only a success raises it.

use crate::config::{Headroom, LimitId, PoolConfig};
use crate::event::Hit;
use crate::outcome::Notice;
use crate::outlook::{Outlook, Warmth};
use crate::plan::LaneKind;
use crate::state::{State, lanes_of};
use crate::time::{Instant, Span};

/// Never less, in thousandths.
const LEAST: u16 = 500;
/// What a clean period brings.
const STEP: u16 = 10;
/// At most one step in so long.
const EVERY: Span = Span::secs(60);
/// A clean period with fewer calls says nothing.
const ENOUGH: u32 = 20;
/// After a refusal it does not rise for so many periods.
const REST: u64 = 10;

/// The share of a limit that is used, in thousandths.
pub(crate) fn share_of(config: &PoolConfig, outlook: &Outlook, limit: &LimitId) -> u16 {
    let warmth = || outlook.warmth.iter().find(|warmth| warmth.limit == *limit);
    match config.headroom {
        Headroom::Fixed(per_mille) => per_mille,
        Headroom::Auto => warmth().map_or(config.headroom.per_mille(), |known| known.per_mille),
    }
}

impl State {
    fn tunes_itself(&self) -> bool {
        self.facts.config.as_ref().is_some_and(|config| config.headroom == Headroom::Auto)
    }

    /// A call worked that drew on these: after a clean period their rates are used a little more.
    pub(crate) fn warm_up(&mut self, drawn: u64, now: Instant) {
        if !self.tunes_itself() {
            return;
        }
        let mut risen = false;
        for at in lanes_of(drawn) {
            let lane = &self.index.plan.lanes[at];
            if lane.kind == LaneKind::Rate {
                let (limit, period) = (lane.id.clone(), lane.id.period().unwrap_or(EVERY));
                risen |= self.one_more_success(limit, period.max(EVERY), now);
            }
        }
        if risen {
            self.retune(now);
        }
    }

    fn one_more_success(&mut self, limit: LimitId, period: Span, now: Instant) -> bool {
        let warmth = self.warmth_of(limit, now);
        warmth.successes = warmth.successes.saturating_add(1);
        let clean = now >= warmth.since + period && now >= warmth.rests;
        if !clean || warmth.successes < ENOUGH || warmth.per_mille >= 1_000 {
            return false;
        }
        warmth.per_mille = (warmth.per_mille + STEP).min(1_000);
        (warmth.since, warmth.successes) = (now, 0);
        let (limit, per_mille) = (warmth.limit.clone(), warmth.per_mille);
        self.news.notices.push(Notice::Headroom { limit, per_mille });
        true
    }

    /// The provider says that a rate was exceeded: less of it is used for a while.
    pub(crate) fn cool_down(&mut self, hit: Option<&Hit>, now: Instant) {
        let lane = self.hit_lane(hit).filter(|_| self.tunes_itself());
        let Some(lane) = lane.map(|at| &self.index.plan.lanes[at]) else { return };
        let (limit, period) = (lane.id.clone(), lane.id.period().unwrap_or(EVERY));
        let warmth = self.warmth_of(limit, now);
        let less = u32::from(warmth.per_mille) * 9 / 10;
        warmth.per_mille = u16::try_from(less).unwrap_or(LEAST).max(LEAST);
        (warmth.since, warmth.successes) = (now, 0);
        warmth.rests = now + Span(period.0.saturating_mul(REST));
        let (limit, per_mille) = (warmth.limit.clone(), warmth.per_mille);
        self.news.notices.push(Notice::Headroom { limit, per_mille });
    }

    fn warmth_of(&mut self, limit: LimitId, now: Instant) -> &mut Warmth {
        let all = &mut self.facts.outlook.warmth;
        let at = all.iter().position(|known| known.limit == limit).unwrap_or_else(|| {
            let per_mille = Headroom::Auto.per_mille();
            all.push(Warmth { limit, per_mille, since: now, successes: 0, rests: now });
            all.len() - 1
        });
        &mut all[at]
    }
}
