//! What a caller can do before its quota runs out: request less, or use another pool.
//!
//! Advice withholds nothing. The ledger forecasts how long a call would wait; the library adds the
//! first pool of the fallback chain that has room.

use serde::Serialize;
use standpipe_core::{LimitId, Unit};
use standpipe_store::PoolName;

use crate::amount::grouped;
use crate::refusal::limit_text;
use crate::time::format_wait;

/// What a caller can do about a wait that is forecast.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Advice {
    /// The forecast wait of such a call.
    pub wait_ms: u64,
    /// The limit it would wait for.
    pub limit: String,
    /// What to do about it, the best first.
    pub try_this: Vec<Remedy>,
}

/// Something to do about it.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "do", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Remedy {
    /// Ask for a shorter answer.
    CapOutput {
        /// So many tokens would not have to wait.
        to: u64,
    },
    /// Send less.
    ShrinkPrompt {
        /// So many tokens would not have to wait.
        to: u64,
    },
    /// Call another model: that pool has room.
    Fallback {
        /// Which.
        #[cfg_attr(feature = "openapi", schema(value_type = String))]
        pool: PoolName,
    },
}

impl Advice {
    /// Converts the forecast of the ledger, with what helps on the same pool.
    #[must_use]
    pub fn of(forecast: &standpipe_core::Advice) -> Self {
        let wait_ms = forecast.wait.0.div_ceil(1_000);
        Self { wait_ms, limit: limit_text(&forecast.limit), try_this: asking_less(forecast) }
    }

    /// One sentence, for people.
    #[must_use]
    pub fn sentence(&self) -> String {
        let each: Vec<String> = self.try_this.iter().map(Remedy::words).collect();
        let wait = format_wait(self.wait_ms);
        let todo = match each.as_slice() {
            [] => "no smaller request helps, and no fallback pool has room".to_owned(),
            some => some.join(", or "),
        };
        format!("such a call will wait about {wait} for {}: {todo}", self.limit)
    }
}

impl Remedy {
    fn words(&self) -> String {
        match self {
            Self::CapOutput { to } => format!("request at most {} output tokens", grouped(*to)),
            Self::ShrinkPrompt { to } => format!("send at most {} tokens", grouped(*to)),
            Self::Fallback { pool } => format!("use `{pool}`, which has room"),
        }
    }
}

/// Of which units less can be asked for, and how much would do.
fn asking_less(forecast: &standpipe_core::Advice) -> Vec<Remedy> {
    let to = forecast.fits;
    let unit = match &forecast.limit {
        LimitId::Window(unit, _) | LimitId::Bucket(unit, _) if to > 0 => unit,
        _ => return Vec::new(),
    };
    match unit {
        Unit::OutputTokens => vec![Remedy::CapOutput { to }],
        Unit::InputTokens => vec![Remedy::ShrinkPrompt { to }],
        Unit::Tokens => vec![Remedy::CapOutput { to }, Remedy::ShrinkPrompt { to }],
        _ => Vec::new(),
    }
}
