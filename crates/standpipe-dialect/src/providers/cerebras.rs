//! Cerebras: OpenAI's headers with the period in the name, and OpenAI's codes.

use crate::dialect::Dialect;
use crate::providers::generic::Profile;
use crate::providers::{Provider, openai};

pub(super) static PROVIDER: Provider = Provider {
    charges_max_tokens: true,
    read_limits: |reader| PROFILE.read_limits(reader),
    classify: |reader, error| PROFILE.classify(reader, error),
    ..Provider::new(Dialect::Cerebras, "cerebras")
};

static PROFILE: Profile = Profile {
    limits: &[
        openai::limit("-requests-minute", "requests").per_seconds(60),
        openai::limit("-requests-hour", "requests").per_seconds(3_600),
        openai::limit("-requests-day", "requests").per_seconds(86_400),
        openai::limit("-tokens-minute", "tokens").per_seconds(60),
        openai::limit("-tokens-hour", "tokens").per_seconds(3_600),
        openai::limit("-tokens-day", "tokens").per_seconds(86_400),
    ],
    uses_openai_codes: true,
    ..Profile::DEFAULT
};
