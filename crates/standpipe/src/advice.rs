//! What a caller had better do before its quota runs out: ask for less, or go elsewhere.
//!
//! Advice withholds nothing. The ledger says when a call like this would have to wait; where it
//! could go instead is looked up here, over the pool's fallback chain.

use serde::Serialize;
use standpipe_core::{LimitId, Unit};

use crate::error::Error;
use crate::pool::Pool;
use crate::refused::limit_text;
use crate::request::Request;

/// What a caller had better do.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Advice {
    /// How long a call like this would wait, as things go.
    pub wait_ms: u64,
    /// For which limit.
    pub limit: String,
    /// What to do about it, the first first.
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
        pool: String,
    },
}

impl Advice {
    /// The ledger's foresight, with what can be done about it on its own pool.
    pub(crate) fn of(told: &standpipe_core::Advice) -> Self {
        let wait_ms = told.wait.0.div_ceil(1_000);
        Self { wait_ms, limit: limit_text(&told.limit), try_this: asking_less(told) }
    }

    /// One sentence, for people.
    #[must_use]
    pub fn sentence(&self) -> String {
        let each: Vec<String> = self.try_this.iter().map(Remedy::words).collect();
        let seconds = self.wait_ms.div_ceil(1_000);
        let todo = match each.as_slice() {
            [] => "nothing smaller helps, and no pool of its `fallback` has room".to_owned(),
            some => format!("better {}", some.join(", or ")),
        };
        format!("at this rate such a call waits about {seconds} s for {}: {todo}", self.limit)
    }
}

impl Remedy {
    fn words(&self) -> String {
        match self {
            Self::CapOutput { to } => format!("ask for at most {to} tokens of output"),
            Self::ShrinkPrompt { to } => format!("send at most {to} tokens"),
            Self::Fallback { pool } => format!("call `{pool}`, which has room"),
        }
    }
}

/// Of which units less can be asked for, and how much would do.
fn asking_less(told: &standpipe_core::Advice) -> Vec<Remedy> {
    let to = told.fits;
    let unit = match &told.limit {
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

impl Pool {
    /// What a caller of such a request had better do: nothing, as long as it would not wait long.
    /// Changes nothing.
    ///
    /// # Errors
    /// As [`Pool::peek`].
    pub fn advise(&self, request: &Request) -> Result<Option<Advice>, Error> {
        let Some(mut advice) = self.foresee(request)? else { return Ok(None) };
        let elsewhere = self.fallback(request)?;
        advice
            .try_this
            .extend(elsewhere.map(|pool| Remedy::Fallback { pool: pool.name().to_string() }));
        Ok(Some(advice))
    }

    /// The first pool of its fallback chain that has room for a request.
    ///
    /// # Errors
    /// As [`Pool::peek`].
    pub fn fallback(&self, request: &Request) -> Result<Option<Self>, Error> {
        let settings = self.tap().settings().pools.get(self.name());
        let chain = settings.map_or(&[][..], |pool| &pool.fallback);
        self.first_with_room(chain, request)
    }
}
