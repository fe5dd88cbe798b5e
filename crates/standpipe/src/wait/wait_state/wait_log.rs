//! What a call waited for, and how long for each.
//!
//! A queued call is looked at when its instant may have moved, and at least four times a second
//! while it is among the first in line. The time until the next look counts for what denied the
//! call at the last one.

use std::time::{Duration, Instant as Local};

use standpipe_core::{Amounts, LimitId, Queued, Reason, State};
use standpipe_store::PoolName;

use crate::journal::{EventData, WaitPart};
use crate::moment::Now;
use crate::refused::limit_text;
use crate::status::{PoolStatus, slot_holders};

/// The reasons of a wait, in the order in which they came.
#[derive(Default)]
pub(super) struct WaitLog {
    parts: Vec<Part>,
    /// The part that the call waits for now, and since when.
    current: usize,
    since: Option<Local>,
}

/// A look at a queued call.
pub(super) struct Look<'a> {
    pub(super) queued: &'a Queued,
    pub(super) state: &'a State,
    pub(super) cost: &'a Amounts,
}

/// How a wait ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum WaitEnd {
    Admitted,
    /// This pool granted the call, which has to be admitted on the next one too.
    Continued(PoolName),
    /// For this reason; [`Reason::Deadline`] if the call timed out.
    Refused(Reason),
    Cancelled,
}

/// The part of a wait that has one reason.
struct Part {
    reason: Reason,
    limit: Option<LimitId>,
    used: Option<u64>,
    usable: Option<u64>,
    held_by: Vec<String>,
    position: usize,
    length: Duration,
}

/// A wait has no more parts. What comes later counts for the last one.
const MAX_PARTS: usize = 8;

impl WaitLog {
    pub(super) const fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Records what denies the call now. The first time, the wait began at `began`.
    pub(super) fn look(&mut self, seen: Look<'_>, now: &Now, began: Local) {
        let Look { queued, state, cost } = seen;
        self.pass(now.local);
        self.since = Some(if self.is_empty() { began } else { now.local });
        let refusal = &queued.refusal;
        let is_its = |part: &Part| part.reason == refusal.reason && part.limit == refusal.limit;
        match self.parts.iter().position(is_its) {
            Some(known) => self.current = known,
            None if self.parts.len() < MAX_PARTS => {
                self.current = self.parts.len();
                self.parts.push(Part::new(queued, &state.at(now.store), cost, now));
            }
            None => self.current = MAX_PARTS - 1,
        }
    }

    /// Returns the wait as an event, under its longest part. `None` if the call did not wait.
    pub(super) fn event(&mut self, caller: Caller, end: WaitEnd, at: Local) -> Option<EventData> {
        self.pass(at);
        self.since = Some(at);
        let all: Duration = self.parts.iter().map(|part| part.length).sum();
        // Of parts of one length, the first.
        let longest = self.parts.iter().rev().max_by_key(|part| part.length)?;
        let others = self.parts.iter().filter(|part| !std::ptr::eq(*part, longest));
        let also = others.filter(|part| millis(part.length) > 0).map(|part| WaitPart {
            reason: part.reason.as_str().to_owned(),
            limit: part.limit.as_ref().map(limit_text),
            waited_ms: millis(part.length),
        });
        Some(EventData::Wait {
            agent: caller.agent,
            model: caller.model,
            priority: caller.priority,
            reason: longest.reason.as_str().to_owned(),
            limit: longest.limit.as_ref().map(limit_text),
            used: longest.used,
            usable: longest.usable,
            position: u64::try_from(longest.position).ok(),
            held_by: longest.held_by.clone(),
            also: also.collect(),
            ended: end.as_str().to_owned(),
            next: end.next(),
            refused_for: end.refused_for().map(|reason| reason.as_str().to_owned()),
            count: 1,
            waited_ms: millis(all),
            longest_ms: millis(all),
        })
    }

    fn pass(&mut self, now: Local) {
        if let (Some(since), Some(part)) = (self.since, self.parts.get_mut(self.current)) {
            part.length += now.saturating_duration_since(since);
        }
    }
}

impl WaitEnd {
    const fn as_str(&self) -> &'static str {
        match self {
            Self::Admitted => "admitted",
            Self::Continued(_) => "continued",
            Self::Refused(_) => "refused",
            Self::Cancelled => "cancelled",
        }
    }

    /// The reason that is not the call's timeout.
    fn refused_for(&self) -> Option<Reason> {
        match self {
            Self::Refused(reason) => Some(*reason).filter(|reason| *reason != Reason::Deadline),
            Self::Admitted | Self::Continued(_) | Self::Cancelled => None,
        }
    }

    fn next(&self) -> Option<String> {
        match self {
            Self::Continued(next) => Some(next.to_string()),
            _ => None,
        }
    }
}

/// Whose wait it is.
pub(super) struct Caller {
    pub(super) agent: String,
    pub(super) model: Option<String>,
    pub(super) priority: Option<String>,
}

impl Part {
    fn new(queued: &Queued, state: &State, cost: &Amounts, now: &Now) -> Self {
        let limit = queued.refusal.limit.clone();
        let full = limit.as_ref().and_then(|id| {
            let need = match id {
                LimitId::Parallel => Some(cost.slots()),
                _ => id.unit().and_then(|unit| cost.of(unit)),
            };
            let name = limit_text(id);
            let full = PoolStatus::limits_of(state, now).into_iter().find(|one| one.limit == name);
            // What is earmarked for other calls is missing in the figures.
            full.filter(|full| need.is_none_or(|need| full.left < need))
        });
        Self {
            reason: queued.refusal.reason,
            limit,
            used: full.as_ref().map(|full| full.used.saturating_add(full.held)),
            usable: full.as_ref().map(|full| full.effective),
            held_by: slot_holders(state, &queued.refusal),
            position: queued.position,
            length: Duration::ZERO,
        }
    }
}

fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use standpipe_core::{Key, Refusal};

    use super::*;

    fn queued(limit: Option<LimitId>, reason: Reason) -> Queued {
        let refusal =
            Refusal { reason, limit, short_by: 1, until: None, exact: false, behind: None };
        Queued { ticket: Key { session: 1, number: 1 }, position: 2, refusal }
    }

    /// Returns reason, limit and length of the parts, the longest first.
    fn parts(event: EventData) -> Vec<(String, Option<String>, u64)> {
        let EventData::Wait { reason, limit, also, waited_ms, .. } = event else {
            panic!("a wait")
        };
        let others: u64 = also.iter().map(|part| part.waited_ms).sum();
        let also = also.into_iter().map(|part| (part.reason, part.limit, part.waited_ms));
        std::iter::once((reason, limit, waited_ms - others)).chain(also).collect()
    }

    #[test]
    fn a_wait_counts_for_each_reason_as_long_as_it_lasted() {
        let (state, start) = (State::new(), Now::at(standpipe_core::Instant(0)));
        let at = |ms| Now { local: start.local + Duration::from_millis(ms), ..start };
        let caller = || Caller { agent: "blog".to_owned(), model: None, priority: None };
        let mut log = WaitLog::default();
        assert_eq!(log.event(caller(), WaitEnd::Admitted, start.local), None);
        let slot = queued(Some(LimitId::Parallel), Reason::Limit);
        let cost = Amounts::cost([]).unwrap();
        let pause = queued(None, Reason::Pause);
        for (ms, queued) in [(100, &slot), (1_000, &slot), (3_000, &pause), (18_000, &slot)] {
            log.look(Look { queued, state: &state, cost: &cost }, &at(ms), start.local);
        }
        let event = log.event(caller(), WaitEnd::Admitted, at(18_500).local).unwrap();
        let slots = ("limit".to_owned(), Some("parallel".to_owned()), 3_500);
        assert_eq!(parts(event), [("pause".to_owned(), None, 15_000), slots]);
    }

    #[test]
    fn a_wait_names_the_refusal_that_ended_it_unless_it_timed_out() {
        let (state, start) = (State::new(), Now::at(standpipe_core::Instant(0)));
        let (slot, cost) =
            (queued(Some(LimitId::Parallel), Reason::Limit), Amounts::cost([]).unwrap());
        let ended = |end: WaitEnd| {
            let caller = Caller { agent: "blog".to_owned(), model: None, priority: None };
            let mut log = WaitLog::default();
            log.look(Look { queued: &slot, state: &state, cost: &cost }, &start, start.local);
            match log.event(caller, end, start.local) {
                Some(EventData::Wait { ended, refused_for, .. }) => (ended, refused_for),
                other => panic!("{other:?}"),
            }
        };
        let refused = |reason| ended(WaitEnd::Refused(reason));
        assert_eq!(refused(Reason::Deadline), ("refused".to_owned(), None));
        let stopped = ("refused".to_owned(), Some("terminal".to_owned()));
        assert_eq!(refused(Reason::Terminal), stopped);
        assert_eq!(ended(WaitEnd::Cancelled), ("cancelled".to_owned(), None));
    }
}
