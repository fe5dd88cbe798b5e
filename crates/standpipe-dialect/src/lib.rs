//! What a provider's answer means: the limits it tells of, what the call used, and whether it was
//! a refusal; in the dialect of each provider.
//!
//! ```
//! use std::time::Duration;
//!
//! use standpipe_dialect::{Dialect, Kind, Response, Verdict};
//!
//! let body = br#"{"error":{"type":"tokens","code":"rate_limit_exceeded",
//!     "message":"Rate limit reached on tokens per min (TPM). Please try again in 41.724s."}}"#;
//! let headers = [("X-RateLimit-Limit-Tokens", "30000"), ("x-ratelimit-remaining-tokens", "12")];
//! let response = Response { status: 429, headers: &headers, body, received: 1_792_567_680_000 };
//!
//! let answer = Dialect::OpenAi.read(&response);
//! let Verdict::Refused(refused) = answer.verdict else { panic!() };
//! assert_eq!(refused.kind, Kind::Quota);
//! assert_eq!(refused.wait, Some(Duration::from_millis(41_724)));
//! assert_eq!(refused.unit.as_deref(), Some("tokens"));
//! assert_eq!(answer.limits[0].limit, Some(30_000));
//! ```
//!
//! # The contract
//!
//! - Reading is total: no answer, however odd, panics or costs more than [`bounds`] allow.
//! - What cannot be is not believed, and told as a [`Doubt`]: no wait is longer than eight days, no
//!   figure larger than any limit there is.
//! - An answer that Standpipe itself wrote teaches nothing.
//! - The provider's words are kept short and without secrets.
//!
//! # What it does not do
//!
//! It has no clock, no IO, no logging. It does not decide anything: what follows from a refusal is
//! the ledger's.
//!
//! # Reading order
//!
//! `answer` (what goes in and out), `dialect` (where it comes together), `reading` and `rows` (how
//! headers become limits), then a provider: `openai` is short, `generic` is a table, `stream` reads
//! what arrives piece by piece.

pub mod bounds;

mod answer;
mod dialect;
mod doubt;
mod usage;

mod date;
mod duration;
mod fault;
mod headers;
mod hints;
mod json;
mod message;
mod number;
mod reading;
mod rows;
mod status;
mod words;

mod anthropic;
mod azure;
mod copilot;
mod gemini;
mod generic;
mod github;
mod openai;

mod stream;

pub use crate::answer::{Answer, Kind, LimitSeen, Refused, ResetMeans, Response, Verdict};
pub use crate::dialect::Dialect;
pub use crate::doubt::{Doubt, Why};
pub use crate::stream::StreamReader;
pub use crate::usage::Usage;
