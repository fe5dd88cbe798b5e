//! OpenAI models on Azure: OpenAI's headers with resets in plain seconds, and messages instead of
//! codes.

use crate::answer::{Kind, Verdict};
use crate::dialect::Dialect;
use crate::providers::{Provider, openai};
use crate::reader::{ErrorBody, LimitHeaders, ResponseReader, RetryHeader};

pub(super) static PROVIDER: Provider = Provider {
    aliases: &["azure", "azureopenai", "azure-open-ai"],
    charges_max_tokens: true,
    read_limits: |reader| reader.read_limit_headers(&LIMITS),
    classify,
    ..Provider::new(Dialect::AzureOpenAi, "azure-openai")
};

/// Azure sends -1, -1 and 0 if the values are unknown.
const LIMITS: [LimitHeaders; 2] =
    [openai::limit("-requests", "requests"), openai::limit("-tokens", "tokens")];

/// Phrases for a region that lacks capacity, whatever the caller's own quota.
const CAPACITY: &[&str] = &["high demand", "at capacity", "no capacity", "temporarily unable"];

fn classify(reader: &mut ResponseReader<'_>, error: &ErrorBody) -> Option<Verdict> {
    if let Some(verdict) = openai::classify_code(reader, RetryHeader::COMMON, error) {
        return Some(verdict);
    }
    let is_refusal = matches!(reader.status, 429 | 503);
    (is_refusal && error.contains(CAPACITY))
        .then(|| reader.refusal(Kind::Overload, RetryHeader::COMMON, error))
}
