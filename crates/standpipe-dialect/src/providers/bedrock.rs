//! AWS Bedrock: no limit headers, only names of exceptions. Streams write them with a lower-case
//! first letter, so codes are compared in lower case.

use crate::answer::Kind;
use crate::dialect::Dialect;
use crate::parse::number;
use crate::providers::Provider;
use crate::providers::generic::{Profile, Rule, RuleVerdict};
use crate::reader::ResponseReader;
use crate::usage::{ChargedInput, Usage};

pub(super) static PROVIDER: Provider = Provider {
    aliases: &["aws", "aws-bedrock", "amazon-bedrock"],
    charges_max_tokens: true,
    charged_input: ChargedInput::PlusCacheWrites,
    read_limits: |reader| PROFILE.read_limits(reader),
    classify: |reader, error| PROFILE.classify(reader, error),
    read_usage,
    ..Provider::new(Dialect::Bedrock, "bedrock")
};

static PROFILE: Profile = Profile {
    rules: &[
        Rule::message(
            "tokens per day",
            RuleVerdict::Refused(Kind::Terminal, Some("tokens"), Some(86_400)),
        ),
        Rule::message("too many tokens", RuleVerdict::quota(Some("tokens"), None)),
        Rule::message("too many requests", RuleVerdict::quota(Some("requests"), None)),
        Rule::code("modelnotreadyexception", RuleVerdict::OVERLOAD),
        Rule::code("serviceunavailableexception", RuleVerdict::OVERLOAD),
        Rule::code("throttlingexception", RuleVerdict::quota(None, None)),
    ],
    code_header: Some("x-amzn-errortype"),
    ..Profile::DEFAULT
};

/// The body states the usage; with `InvokeModel` only headers do.
fn read_usage(reader: &mut ResponseReader<'_>) -> Usage {
    let mut usage = reader.usage_member("usage");
    let mut header = |name: &str| {
        let value = reader.headers.first(name)?;
        reader.ok_or_anomaly(name, value, number::amount(value))
    };
    let input = header("x-amzn-bedrock-input-token-count");
    let output = header("x-amzn-bedrock-output-token-count");
    usage.input_tokens = usage.input_tokens.or(input);
    usage.output_tokens = usage.output_tokens.or(output);
    usage
}
