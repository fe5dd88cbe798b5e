//! The rules of admission, in the order in which they are asked.
//!
//! Each rule is one file and answers one question: *from when on would you admit this candidate?*
//! Whether a call is admitted, when it would be, why a ticket is held back and what `explain` shows
//! all follow from that answer. There are two tables: the rules about a call as a whole, then the
//! rules about what it takes of each constraint.
//!
//! A rule is added by a file and a row. Its reason goes to `outcome.rs` and to the layout in
//! `standpipe-store`; its state, if it has any, to `facts.rs` and `check.rs`; its settings to
//! `config/policy.rs`. If events and not only time change its answer, the code of those events
//! enqueues the tickets again that it held back (see `rules/cap.rs` and `rules/zone.rs`).

pub(crate) mod background_yield;
pub(crate) mod breaker;
pub(crate) mod cap;
pub(crate) mod floor;
pub(crate) mod floors_now;
pub(crate) mod gate;
pub(crate) mod hold;
pub(crate) mod left;
pub(crate) mod limit;
pub(crate) mod never;
pub(crate) mod order;
pub(crate) mod pause;
pub(crate) mod ramp;
pub(crate) mod retry_budget;
pub(crate) mod return_window;
pub(crate) mod spread;
pub(crate) mod terminal;
pub(crate) mod zone;

use crate::config::LimitId;
use crate::id::ConstraintId;
use crate::lease::admission::Candidate;
use crate::outcome::{Reason, Refusal};
use crate::state::State;
use crate::time::Instant;
use crate::usage::view::UsageView;

/// One rule about a call as a whole.
pub(crate) struct CallRule {
    /// Why it refuses.
    pub(crate) reason: Reason,
    /// What a refusal means for the call.
    pub(crate) effect: Effect,
    /// From when on it admits a candidate, as seen at an instant.
    pub(crate) admits: fn(&State, &Candidate<'_>, Instant) -> Admits,
    /// What a refusal at that instant names.
    pub(crate) names: fn(&State, &Candidate<'_>, Instant) -> Named,
}

/// What a rule's refusal means for the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// The call is refused at once, however long it would wait.
    Refuse,
    /// Its ticket keeps its place and blocks nobody until a fixed instant. A call whose deadline
    /// lies before that instant is refused at once.
    HoldUntil,
    /// Its ticket keeps its place and blocks nobody for as long as the rule says; units that come
    /// back may end it earlier.
    Hold,
}

/// From when on a rule admits a candidate, if nothing but time passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admits {
    /// It does not object.
    Now,
    /// Exactly from then on.
    At(Instant),
    /// It depends on others.
    NotBefore {
        /// It refuses at every instant before.
        earliest: Instant,
        /// Time alone makes it admit then, if others stay as they are.
        by_time: Instant,
    },
    /// Something must happen that has no instant: a call in flight ends, somebody resumes the pool.
    Unknown,
    /// As long as the pool is configured as it is.
    Never,
}

/// What a refusal names: the limit, and the units that are missing there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) limit: Option<LimitId>,
    pub(crate) short_by: u64,
}

/// All rules about a call as a whole, in their order.
const RULES: [CallRule; 10] = [
    terminal::RULE,
    never::RULE,
    retry_budget::RULE,
    pause::RULE,
    return_window::RULE,
    zone::RULE,
    hold::RULE,
    background_yield::RULE,
    spread::RULE,
    cap::RULE,
];

/// One rule about what a call takes of one constraint.
pub(crate) struct ConstraintRule {
    /// Why it refuses.
    pub(crate) reason: fn(&State, &Part<'_>, Instant) -> Reason,
    /// From when on it admits a part, as seen at an instant.
    pub(crate) admits: fn(&State, &Part<'_>, Instant) -> Admits,
    /// The units that are missing at that instant.
    pub(crate) short_by: fn(&State, &Part<'_>, Instant) -> u64,
}

/// What a candidate takes of one constraint, and who comes before it there.
pub(crate) struct Part<'a> {
    pub(crate) candidate: &'a Candidate<'a>,
    pub(crate) constraint: ConstraintId,
    pub(crate) need: u64,
    pub(crate) usage: UsageView<'a>,
    /// Units earmarked for tickets before it.
    pub(crate) before: u64,
    /// Whether an earlier ticket stands in the line.
    pub(crate) behind: bool,
    /// A forecast counts other tickets as served.
    pub(crate) is_forecast: bool,
}

/// Why a constraint refuses a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shortfall {
    pub(crate) reason: Reason,
    pub(crate) short_by: u64,
}

/// All rules about what a call takes of a constraint, in their order.
static CONSTRAINT_RULES: [ConstraintRule; 4] = [order::RULE, limit::RULE, ramp::RULE, floor::RULE];

impl Admits {
    /// At an instant, or now if that has come.
    pub(crate) fn at(instant: Instant, now: Instant) -> Self {
        match instant {
            Instant::NEVER => Self::Unknown,
            _ if instant <= now => Self::Now,
            _ => Self::At(instant),
        }
    }

    /// Before this it refuses; [`Instant::NEVER`] where no instant is known.
    pub(crate) const fn earliest(self, now: Instant) -> Instant {
        match self {
            Self::Now => now,
            Self::At(at) | Self::NotBefore { earliest: at, .. } => at,
            Self::Unknown | Self::Never => Instant::NEVER,
        }
    }

    /// What two rules answer together: both must admit.
    pub(crate) fn and(self, other: Self, now: Instant) -> Self {
        match (self, other) {
            (Self::Now, one) | (one, Self::Now) => one,
            _ => Self::NotBefore {
                earliest: self.earliest(now).max(other.earliest(now)),
                by_time: self.by_time(now).max(other.by_time(now)),
            },
        }
    }

    /// When time alone makes it admit.
    const fn by_time(self, now: Instant) -> Instant {
        match self {
            Self::NotBefore { by_time, .. } => by_time,
            other => other.earliest(now),
        }
    }
}

impl Effect {
    /// What a refusal for a reason means, if a rule about the call as a whole has that reason.
    pub(crate) fn of(reason: Reason) -> Option<Self> {
        RULES.iter().find(|rule| rule.reason == reason).map(|rule| rule.effect)
    }
}

impl Named {
    /// A refusal that is about no limit.
    pub(crate) fn nothing(_: &State, _: &Candidate<'_>, _: Instant) -> Self {
        Self::default()
    }
}

impl CallRule {
    pub(crate) fn refuses(&self, state: &State, candidate: &Candidate<'_>, now: Instant) -> bool {
        (self.admits)(state, candidate, now) != Admits::Now
    }

    fn refusal(&self, state: &State, candidate: &Candidate<'_>, now: Instant) -> Refusal {
        let Named { limit, short_by } = (self.names)(state, candidate, now);
        Refusal::new(self.reason, limit, short_by)
    }
}

impl State {
    /// The first rule that refuses a candidate. `until` is left open; see [`State::with_until`].
    pub(crate) fn rule_refusal(&self, candidate: &Candidate<'_>, now: Instant) -> Option<Refusal> {
        let rule = RULES.iter().find(|rule| rule.refuses(self, candidate, now))?;
        Some(rule.refusal(self, candidate, now))
    }

    /// Every rule that refuses a candidate, each with the instant from which it alone would admit.
    pub(crate) fn rule_refusals(
        &self,
        candidate: &Candidate<'_>,
        now: Instant,
    ) -> impl Iterator<Item = Refusal> {
        RULES.iter().filter_map(move |rule| {
            let admits = (rule.admits)(self, candidate, now);
            let until = Some(admits.earliest(now)).filter(|at| *at != Instant::NEVER);
            let exact = matches!(admits, Admits::At(_));
            let refusal = || Refusal { until, exact, ..rule.refusal(self, candidate, now) };
            (admits != Admits::Now).then(refusal)
        })
    }

    /// Whether a rule admits a candidate only depending on others.
    pub(crate) fn depends_on_others(&self, candidate: &Candidate<'_>, now: Instant) -> bool {
        let mut answers = RULES.iter().map(|rule| (rule.admits)(self, candidate, now));
        answers.any(|admits| matches!(admits, Admits::NotBefore { .. }))
    }

    /// Why a ticket is held back without standing in a line, and when it is asked again.
    pub(crate) fn held_back(
        &self,
        candidate: &Candidate<'_>,
        now: Instant,
    ) -> Option<(Reason, Instant)> {
        let holds = RULES.iter().filter(|rule| rule.effect != Effect::Refuse);
        holds
            .map(|rule| (rule.reason, (rule.admits)(self, candidate, now)))
            .find(|(_, admits)| *admits != Admits::Now)
            .map(|(reason, admits)| (reason, admits.by_time(now)))
    }

    /// The first instant from `from` on at which no rule refuses.
    pub(crate) fn rules_admit_from(&self, candidate: &Candidate<'_>, from: Instant) -> Instant {
        let mut at = from;
        for rule in &RULES {
            at = at.max((rule.admits)(self, candidate, at).earliest(at));
            if at == Instant::NEVER {
                break;
            }
        }
        at
    }

    /// When nothing with a fixed instant holds a candidate back any more: pause, return window,
    /// hold.
    pub(crate) fn held_until(&self, candidate: &Candidate<'_>, now: Instant) -> Instant {
        let fixed = RULES.iter().filter(|rule| rule.effect == Effect::HoldUntil);
        let ends = fixed.map(|rule| (rule.admits)(self, candidate, now).earliest(now));
        ends.fold(now, Instant::max)
    }

    /// Instants at which time alone may end what holds a candidate back.
    pub(crate) fn rule_changes(
        &self,
        candidate: &Candidate<'_>,
        now: Instant,
    ) -> impl Iterator<Item = Instant> {
        let held = RULES.iter().filter(|rule| rule.effect == Effect::Hold);
        let held = held.map(move |rule| (rule.admits)(self, candidate, now).earliest(now));
        held.chain([self.held_until(candidate, now)]).filter(|at| *at != Instant::NEVER)
    }
}

impl State {
    /// What a candidate takes of a constraint; `None` if it takes nothing.
    pub(crate) fn part<'a>(
        &'a self,
        candidate: &'a Candidate<'a>,
        constraint: ConstraintId,
        now: Instant,
    ) -> Option<Part<'a>> {
        let need = self.index.compiled.constraints[constraint].need(candidate.cost);
        if need == 0 {
            return None;
        }
        let (before, behind) = self.ahead_of(candidate, constraint, need, now);
        let (usage, is_forecast) = (self.usage(constraint), false);
        Some(Part { candidate, constraint, need, usage, before, behind, is_forecast })
    }

    /// The first rule that refuses a part.
    pub(crate) fn refusing(
        &self,
        part: &Part<'_>,
        now: Instant,
    ) -> Option<&'static ConstraintRule> {
        CONSTRAINT_RULES.iter().find(|rule| (rule.admits)(self, part, now) != Admits::Now)
    }

    /// Why a constraint refuses a call, if it does.
    pub(crate) fn shortfall(
        &self,
        candidate: &Candidate<'_>,
        constraint: ConstraintId,
        now: Instant,
    ) -> Option<Shortfall> {
        let part = self.part(candidate, constraint, now)?;
        let rule = self.refusing(&part, now)?;
        let (reason, short_by) =
            ((rule.reason)(self, &part, now), (rule.short_by)(self, &part, now));
        Some(Shortfall { reason, short_by })
    }

    /// The first instant from `from` on at which a constraint has room for a candidate, as if no
    /// other ticket were there; [`Instant::NEVER`] where no instant is known. With floors it is a
    /// lower bound.
    pub(crate) fn constraint_fits(
        &self,
        candidate: &Candidate<'_>,
        constraint: ConstraintId,
        from: Instant,
    ) -> Instant {
        let need = self.index.compiled.constraints[constraint].need(candidate.cost);
        if need == 0 {
            return from;
        }
        let usage = self.usage(constraint);
        let (before, behind, is_forecast) = (0, false, true);
        let part = Part { candidate, constraint, need, usage, before, behind, is_forecast };
        let mut at = from;
        for rule in &CONSTRAINT_RULES {
            if at != Instant::NEVER {
                at = at.max((rule.admits)(self, &part, at).earliest(at));
            }
        }
        at
    }
}
