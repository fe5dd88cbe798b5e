//! The options of a coordinated agent: its timeout, how it waits, and which cost it states.

use standpipe_core::{Amounts, Unit};

use crate::provider::Call;

/// The options of a coordinated agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientOptions {
    /// The time from the plan of a call to its last admission, retries included.
    pub patience: u64,
    /// The largest number of attempts.
    pub tries: u32,
    /// What it does while a call is not admitted.
    pub wait_mode: WaitMode,
    /// Which cost its reserves state.
    pub cost_hint: CostHint,
}

/// What an agent does while a call is not admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitMode {
    /// It waits with a ticket.
    Queue,
    /// It waits with a ticket for this long, then reserves anew.
    Spells(u64),
    /// It takes no ticket, sleeps until the instant of the refusal, and reserves again.
    Sleep,
    /// It takes no ticket and reserves again at this interval.
    Poll(u64),
}

/// Which cost a reserve states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CostHint {
    /// The upper bound of each unit.
    Most,
    /// The bytes of the prompt and an upper bound; the ledger estimates the cost.
    Bounds,
}

/// The cost that a reserve states.
#[derive(Clone, Debug, Default)]
pub(super) struct StatedCost {
    pub(super) cost: Amounts,
    pub(super) at_most: Amounts,
    pub(super) bytes: Option<u64>,
}

impl ClientOptions {
    /// Five minutes, ten attempts, a ticket, and the upper bound as cost.
    pub const USUAL: Self = Self {
        patience: 300_000_000,
        tries: 10,
        wait_mode: WaitMode::Queue,
        cost_hint: CostHint::Most,
    };
}

impl WaitMode {
    /// The patience of one reserve, of the time that is left.
    pub(super) const fn patience(self, left: u64) -> u64 {
        match self {
            Self::Queue => left,
            Self::Spells(spell) if spell < left => spell,
            Self::Spells(_) => left,
            Self::Sleep | Self::Poll(_) => 0,
        }
    }

    /// When it reserves again after a refusal that named an instant or none.
    pub(super) const fn next_ask(self, now: u64, until: Option<u64>) -> Option<u64> {
        match self {
            Self::Poll(every) => Some(now.saturating_add(every)),
            _ => until,
        }
    }
}

impl CostHint {
    pub(super) fn of(self, call: &Call) -> StatedCost {
        let figures = |input: u64, output: u64| {
            let all = input.saturating_add(output);
            [(Unit::InputTokens, input), (Unit::OutputTokens, output), (Unit::Tokens, all)]
        };
        match self {
            Self::Most => {
                let cost = Amounts::cost(figures(call.input, call.max_output)).unwrap_or_default();
                StatedCost { cost, ..StatedCost::default() }
            }
            Self::Bounds => {
                let bytes = call.input.saturating_mul(BYTES_PER_TOKEN);
                // No token is shorter than a byte.
                let at_most = Amounts::new(figures(bytes, call.max_output)).unwrap_or_default();
                let cost = Amounts::cost([]).unwrap_or_default();
                StatedCost { cost, at_most, bytes: Some(bytes) }
            }
        }
    }
}

/// The average of English text.
const BYTES_PER_TOKEN: u64 = 4;
