//! Slack: a refusal states neither limit nor period, because both differ by method. It may have
//! status 200.

use crate::dialect::Dialect;
use crate::providers::Provider;
use crate::providers::generic::{self, Profile, Rule, RuleVerdict};

pub(super) static PROVIDER: Provider = Provider {
    read_limits: |reader| PROFILE.read_limits(reader),
    classify: |reader, error| PROFILE.classify(reader, error),
    error_in_200: generic::error_in_200,
    ..Provider::new(Dialect::Slack, "slack")
};

static PROFILE: Profile = Profile {
    rules: &[
        Rule::code("ratelimited", RuleVerdict::quota(Some("requests"), None)),
        Rule::code("rate_limited", RuleVerdict::quota(Some("requests"), None)),
    ],
    ..Profile::DEFAULT
};
