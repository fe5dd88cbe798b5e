//! What a provider enforces, and the ways in which it may be odd.

use super::Shape;
use super::call::{Call, Unit, Used};

/// One thing a provider enforces. Rules are asked in order; the first that refuses is the one that
/// the reply names.
///
/// Lengths and instants are in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// A bucket that refills continuously, `amount` in a `period`, and holds at most `burst`.
    ///
    /// If its burst is less than its amount it paces calls within the period; headers do not show
    /// it if another rule counts the same unit.
    Bucket {
        /// What it counts.
        unit: Unit,
        /// How many come back in a period.
        amount: u64,
        /// The period.
        period: u64,
        /// The most it holds.
        burst: u64,
    },
    /// At most `amount` in any `period`.
    Rolling {
        /// What it counts.
        unit: Unit,
        /// How many.
        amount: u64,
        /// The period.
        period: u64,
    },
    /// At most `amount` in each period of the provider's calendar: each hour on the hour.
    FixedWindow {
        /// What it counts.
        unit: Unit,
        /// How many.
        amount: u64,
        /// The period.
        period: u64,
        /// How long after the calendar's own beginning a period begins: midnight in California is
        /// eight hours after midnight UTC.
        offset: u64,
    },
    /// At most so many calls at once.
    Concurrency {
        /// How many.
        amount: u64,
    },
    /// GitHub's secondary limit, which no header shows.
    Secondary {
        /// Points in any minute: 5 for a call that writes, 1 for any other.
        points_per_minute: u64,
        /// Calls that create content, in any minute.
        content_per_minute: u64,
        /// Calls that create content, in any hour.
        content_per_hour: u64,
    },
    /// Growing too fast, though within every other rule: more calls in the last stretch than the
    /// stretch before it had, times a factor.
    Acceleration {
        /// The factor, in thousandths.
        growth: u64,
        /// The length of a stretch.
        stretch: u64,
        /// So many calls in a stretch are always fine.
        free: u64,
    },
    /// A time in which the provider is overloaded, by others.
    Overload {
        /// From when.
        from: u64,
        /// Until when.
        until: u64,
        /// How many in a thousand calls it refuses.
        share: u32,
        /// The wait it recommends, in seconds.
        hint: Option<u64>,
    },
    /// Calls are refused once so much has been spent.
    SpendCap {
        /// In millionths of a dollar.
        amount: u64,
        /// When spending starts again from nothing.
        resets: u64,
        /// Whose cap it is.
        cap: Cap,
    },
    /// Other traffic on the same key. It is evenly spaced, finishes at once, is refused like any
    /// other when there is no room, and does not try again.
    Foreign {
        /// How many calls a second.
        per_second: u64,
        /// The tokens of each prompt.
        input: u64,
        /// The tokens of each answer.
        output: u64,
        /// From when.
        from: u64,
        /// Until when.
        until: u64,
    },
}

/// Whose cap on spending it is; each has its own error message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cap {
    /// The provider's.
    Enforced,
    /// The one that the organization gave itself.
    Organization,
    /// The one that a project, or workspace, was given.
    Project,
    /// Credits that were paid ahead are used up.
    Credits,
}

/// The ways of a provider that are not limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The model or deployment, for the texts.
    pub model: String,
    /// The start of the world on the real calendar, in microseconds since 1970.
    pub origin: u64,
    /// The error of the provider's clock, in microseconds: it shifts every instant in replies and
    /// its calendar periods.
    pub clock_error: i64,
    /// The Retry-After of refusals.
    pub retry_after: RetryAfter,
    /// Whether a refused call counts as a request all the same.
    pub refused_count: bool,
    /// What is charged for an answer before it is known.
    pub output: Output,
    /// Whether tokens read from a cache count.
    pub cached_count: bool,
    /// Whether the headers with limits are omitted (Azure sends them as `-1` and `0`).
    pub silent: bool,
    /// Whether it accepts what goes over a quota, and only notes it.
    pub lenient: bool,
    /// Headers that replace its own in every reply.
    pub forged: Vec<(String, String)>,
}

/// The Retry-After of refusals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryAfter {
    /// The time until there is room, if it is known.
    Real,
    /// Nothing.
    Withheld,
    /// A constant, in seconds.
    Always(u64),
}

/// What is charged for an answer before it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Nothing: what was generated is charged at the end.
    Real,
    /// The most it may be, on top of the prompt; the surplus is refunded at the end.
    Added,
    /// The most it may be, or the prompt, whichever is more; the difference is settled at the end.
    Larger,
}

impl Options {
    /// As a provider of this shape is documented to be.
    #[must_use]
    pub fn of(shape: Shape) -> Self {
        let (model, output) = match shape {
            Shape::Anthropic => ("claude-opus-4-6", Output::Real),
            Shape::OpenAi => ("gpt-4o", Output::Larger),
            Shape::Azure => ("gpt-4o", Output::Added),
            Shape::Gemini => ("gemini-2.5-flash", Output::Real),
            Shape::Mistral => ("mistral-small-latest", Output::Added),
            Shape::GitHub => ("core", Output::Real),
            Shape::Plain => ("plain", Output::Added),
        };
        let like_openai = matches!(shape, Shape::OpenAi | Shape::Azure);
        Self {
            model: model.to_owned(),
            origin: ORIGIN,
            clock_error: 0,
            retry_after: RetryAfter::Real,
            refused_count: like_openai,
            output,
            cached_count: like_openai,
            silent: false,
            lenient: false,
            forged: Vec::new(),
        }
    }

    /// What of a unit a call is charged when it arrives, and what must be left for it.
    pub(super) fn at_arrival(&self, unit: Unit, call: &Call) -> (u64, u64) {
        let Call { input, max_output, .. } = *call;
        match (unit, self.output) {
            (Unit::Requests, _) => (1, 1),
            (Unit::Input, _) => (input, input),
            // Nothing is charged yet, but there must be something left to generate with.
            (Unit::Output, Output::Real) => (0, 1),
            (Unit::Output, _) => (max_output, max_output),
            (Unit::Tokens, Output::Real) => (input, input.saturating_add(1)),
            (Unit::Tokens, Output::Added) => same(input.saturating_add(max_output)),
            (Unit::Tokens, Output::Larger) => same(input.max(max_output)),
        }
    }

    /// What of a unit a call has been charged when all is known.
    pub(super) fn at_end(&self, unit: Unit, used: &Used) -> u64 {
        let cached = if self.cached_count { used.cache_read } else { 0 };
        let input = used.input.saturating_add(used.cache_written).saturating_add(cached);
        match unit {
            Unit::Requests => 1,
            Unit::Input => input,
            Unit::Output => used.output,
            Unit::Tokens => input.saturating_add(used.output),
        }
    }
}

const fn same(units: u64) -> (u64, u64) {
    (units, units)
}

/// 2025-08-21T12:41:00Z, the moment of a recorded reply that the tests are held against.
pub(crate) const ORIGIN: u64 = 1_755_780_060_000_000;
