//! What a provider's answers mean for the ledger: usage, limits, refusals and retries.
//!
//! Reading order: `reply` turns an answer into actions, `streamed` reads one while it passes,
//! `answered` sends them, `report` holds what callers report themselves, `retry` is the retry loop,
//! and `printed_refusal` checks refusals that only a program's message reports. The formats of
//! providers are in `standpipe-dialect`.

mod answered;
mod printed_refusal;
pub(crate) mod reply;
pub(crate) mod report;
pub(crate) mod retry;
pub(crate) mod streamed;
