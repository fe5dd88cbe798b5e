//! How an agent on the tap goes about a call: how patient it is, how it waits, and what it says of
//! the call beforehand.

use standpipe_core::{Amounts, Unit};

use crate::provider::Call;

/// How an agent goes about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Habits {
    /// How long a call may take from when it is wanted to when it is admitted, retries and all.
    pub patience: u64,
    /// How often it is made at most.
    pub tries: u32,
    /// What it does while it is not admitted.
    pub waits: Waits,
    /// What it says of a call before it is made.
    pub says: Says,
}

/// What an agent does while a call of its is not admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// It waits with a ticket.
    Queue,
    /// It waits with a ticket for so long, and then asks anew.
    Spells(u64),
    /// It takes no ticket, sleeps until the instant it was told, and asks again.
    Sleep,
    /// It takes no ticket, and asks again after so long whatever it was told.
    Poll(u64),
}

/// What an agent says of a call before it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Says {
    /// The most it may take.
    Most,
    /// How many bytes the prompt has, and what the call cannot exceed; the rest is left to the
    /// ledger.
    Bounds,
}

/// What a reserve says of its call.
#[derive(Clone, Debug, Default)]
pub(super) struct Said {
    pub(super) cost: Amounts,
    pub(super) at_most: Amounts,
    pub(super) bytes: Option<u64>,
}

impl Habits {
    /// Five minutes, ten times, with a ticket, saying the most.
    pub const USUAL: Self =
        Self { patience: 300_000_000, tries: 10, waits: Waits::Queue, says: Says::Most };
}

impl Waits {
    /// How long an ask waits, of so long as is left.
    pub(super) const fn patience(self, left: u64) -> u64 {
        match self {
            Self::Queue => left,
            Self::Spells(spell) if spell < left => spell,
            Self::Spells(_) => left,
            Self::Sleep | Self::Poll(_) => 0,
        }
    }

    /// When it asks again after it was refused, and told an instant or none.
    pub(super) const fn again(self, now: u64, told: Option<u64>) -> Option<u64> {
        match self {
            Self::Poll(every) => Some(now.saturating_add(every)),
            _ => told,
        }
    }
}

impl Says {
    pub(super) fn of(self, call: &Call) -> Said {
        let figures = |input: u64, output: u64| {
            let all = input.saturating_add(output);
            [(Unit::InputTokens, input), (Unit::OutputTokens, output), (Unit::Tokens, all)]
        };
        match self {
            Self::Most => {
                let cost = Amounts::cost(figures(call.input, call.max_output)).unwrap_or_default();
                Said { cost, ..Said::default() }
            }
            Self::Bounds => {
                let bytes = call.input.saturating_mul(BYTES_PER_TOKEN);
                // No token is shorter than a byte.
                let at_most = Amounts::new(figures(bytes, call.max_output)).unwrap_or_default();
                let cost = Amounts::cost([]).unwrap_or_default();
                Said { cost, at_most, bytes: Some(bytes) }
            }
        }
    }
}

/// As English is.
const BYTES_PER_TOKEN: u64 = 4;
