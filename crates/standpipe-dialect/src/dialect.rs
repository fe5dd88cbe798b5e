//! [`Dialect`], the public name of a provider, and [`Dialect::read`], which reads a response.
//!
//! What differs between providers is in their rows of the table in [`crate::providers`]; this
//! module never matches on the dialect.

use crate::answer::{Answer, Refused, Response, Verdict};
use crate::providers::{self, PROVIDERS, Provider};
use crate::reader::{ErrorBody, ResponseReader};
use crate::usage::Usage;

/// The provider whose conventions a response follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dialect {
    /// Anthropic, with an API key or a subscription.
    Anthropic,
    /// OpenAI: chat, Responses, embeddings.
    OpenAi,
    /// OpenAI models on Azure.
    AzureOpenAi,
    /// Google Gemini, including Vertex.
    Gemini,
    /// GitHub, REST and GraphQL.
    GitHub,
    /// GitHub Copilot.
    Copilot,
    /// AWS Bedrock.
    Bedrock,
    /// Groq.
    Groq,
    /// Cerebras.
    Cerebras,
    /// Stripe.
    Stripe,
    /// Slack.
    Slack,
    /// Discord.
    Discord,
    /// Shopify, REST and GraphQL.
    Shopify,
    /// Any other provider: the common headers and the IETF `RateLimit` drafts.
    Generic,
}

impl Dialect {
    /// All dialects, in the order of the enum.
    pub const ALL: [Self; PROVIDERS.len()] = providers::dialects();

    /// Whether the provider charges the requested maximum output (`max_tokens`) on arrival, instead
    /// of the output that it generates.
    #[must_use]
    pub const fn charges_max_tokens(self) -> bool {
        self.provider().charges_max_tokens
    }

    /// Whether the provider documents that its limits per minute refill continuously: a token
    /// bucket, and not a window.
    #[must_use]
    pub const fn refills_continuously(self) -> bool {
        self.provider().refills_continuously
    }

    /// The name in configuration, logs and the API.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.provider().name
    }

    /// The dialect with this name or alias; letter case, `_` and spaces do not matter.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        // Every call of a pool asks for its dialect, so nothing is allocated.
        let name = name.trim().as_bytes();
        let normal = |byte: &u8| match byte {
            b'_' | b' ' => b'-',
            other => other.to_ascii_lowercase(),
        };
        let same =
            |known: &&str| known.len() == name.len() && known.bytes().eq(name.iter().map(normal));
        let is_named = |row: &&&Provider| same(&row.name) || row.aliases.iter().any(same);
        PROVIDERS.iter().find(is_named).map(|row| row.dialect)
    }

    /// The provider's row of the table.
    pub(crate) const fn provider(self) -> &'static Provider {
        PROVIDERS[self as usize]
    }

    /// Reads a response: the limits it states, the usage, and whether it is a refusal.
    #[must_use]
    pub fn read(self, response: &Response<'_>) -> Answer {
        let mut reader = ResponseReader::new(response);
        if reader.is_from_standpipe() {
            // Standpipe's own refusal says nothing about the provider.
            let verdict = Verdict::Failed { transient: false };
            return Answer { verdict, limits: Vec::new(), usage: None, anomalies: Vec::new() };
        }
        // Limits come first: a refusal without details is explained by the limit that is used up.
        (self.provider().read_limits)(&mut reader);
        let verdict = self.verdict(&mut reader);
        let usage = self.usage(&mut reader, &verdict);
        let ResponseReader { limits, anomalies, .. } = reader;
        Answer { verdict, limits, usage, anomalies: anomalies.into_vec() }
    }

    /// The refusal that an error event of a stream states, after the 200 of the response.
    pub(crate) fn refusal_in_stream(self, error: &ErrorBody) -> Option<Refused> {
        let status = error.status().unwrap_or(200);
        let response = Response { status, headers: &[], body: b"", received: 0 };
        match self.classify(&mut ResponseReader::new(&response), error) {
            Verdict::Refused(refused) => Some(refused),
            Verdict::Ok | Verdict::Failed { .. } => None,
        }
    }

    fn verdict(self, reader: &mut ResponseReader<'_>) -> Verdict {
        if reader.status >= 400 {
            return self.classify(reader, &ErrorBody::parse(reader.body));
        }
        match (self.provider().error_in_200)(reader.body) {
            Some(error) => self.classify(reader, &error),
            None => Verdict::Ok,
        }
    }

    /// The provider's own rules decide first; the HTTP status decides what they leave open.
    fn classify(self, reader: &mut ResponseReader<'_>, error: &ErrorBody) -> Verdict {
        let provider = self.provider();
        let verdict = (provider.classify)(reader, error);
        verdict.unwrap_or_else(|| reader.by_status(provider.retry_headers, error))
    }

    fn usage(self, reader: &mut ResponseReader<'_>, verdict: &Verdict) -> Option<Usage> {
        let provider = self.provider();
        let is_reported = provider.reports_usage_of_errors || matches!(verdict, Verdict::Ok);
        let usage = is_reported.then(|| (provider.read_usage)(reader));
        usage.filter(|usage| !usage.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back() {
        for dialect in Dialect::ALL {
            assert_eq!(Dialect::named(dialect.name()), Some(dialect));
            assert_eq!(Dialect::named(&dialect.name().to_uppercase()), Some(dialect));
            for alias in dialect.provider().aliases {
                assert_eq!(Dialect::named(alias), Some(dialect), "{alias}");
            }
        }
        assert_eq!(Dialect::named("azure"), Some(Dialect::AzureOpenAi));
        assert_eq!(Dialect::named("Azure_OpenAI"), Some(Dialect::AzureOpenAi));
        assert_eq!(Dialect::named("google"), Some(Dialect::Gemini));
        assert_eq!(Dialect::named("nobody"), None);
    }
}
