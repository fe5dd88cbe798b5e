//! Discord: one window per bucket, named by a header. A limit that is shared with other
//! applications does not count against the caller.

use crate::answer::ResetMeans;
use crate::dialect::Dialect;
use crate::providers::Provider;
use crate::providers::generic::{Profile, Rule, RuleVerdict};
use crate::reader::{LimitHeaders, ResetFormat};

pub(super) static PROVIDER: Provider = Provider {
    read_limits: |reader| PROFILE.read_limits(reader),
    classify: |reader, error| PROFILE.classify(reader, error),
    ..Provider::new(Dialect::Discord, "discord")
};

static PROFILE: Profile = Profile {
    limits: &[LimitHeaders::new("x-ratelimit-", "", "requests", ResetFormat::Seconds)
        .reset_part("reset-after")
        .name_header("x-ratelimit-bucket")
        .reset_means(ResetMeans::WindowEnds)],
    // The plain headers are the same ones.
    fallback_limits: &[],
    rules: &[Rule::header("x-ratelimit-scope", "shared", RuleVerdict::Transient)],
    wait_field: Some("retry_after"),
    ..Profile::DEFAULT
};
