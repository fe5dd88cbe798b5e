//! Groq: OpenAI's headers and codes. Requests are counted per day, tokens per minute, and cached
//! input is free.

use crate::dialect::Dialect;
use crate::providers::generic::Profile;
use crate::providers::{Provider, openai};
use crate::usage::ChargedInput;

pub(super) static PROVIDER: Provider = Provider {
    charges_max_tokens: true,
    charged_input: ChargedInput::MinusCacheReads,
    read_limits: |reader| PROFILE.read_limits(reader),
    classify: |reader, error| PROFILE.classify(reader, error),
    ..Provider::new(Dialect::Groq, "groq")
};

static PROFILE: Profile = Profile {
    limits: &[
        openai::limit("-requests", "requests").per_seconds(86_400),
        openai::limit("-tokens", "tokens").per_seconds(60),
    ],
    uses_openai_codes: true,
    ..Profile::DEFAULT
};
