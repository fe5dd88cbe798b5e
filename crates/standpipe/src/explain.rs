//! The admission rule, step by step, for one call: what each step says, and the figures it goes by.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::advice::Advice;
use crate::refused::Refused;
use crate::status::{LimitStatus, TicketStatus};
use crate::when::When;

/// What a call would be answered now.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// It would be admitted.
    Admitted {
        /// In shadow mode: what would have been said.
        instead_of: Option<Box<Refused>>,
    },
    /// It would wait.
    Waits(Box<Refused>),
    /// It would be refused.
    Refused(Box<Refused>),
}

/// The admission rule, step by step, for one call.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Explanation {
    /// On which pool.
    pub pool: String,
    /// Who asks.
    pub agent: String,
    /// In which tier.
    pub priority: &'static str,
    /// What the call takes.
    pub cost: BTreeMap<String, u64>,
    /// How much quota is left: `green`, `amber` or `red`.
    pub zone: &'static str,
    /// `closed`, `pre_emptive`, `open` or `half_open`.
    pub breaker: &'static str,
    /// What to do about a long wait.
    pub advice: Option<Advice>,
    /// `admitted`, `waits` or `refused`.
    pub verdict: &'static str,
    /// Why not, and until when; in shadow mode, what would have been said.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::refused::Told>))]
    pub why: Option<Refused>,
    /// The steps in their order. The first that says no names the reason.
    pub steps: Vec<Step>,
    /// The limits the call goes by.
    pub limits: Vec<LimitStatus>,
    /// The calls of this agent that wait already, in order.
    pub waiting: Vec<TicketStatus>,
}

/// One step of the admission rule.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Step {
    /// Its number, from 1.
    pub number: u8,
    /// `terminal`, `never`, `not yet`, `not these units`, `not before them`, `not now`.
    pub name: &'static str,
    /// What it asks.
    pub question: &'static str,
    /// Everything that says no here.
    pub noes: Vec<No>,
}

/// Something that says no.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct No {
    /// Why.
    pub reason: &'static str,
    /// The limit it is about.
    pub limit: Option<String>,
    /// How many units are missing there.
    pub short_by: u64,
    /// When this step alone would admit the call.
    #[serde(flatten)]
    pub when: When,
}

impl Step {
    /// Whether anything says no here.
    #[must_use]
    pub fn says_no(&self) -> bool {
        !self.noes.is_empty()
    }
}

impl Verdict {
    /// Whether the call would be admitted now.
    #[must_use]
    pub const fn is_admitted(&self) -> bool {
        matches!(self, Self::Admitted { .. })
    }

    /// `admitted`, `waits` or `refused`.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Admitted { .. } => "admitted",
            Self::Waits(_) => "waits",
            Self::Refused(_) => "refused",
        }
    }

    /// Why not, and until when; in shadow mode, what would have been said.
    #[must_use]
    pub fn why(&self) -> Option<&Refused> {
        match self {
            Self::Admitted { instead_of } => instead_of.as_deref(),
            Self::Waits(refused) | Self::Refused(refused) => Some(refused),
        }
    }
}
