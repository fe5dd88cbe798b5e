//! Stripe: a header states why a 429 was sent. Some are about concurrency, some about one object
//! and not about the account.

use crate::dialect::Dialect;
use crate::providers::Provider;
use crate::providers::generic::{Profile, Rule, RuleVerdict};

pub(super) static PROVIDER: Provider = Provider {
    read_limits: |reader| PROFILE.read_limits(reader),
    classify: |reader, error| PROFILE.classify(reader, error),
    ..Provider::new(Dialect::Stripe, "stripe")
};

const REASON: &str = "stripe-rate-limited-reason";
const REQUESTS_PER_SECOND: RuleVerdict = RuleVerdict::quota(Some("requests"), Some(1));

static PROFILE: Profile = Profile {
    rules: &[
        Rule::code("lock_timeout", RuleVerdict::Transient),
        Rule::header(REASON, "resource-specific", RuleVerdict::Transient),
        Rule::header(REASON, "*-concurrency", RuleVerdict::CONCURRENCY),
        Rule::header(REASON, "*-rate", REQUESTS_PER_SECOND),
        Rule::code("rate_limit", REQUESTS_PER_SECOND),
    ],
    ..Profile::DEFAULT
};
