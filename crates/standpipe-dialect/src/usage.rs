//! What a call used, as its provider counts it.

use serde_json::Value;

use crate::bounds;
use crate::dialect::Dialect;
use crate::doubt::Doubts;
use crate::json;

/// What a call used; what is not told is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of the prompt. Whether those read from a cache are among them differs: see
    /// [`Usage::charged_input`].
    pub input_tokens: Option<u64>,
    /// Tokens that were generated, thoughts among them.
    pub output_tokens: Option<u64>,
    /// Tokens that were read from a cache.
    pub cache_read_tokens: Option<u64>,
    /// Tokens that were written to a cache.
    pub cache_write_tokens: Option<u64>,
    /// All of it, as the provider sums it up.
    pub total_tokens: Option<u64>,
    /// Points of a query.
    pub points: Option<u64>,
}

/// Where providers write a figure; the first that is there counts.
type Places = &'static [&'static [&'static str]];

const INPUT: Places =
    &[&["prompt_tokens"], &["input_tokens"], &["promptTokenCount"], &["inputTokens"]];
const OUTPUT: Places =
    &[&["completion_tokens"], &["output_tokens"], &["candidatesTokenCount"], &["outputTokens"]];
const CACHE_READ: Places = &[
    &["cache_read_input_tokens"],
    &["prompt_tokens_details", "cached_tokens"],
    &["input_tokens_details", "cached_tokens"],
    &["cachedContentTokenCount"],
    &["cacheReadInputTokens"],
];
const CACHE_WRITE: Places = &[
    &["cache_creation_input_tokens"],
    &["prompt_tokens_details", "cache_write_tokens"],
    &["input_tokens_details", "cache_write_tokens"],
    &["cacheWriteInputTokens"],
];
const TOTAL: Places = &[&["total_tokens"], &["totalTokenCount"], &["totalTokens"]];
/// Gemini tells these apart from what they are part of.
const TOOL_PROMPT: Places = &[&["toolUsePromptTokenCount"]];
const THOUGHTS: Places = &[&["thoughtsTokenCount"]];

impl Usage {
    /// What a `usage` or `usageMetadata` object says, in any dialect: their names do not clash.
    pub(crate) fn of(value: &Value, doubts: &mut Doubts) -> Self {
        let mut take = |places: Places| {
            let told = |path: &&[&str]| json::at(value, path).is_some_and(|told| !told.is_null());
            let path = places.iter().copied().find(told)?;
            let found = json::at(value, path)?;
            let read = json::figure(found);
            read.map_err(|why| doubts.add(&path.join("."), &found.to_string(), why)).ok()
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

    /// Whether nothing is told.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Takes in what a later event says. Figures of a stream are totals so far, so the larger one
    /// is the later one.
    pub(crate) fn grow(&mut self, later: &Self) {
        self.input_tokens = self.input_tokens.max(later.input_tokens);
        self.output_tokens = self.output_tokens.max(later.output_tokens);
        self.cache_read_tokens = self.cache_read_tokens.max(later.cache_read_tokens);
        self.cache_write_tokens = self.cache_write_tokens.max(later.cache_write_tokens);
        self.total_tokens = self.total_tokens.max(later.total_tokens);
        self.points = self.points.max(later.points);
    }

    /// The input that counts against the provider's limit.
    ///
    /// Anthropic and Bedrock leave cached tokens out of `input_tokens` and charge those written;
    /// Groq puts them in and does not charge those read; the others put them in and charge them.
    #[must_use]
    pub fn charged_input(&self, dialect: Dialect) -> Option<u64> {
        let input = self.input_tokens?;
        Some(match dialect {
            Dialect::Anthropic | Dialect::Bedrock => {
                input.saturating_add(self.cache_write_tokens.unwrap_or(0))
            }
            Dialect::Groq => input.saturating_sub(self.cache_read_tokens.unwrap_or(0)),
            _ => input,
        })
    }
}

fn sum(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (None, None) => None,
        (a, b) => Some((a.unwrap_or(0) + b.unwrap_or(0)).min(bounds::FIGURE)),
    }
}
