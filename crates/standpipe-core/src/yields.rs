//! Background gives way: when under 30 % is left of any rate and a higher tier is active.

use crate::config::Priority;
use crate::judge::Asker;
use crate::outcome::{Reason, Refusal};
use crate::state::State;
use crate::time::Instant;
use crate::zone::{LITTLE, Lit};

impl State {
    fn gives_way(&self, asker: &Asker<'_>) -> bool {
        self.index.plan.yields && asker.tier() == Priority::Background
    }

    /// Step 4: what is left is for others.
    pub(crate) fn yields(&self, asker: &Asker<'_>, now: Instant) -> Option<Refusal> {
        let yields = self.gives_way(asker)
            && self.is_little(now)
            && self.superiors_active(asker.tier(), now);
        let (reason, limit) = (Reason::Yield, self.scarcest(Lit::Rates, now));
        yields.then_some(Refusal { reason, limit, short_by: 0, until: None })
    }

    /// Whether so little is left that background gives way.
    pub(crate) fn is_little(&self, now: Instant) -> bool {
        self.index.plan.yields && self.left(Lit::Rates, now) < LITTLE
    }

    /// When enough is left again, if only time passes.
    pub(crate) fn yield_ends(&self, asker: &Asker<'_>, from: Instant) -> Instant {
        if !self.gives_way(asker) {
            return from;
        }
        self.left_reaches(Lit::Rates, LITTLE, from)
    }
}
