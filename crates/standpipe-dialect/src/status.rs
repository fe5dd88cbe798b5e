//! What a status means when nothing else in the answer says more.

use std::borrow::Cow;
use std::time::Duration;

use crate::answer::{Kind, LimitSeen, Verdict};
use crate::fault::Fault;
use crate::hints::{self, Hint};
use crate::reading::{Reading, refused};
use crate::words;

/// What a limit counts.
type Unit = Cow<'static, str>;

impl Reading<'_> {
    /// The verdict of the status alone.
    pub(crate) fn by_status(&mut self, hints: &[Hint], fault: &Fault) -> Verdict {
        match self.status {
            ..400 => Verdict::Ok,
            429 if fault.is_about_concurrency() => self.refusal(Kind::Concurrency, hints, fault),
            429 => self.quota(hints, fault),
            503 | 529 => self.refusal(Kind::Overload, hints, fault),
            _ => self.not_ours(),
        }
    }

    /// A refusal, with the wait that headers or words tell.
    pub(crate) fn refusal(&mut self, kind: Kind, hints: &[Hint], fault: &Fault) -> Verdict {
        let wait = self.wait(hints, fault);
        refused(kind, wait, fault).verdict()
    }

    /// A rate was exceeded; which one, words or headers may tell.
    pub(crate) fn quota(&mut self, hints: &[Hint], fault: &Fault) -> Verdict {
        let wait = self.wait(hints, fault);
        let (unit, period) = self.hit(fault);
        refused(Kind::Quota, wait, fault).about(unit, period).verdict()
    }

    /// What the limit that was hit counts, and its period: by the words, else by the headers.
    pub(crate) fn hit(&self, fault: &Fault) -> (Option<Unit>, Option<Duration>) {
        let (unit, period) = words::limit(&fault.lower);
        let is_same = |seen: &&LimitSeen| unit.as_ref().is_none_or(|unit| *unit == seen.unit);
        let seen = self.exhausted().filter(is_same);
        let told = (seen.map(|seen| seen.unit.clone()), seen.and_then(|seen| seen.period));
        (unit.or(told.0), period.or(told.1))
    }

    /// How long headers and words say to wait: the longer of the two.
    pub(crate) fn wait(&mut self, hints: &[Hint], fault: &Fault) -> Option<Duration> {
        let told = self.hint(hints);
        let said = words::wait(&fault.lower);
        said.and_then(|(text, length)| self.believe("message", text, length)).max(told)
    }

    /// An error of the call itself. The provider knows best whether it is worth another try.
    pub(crate) fn not_ours(&self) -> Verdict {
        let told = ["x-should-retry", "stripe-should-retry"];
        let told = told.iter().find_map(|name| match self.headers.first(name) {
            Some(value) if value.eq_ignore_ascii_case("true") => Some(true),
            Some(value) if value.eq_ignore_ascii_case("false") => Some(false),
            _ => None,
        });
        let transient = matches!(self.status, 408 | 409 | 425 | 500 | 502..=504 | 520..=524 | 529);
        Verdict::NotOurs { transient: told.unwrap_or(transient) }
    }
}

/// What most providers send.
pub(crate) const HINTS: &[Hint] = hints::COMMON;
