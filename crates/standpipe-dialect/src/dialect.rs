//! The dialects by name, and how an answer is read in one: body first, then headers, then status.

use crate::answer::{Answer, Kind, Refused, Response, Verdict};
use crate::fault::Fault;
use crate::hints::Hint;
use crate::json;
use crate::reading::Reading;
use crate::usage::Usage;
use crate::{anthropic, azure, copilot, gemini, generic, github, openai, status};

/// Whose way of telling limits, usage and refusals an answer is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dialect {
    /// Anthropic, with a key or with a subscription.
    Anthropic,
    /// OpenAI: chat, Responses, embeddings.
    OpenAi,
    /// OpenAI's models at Azure.
    AzureOpenAi,
    /// Google's Gemini, also at Vertex.
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
    /// Everybody else: the headers that are common, and those that are to be the standard.
    Generic,
}

impl Dialect {
    /// Whether the most output that a call asks for is charged when it comes in, and not what it
    /// turns out to be.
    #[must_use]
    pub const fn charges_max_tokens(self) -> bool {
        matches!(
            self,
            Self::OpenAi | Self::AzureOpenAi | Self::Bedrock | Self::Groq | Self::Cerebras
        )
    }

    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::Anthropic,
        Self::OpenAi,
        Self::AzureOpenAi,
        Self::Gemini,
        Self::GitHub,
        Self::Copilot,
        Self::Bedrock,
        Self::Groq,
        Self::Cerebras,
        Self::Stripe,
        Self::Slack,
        Self::Discord,
        Self::Shopify,
        Self::Generic,
    ];

    /// The name for it everywhere.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
            Self::AzureOpenAi => "azure-openai",
            Self::Gemini => "gemini",
            Self::GitHub => "github",
            Self::Copilot => "copilot",
            Self::Bedrock => "bedrock",
            Self::Groq => "groq",
            Self::Cerebras => "cerebras",
            Self::Stripe => "stripe",
            Self::Slack => "slack",
            Self::Discord => "discord",
            Self::Shopify => "shopify",
            Self::Generic => "generic",
        }
    }

    /// The dialect of this name, or of another that people use for it.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let name = name.trim().to_ascii_lowercase().replace(['_', ' '], "-");
        let other = match name.as_str() {
            "claude" | "claude-code" => Self::Anthropic,
            "open-ai" | "codex" => Self::OpenAi,
            "azure" | "azureopenai" | "azure-open-ai" => Self::AzureOpenAi,
            "google" | "vertex" | "vertex-ai" | "google-ai" => Self::Gemini,
            "gh" => Self::GitHub,
            "github-copilot" => Self::Copilot,
            "aws" | "aws-bedrock" | "amazon-bedrock" => Self::Bedrock,
            "ietf" | "http" | "other" => Self::Generic,
            _ => return Self::ALL.into_iter().find(|dialect| dialect.name() == name),
        };
        Some(other)
    }

    /// What an answer means.
    #[must_use]
    pub fn read(self, response: &Response<'_>) -> Answer {
        let mut reading = Reading::of(response);
        if reading.is_ours() {
            let verdict = Verdict::NotOurs { transient: false };
            return Answer { verdict, limits: Vec::new(), usage: None, doubts: Vec::new() };
        }
        self.see_limits(&mut reading);
        let verdict = self.verdict(&mut reading);
        let usage = self.usage(&mut reading, &verdict);
        let Reading { limits, doubts, .. } = reading;
        Answer { verdict, limits, usage, doubts: doubts.into_vec() }
    }

    /// The refusal in an event of a stream, if it is one: an error that came after the 200.
    pub(crate) fn refused_in_stream(self, fault: &Fault) -> Option<Refused> {
        let status = fault.status().unwrap_or(200);
        let response = Response { status, headers: &[], body: b"", received: 0 };
        match self.judge(&mut Reading::of(&response), fault) {
            Verdict::Refused(refused) => Some(refused),
            Verdict::Ok | Verdict::NotOurs { .. } => None,
        }
    }

    fn verdict(self, reading: &mut Reading<'_>) -> Verdict {
        let fault = if reading.status < 400 {
            // Some answer 200 and put the error into the body.
            match self.fault_in_200(reading.body) {
                Some(fault) => fault,
                None => return Verdict::Ok,
            }
        } else {
            Fault::of(reading.body)
        };
        self.judge(reading, &fault)
    }

    fn judge(self, reading: &mut Reading<'_>, fault: &Fault) -> Verdict {
        let known = match self {
            Self::Anthropic => anthropic::judge(reading, fault),
            Self::OpenAi => openai::judge(reading, fault),
            Self::AzureOpenAi => azure::judge(reading, fault),
            Self::Gemini => gemini::judge(reading, fault),
            Self::GitHub => github::judge(reading, fault),
            Self::Copilot => copilot::judge(reading, fault),
            _ => generic::judge(self, reading, fault),
        };
        known.unwrap_or_else(|| reading.by_status(self.hints(), fault))
    }

    fn see_limits(self, reading: &mut Reading<'_>) {
        match self {
            Self::Anthropic => anthropic::see_limits(reading),
            Self::OpenAi => openai::see_limits(reading),
            Self::AzureOpenAi => azure::see_limits(reading),
            // It tells of its limits only when it refuses.
            Self::Gemini => {}
            Self::GitHub => github::see_limits(reading),
            Self::Copilot => copilot::see_limits(reading),
            _ => generic::see_limits(self, reading),
        }
    }

    const fn hints(self) -> &'static [Hint] {
        match self {
            Self::Copilot => copilot::HINTS,
            Self::Generic => generic::HINTS,
            _ => status::HINTS,
        }
    }

    fn fault_in_200(self, body: &[u8]) -> Option<Fault> {
        match self {
            Self::GitHub => github::fault_in_200(body),
            Self::Shopify | Self::Slack => generic::fault_in_200(body),
            _ => None,
        }
    }

    fn usage(self, reading: &mut Reading<'_>, verdict: &Verdict) -> Option<Usage> {
        let served = matches!(verdict, Verdict::Ok);
        let usage = match self {
            // A query costs its points also when it is refused halfway.
            Self::GitHub => github::usage(reading),
            Self::Shopify => generic::shopify_usage(reading),
            Self::Gemini if served => usage_of(reading, "usageMetadata"),
            Self::Bedrock if served => generic::bedrock_usage(reading),
            _ if served => usage_of(reading, "usage"),
            _ => Usage::default(),
        };
        (!usage.is_empty()).then_some(usage)
    }
}

/// The usage in a member of the body.
pub(crate) fn usage_of(reading: &mut Reading<'_>, member: &str) -> Usage {
    let value = json::member(reading.body, member).and_then(json::parse);
    value.map_or_else(Usage::default, |value| Usage::of(&value, &mut reading.doubts))
}

impl Kind {
    /// The same, but terminal if the wait is longer than anybody should retry.
    pub(crate) fn unless_longer_than(
        self,
        wait: Option<std::time::Duration>,
        most: std::time::Duration,
    ) -> Self {
        if wait.is_some_and(|wait| wait > most) { Self::Terminal } else { self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doubt::Doubts;

    #[test]
    fn names_lead_back() {
        for dialect in Dialect::ALL {
            assert_eq!(Dialect::named(dialect.name()), Some(dialect));
            assert_eq!(Dialect::named(&dialect.name().to_uppercase()), Some(dialect));
        }
        assert_eq!(Dialect::named("azure"), Some(Dialect::AzureOpenAi));
        assert_eq!(Dialect::named("Azure_OpenAI"), Some(Dialect::AzureOpenAi));
        assert_eq!(Dialect::named("google"), Some(Dialect::Gemini));
        assert_eq!(Dialect::named("nobody"), None);
    }

    #[test]
    fn doubts_are_bounded() {
        let mut doubts = Doubts::default();
        (0..100).for_each(|n| doubts.add("a", &n.to_string(), crate::doubt::Why::Unreadable));
        assert_eq!(doubts.into_vec().len(), crate::bounds::DOUBTS);
    }
}
