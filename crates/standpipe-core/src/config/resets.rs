//! How the provider counts the period of a limit: rolling, or in windows that it resets.

use crate::config::{Limit, Rule};
use crate::name::Text;
use crate::time::Span;
use crate::usage::calendar::STRETCH;

/// How the provider counts the period of a limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Resets {
    /// As a rolling window.
    #[default]
    Rolling,
    /// In fixed windows whose end the provider announces.
    Provider,
    /// In days that begin at a time of day, such as `00:00 America/Los_Angeles`. Processes know
    /// what it means and send [`crate::Action::Calendar`]; the core only compares it.
    Calendar(Text),
}

impl Resets {
    /// Whether nothing is reset: charges only age.
    pub(crate) const fn is_rolling(&self) -> bool {
        matches!(self, Self::Rolling)
    }

    pub(crate) const fn is_calendar(&self) -> bool {
        matches!(self, Self::Calendar(_))
    }
}

impl Limit {
    /// Returns how long a charge can count: the period, or the longest day.
    #[must_use]
    pub fn counts_for(&self) -> Option<Span> {
        let stretch = if self.resets.is_calendar() { STRETCH } else { Span::ZERO };
        self.id().period().map(|period| period + stretch)
    }

    /// Whether it may reset as it says: only a window of one day begins at a time of day.
    pub(super) fn has_valid_resets(&self) -> bool {
        let is_day = matches!(self.rule, Rule::Window { period, .. } if period == DAY);
        is_day || !self.resets.is_calendar()
    }
}

/// The period of a calendar window.
const DAY: Span = Span::secs(86_400);
