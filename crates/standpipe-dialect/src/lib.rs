//! Reads what a provider's response says about limits, usage and refusals.
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
//! A streamed response goes through a [`StreamReader`] as it passes: feed it every chunk, then ask
//! for usage and refusal.
//!
//! # Contract
//!
//! - Reading is total: no response panics or costs more than [`bounds`] allow.
//! - An implausible value is ignored and reported as an [`Anomaly`]. No amount exceeds
//!   [`bounds::AMOUNT`] and no wait exceeds [`bounds::WAIT`], or [`bounds::TERMINAL_WAIT`] for a
//!   terminal refusal.
//! - A response that Standpipe itself wrote yields no limits, no usage and no refusal.
//! - A provider's error message is kept as one short line with secrets masked.
//! - The result depends on the arguments alone.
//!
//! # What it never does
//!
//! It has no clock, no IO and no logging. It decides nothing: the ledger decides what follows from
//! a refusal.
//!
//! # Reading order
//!
//! `answer` (input and output), `dialect` (the steps of reading), `providers` (the table: one row
//! and one file per provider; `openai` is short, `stripe` is pure data), `reader` (headers and
//! error bodies), `parse` (numbers, dates, JSON), `stream` (streamed responses), `printed`
//! (messages of command-line programs).

pub mod bounds;

mod anomaly;
mod answer;
mod dialect;
mod parse;
mod printed;
mod providers;
mod reader;
mod stream;
mod text;
mod usage;

pub use crate::anomaly::{Anomaly, AnomalyReason};
pub use crate::answer::{Answer, Kind, LimitSeen, Refused, ResetMeans, Response, Verdict};
pub use crate::dialect::Dialect;
pub use crate::printed::{PrintedLimit, PrintedReset, PrintedTime, printed_limit, printed_reset};
pub use crate::stream::StreamReader;
pub use crate::text::is_invisible;
pub use crate::usage::Usage;
