//! What a server wrote down of one call.

use serde_json::{Value, json};

use crate::provider::{Call, Rule, Verdict};

/// A call, as the provider saw it. Instants are microseconds of the server's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logged {
    /// Its place in the log, from 1.
    pub number: u64,
    /// The API key it came with.
    pub key: String,
    /// The path it asked for, without its query.
    pub path: String,
    /// Who made it, by its `x-agent` header.
    pub agent: String,
    /// The model that its body names.
    pub model: String,
    /// The lease it was made under, by its `x-lease` header.
    pub lease: String,
    /// What it asked for.
    pub call: Call,
    /// When it was decided.
    pub arrived: u64,
    /// What was decided.
    pub verdict: Verdict,
    /// The number of the rule that refused it.
    pub refused_by: Option<usize>,
    /// The kind of that rule.
    pub rule: Option<&'static str>,
    /// The status of its reply, once that is known.
    pub status: Option<u16>,
    /// When it was over; for a refused one, when it arrived.
    pub finished: Option<u64>,
}

impl Logged {
    /// As one object.
    #[must_use]
    pub fn json(&self) -> Value {
        json!({
            "number": self.number,
            "key": self.key,
            "path": self.path,
            "agent": self.agent,
            "model": self.model,
            "lease": self.lease,
            "input": self.call.input,
            "max_output": self.call.max_output,
            "arrived_us": self.arrived,
            "admitted": self.refused_by.is_none(),
            "over": matches!(self.verdict, Verdict::Over(_) | Verdict::OverQuota(_)),
            "refused_by": self.refused_by,
            "rule": self.rule,
            "status": self.status,
            "finished_us": self.finished,
        })
    }
}

/// The kind of a rule, in a word.
pub(super) const fn kind(rule: &Rule) -> &'static str {
    match rule {
        Rule::Bucket { .. } => "bucket",
        Rule::Rolling { .. } => "rolling",
        Rule::FixedWindow { .. } => "fixed_window",
        Rule::Concurrency { .. } => "concurrency",
        Rule::Secondary { .. } => "secondary",
        Rule::Acceleration { .. } => "acceleration",
        Rule::Overload { .. } => "overload",
        Rule::SpendCap { .. } => "spend_cap",
        Rule::Foreign { .. } => "foreign",
    }
}
