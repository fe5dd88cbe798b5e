//! The table of providers: one row per [`Dialect`], each defined in the provider's own file.
//!
//! To add a provider, add its variant to [`Dialect`] before `Generic`, its file here with a
//! `PROVIDER` row, and the row to [`PROVIDERS`] at the same position. The build fails if the
//! enum and the table differ.

mod anthropic;
mod azure;
mod bedrock;
mod cerebras;
mod copilot;
mod discord;
mod gemini;
mod generic;
mod github;
mod groq;
mod openai;
mod shopify;
mod slack;
mod stripe;

use crate::answer::Verdict;
use crate::dialect::Dialect;
use crate::reader::{ErrorBody, ResponseReader, RetryHeader};
use crate::usage::{ChargedInput, Usage};

/// Everything in which one provider differs from the others.
pub(crate) struct Provider {
    pub(crate) dialect: Dialect,
    /// The name in configuration, logs and the API.
    pub(crate) name: &'static str,
    /// Other names that [`Dialect::named`] accepts, in lower case with `-` between words.
    pub(crate) aliases: &'static [&'static str],
    /// Whether the provider charges `max_tokens` on arrival instead of the generated output.
    pub(crate) charges_max_tokens: bool,
    /// Whether the provider documents that its limits per minute refill continuously.
    pub(crate) refills_continuously: bool,
    /// How the provider charges cached input.
    pub(crate) charged_input: ChargedInput,
    /// The headers that state a wait, for errors that only their status classifies.
    pub(crate) retry_headers: &'static [RetryHeader],
    /// Adds the limits that the response states to the reader.
    pub(crate) read_limits: fn(&mut ResponseReader<'_>),
    /// Classifies an error. `None` leaves it to the HTTP status.
    pub(crate) classify: fn(&mut ResponseReader<'_>, &ErrorBody) -> Option<Verdict>,
    /// Finds the error in the body of a response whose status is below 400.
    pub(crate) error_in_200: fn(&[u8]) -> Option<ErrorBody>,
    /// Reads what the call used.
    pub(crate) read_usage: fn(&mut ResponseReader<'_>) -> Usage,
    /// Whether the provider reports, and charges, the usage of calls that it did not serve.
    pub(crate) reports_usage_of_errors: bool,
}

/// One row per dialect, in the order of the enum, so that a dialect is the index of its row.
pub(crate) const PROVIDERS: [&Provider; 14] = [
    &anthropic::PROVIDER,
    &openai::PROVIDER,
    &azure::PROVIDER,
    &gemini::PROVIDER,
    &github::PROVIDER,
    &copilot::PROVIDER,
    &bedrock::PROVIDER,
    &groq::PROVIDER,
    &cerebras::PROVIDER,
    &stripe::PROVIDER,
    &slack::PROVIDER,
    &discord::PROVIDER,
    &shopify::PROVIDER,
    &generic::PROVIDER,
];

// Every variant has its row: `Generic` is the last variant, and each row is at its own index.
const _: () = {
    assert!(PROVIDERS.len() == Dialect::Generic as usize + 1);
    let mut row = 0;
    while row < PROVIDERS.len() {
        assert!(PROVIDERS[row].dialect as usize == row);
        row += 1;
    }
};

/// The dialects of the table.
pub(crate) const fn dialects() -> [Dialect; PROVIDERS.len()] {
    let mut all = [Dialect::Generic; PROVIDERS.len()];
    let mut row = 0;
    while row < PROVIDERS.len() {
        all[row] = PROVIDERS[row].dialect;
        row += 1;
    }
    all
}

impl Provider {
    /// A provider that states no limits, has no error codes of its own, and reports token usage
    /// in the member `usage` of the body. A row overrides what differs.
    const fn new(dialect: Dialect, name: &'static str) -> Self {
        Self {
            dialect,
            name,
            aliases: &[],
            charges_max_tokens: false,
            refills_continuously: false,
            charged_input: ChargedInput::AsReported,
            retry_headers: RetryHeader::COMMON,
            read_limits: |_| {},
            classify: |_, _| None,
            error_in_200: |_| None,
            read_usage: |reader| reader.usage_member("usage"),
            reports_usage_of_errors: false,
        }
    }
}
