//! What a call used, as its provider counts it.

use crate::anomaly::Anomalies;
use crate::bounds;
use crate::dialect::Dialect;
use crate::parse::borrowed::BorrowedValue;

/// What a call used. `None` means that the response does not state it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of the prompt. Providers differ in whether they include tokens read from a cache:
    /// see [`Usage::charged_input`].
    pub input_tokens: Option<u64>,
    /// Tokens that were generated, including reasoning tokens.
    pub output_tokens: Option<u64>,
    /// Tokens that were read from a cache.
    pub cache_read_tokens: Option<u64>,
    /// Tokens that were written to a cache.
    pub cache_write_tokens: Option<u64>,
    /// The total, as the provider sums it.
    pub total_tokens: Option<u64>,
    /// Points of a query.
    pub points: Option<u64>,
}

/// How a provider charges cached input against its limits.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ChargedInput {
    /// `input_tokens` includes cached tokens, and all of them are charged.
    AsReported,
    /// `input_tokens` excludes cached tokens; cache writes are charged as well.
    PlusCacheWrites,
    /// `input_tokens` includes cached tokens; cache reads are not charged.
    MinusCacheReads,
}

/// The paths at which providers put an amount. The first that is present counts.
type Paths = &'static [&'static [&'static str]];

const INPUT: Paths =
    &[&["prompt_tokens"], &["input_tokens"], &["promptTokenCount"], &["inputTokens"]];
const OUTPUT: Paths =
    &[&["completion_tokens"], &["output_tokens"], &["candidatesTokenCount"], &["outputTokens"]];
const CACHE_READ: Paths = &[
    &["cache_read_input_tokens"],
    &["prompt_tokens_details", "cached_tokens"],
    &["input_tokens_details", "cached_tokens"],
    &["cachedContentTokenCount"],
    &["cacheReadInputTokens"],
];
const CACHE_WRITE: Paths = &[
    &["cache_creation_input_tokens"],
    &["prompt_tokens_details", "cache_write_tokens"],
    &["input_tokens_details", "cache_write_tokens"],
    &["cacheWriteInputTokens"],
];
const TOTAL: Paths = &[&["total_tokens"], &["totalTokenCount"], &["totalTokens"]];
/// Gemini reports these two apart from the prompt and the candidates; they are added to them.
const TOOL_PROMPT: Paths = &[&["toolUsePromptTokenCount"]];
const THOUGHTS: Paths = &[&["thoughtsTokenCount"]];

impl Usage {
    /// No amount known. Usable in `const fn`, unlike [`Default::default`].
    pub(crate) const EMPTY: Self = Self {
        input_tokens: None,
        output_tokens: None,
        cache_read_tokens: None,
        cache_write_tokens: None,
        total_tokens: None,
        points: None,
    };

    /// Reads a `usage` or `usageMetadata` object of any provider: their member names do not clash.
    pub(crate) fn from_json(value: &BorrowedValue<'_>, anomalies: &mut Anomalies) -> Self {
        let mut take = |paths: Paths| {
            let present = |path: &&'static [&str]| {
                value.at(path).filter(|found| !found.is_null()).map(|found| (*path, found))
            };
            let (path, found) = paths.iter().find_map(present)?;
            let shown = || found.to_value().to_string();
            found.amount().map_err(|why| anomalies.add(&path.join("."), &shown(), why)).ok()
        };
        Self {
            input_tokens: sum(take(INPUT), take(TOOL_PROMPT)),
            output_tokens: sum(take(OUTPUT), take(THOUGHTS)),
            cache_read_tokens: take(CACHE_READ),
            cache_write_tokens: take(CACHE_WRITE),
            total_tokens: take(TOTAL),
            points: None,
        }
    }

    /// Whether no amount is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::EMPTY
    }

    /// Merges the usage of a later stream event. Streams report running totals, so the larger
    /// amount is the later one.
    pub(crate) fn merge_later(&mut self, later: &Self) {
        self.input_tokens = self.input_tokens.max(later.input_tokens);
        self.output_tokens = self.output_tokens.max(later.output_tokens);
        self.cache_read_tokens = self.cache_read_tokens.max(later.cache_read_tokens);
        self.cache_write_tokens = self.cache_write_tokens.max(later.cache_write_tokens);
        self.total_tokens = self.total_tokens.max(later.total_tokens);
        self.points = self.points.max(later.points);
    }

    /// The input that counts against the provider's limit.
    ///
    /// Anthropic and Bedrock exclude cached tokens from `input_tokens` and charge cache writes.
    /// Groq includes them and does not charge cache reads. All others include and charge them.
    #[must_use]
    pub fn charged_input(&self, dialect: Dialect) -> Option<u64> {
        let input = self.input_tokens?;
        Some(match dialect.provider().charged_input {
            ChargedInput::AsReported => input,
            ChargedInput::PlusCacheWrites => {
                input.saturating_add(self.cache_write_tokens.unwrap_or(0))
            }
            ChargedInput::MinusCacheReads => {
                input.saturating_sub(self.cache_read_tokens.unwrap_or(0))
            }
        })
    }
}

fn sum(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (None, None) => None,
        (a, b) => Some((a.unwrap_or(0) + b.unwrap_or(0)).min(bounds::AMOUNT)),
    }
}
