//! A provider's answer, and the actions that it means for the ledger.
//!
//! `standpipe-dialect` parses the answer. Headers and bodies may contain secrets, so only headers
//! about limits and the provider's shortened message reach the journal. `answered` sends the
//! actions.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use standpipe_core::{Action, Amounts, Commit, Hit, Key, Observed, Reading, Throttled};
use standpipe_core::{ThrottleKind, Unit};
use standpipe_dialect::{
    Answer, Dialect, Kind, LimitSeen, ResetMeans, Response, StreamReader, Usage, Verdict,
};
use standpipe_store::PoolName;

use crate::journal::EventData;
use crate::moment::span;

/// The resources that GitHub limits separately, as they appear in pool names: `github/search`.
const GITHUB: [&str; 8] = [
    "core",
    "search",
    "code_search",
    "graphql",
    "integration_manifest",
    "dependency_snapshots",
    "code_scanning_upload",
    "actions_runner_registration",
];

/// A provider's answer as it was received. Every part but the status is optional.
///
/// ```
/// use standpipe::Reply;
///
/// let reply = Reply::new(429).header("retry-after", "17").body(br#"{"type":"error"}"#);
/// assert_eq!(reply.status(), 429);
/// ```
#[derive(Clone, PartialEq, Eq)]
#[must_use = "a reply does nothing until it is given to a lease or a pool"]
pub struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    unrecorded: bool,
    /// What a body that was read while it passed stated.
    streamed: Option<Box<Streamed>>,
}

/// What a streamed body stated: a refusal after the head, and what the call used.
#[derive(Clone, PartialEq, Eq)]
struct Streamed {
    refused: Option<standpipe_dialect::Refused>,
    usage: Usage,
}

/// What a provider's answer meant.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Meaning {
    /// The call was served.
    Served,
    /// The provider refused the call for a reason that concerns everyone on the pool. The pool is
    /// paused.
    Refused {
        /// The kind of the refusal.
        kind: ThrottleKind,
        /// How long to wait, if the provider stated it.
        retry_after: Option<Duration>,
        /// The provider's message, shortened, without secrets.
        message: String,
    },
    /// An error that has nothing to do with quota.
    Failed {
        /// Whether the same call may be retried.
        transient: bool,
    },
}

/// An answer that was read: its meaning, and what the ledger and the journal record of it.
#[derive(Clone)]
pub(crate) struct Read {
    pub(crate) meaning: Meaning,
    pub(crate) notes: Vec<EventData>,
    readings: Vec<Reading>,
    used: Amounts,
    hit: Option<Hit>,
}

impl Reply {
    /// Creates an answer with this HTTP status.
    pub const fn new(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Vec::new(), unrecorded: false, streamed: None }
    }

    /// Adds a header.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sets the body, or the beginning of it.
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// Sets a body that is read and never recorded: the journal gets neither the provider's error
    /// message nor a rejected value of the body.
    pub fn unrecorded_body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.unrecorded = true;
        self.body(body)
    }

    /// Adds what a body that was read while it passed stated.
    pub(super) fn streamed(
        mut self,
        refused: Option<standpipe_dialect::Refused>,
        usage: Usage,
    ) -> Self {
        self.streamed = Some(Box::new(Streamed { refused, usage }));
        self
    }

    /// Returns the HTTP status.
    #[must_use]
    pub const fn status(&self) -> u16 {
        self.status
    }

    /// Returns the headers about limits. Everything else a provider sends may be a secret.
    pub(crate) fn headers_of_limits(&self) -> BTreeMap<String, String> {
        let speaks = |name: &str| {
            let of_limits = name.contains("ratelimit") || name.contains("rate-limit");
            of_limits || name.starts_with("retry-after")
        };
        let lower = self.headers.iter().map(|(name, value)| (name.to_ascii_lowercase(), value));
        let kept = lower.filter(|(name, _)| speaks(name) && name.len() <= 128);
        kept.map(|(name, value)| (name, value.chars().take(256).collect())).take(64).collect()
    }

    /// Reads the answer in a dialect, for this pool.
    pub(crate) fn read(&self, dialect: Dialect, pool: &PoolName) -> Read {
        let headers: Vec<(&str, &str)> =
            self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let received = u64::try_from(now.as_millis()).unwrap_or(0);
        let response =
            Response { status: self.status, headers: &headers, body: &self.body, received };
        let mut answer = dialect.read(&response);
        if answer.verdict == Verdict::Ok
            && let Some(streamed) = self.streamed.clone().or_else(|| self.read_stream(dialect))
        {
            if let Some(refused) = streamed.refused {
                answer.verdict = Verdict::Refused(refused);
            }
            answer.usage = Some(streamed.usage);
        }
        if self.unrecorded {
            self.remove_body_text(&mut answer);
        }
        let read = Read::new(dialect, answer);
        match self.elsewhere(dialect, pool) {
            Some(resource) => read.about_another(resource),
            None => read,
        }
    }

    /// Reads a body that is a stream of events.
    fn read_stream(&self, dialect: Dialect) -> Option<Box<Streamed>> {
        let mut stream = self.is_stream().then(|| StreamReader::new(dialect))?;
        stream.feed(&self.body);
        let refused = stream.refused().cloned();
        Some(Box::new(Streamed { refused, usage: *stream.usage() }))
    }

    /// Removes every text that came from the body.
    fn remove_body_text(&self, answer: &mut Answer) {
        if let Verdict::Refused(refused) = &mut answer.verdict {
            refused.message.clear();
        }
        let is_header =
            |what: &str| self.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(what));
        for anomaly in answer.anomalies.iter_mut().filter(|anomaly| !is_header(&anomaly.what)) {
            "(not recorded)".clone_into(&mut anomaly.value);
        }
    }

    /// Returns the resource that the answer is about, if it is not the pool's. GitHub counts
    /// searches, for example, separately from everything else.
    fn elsewhere(&self, dialect: Dialect, pool: &PoolName) -> Option<&str> {
        let mut headers = self.headers.iter();
        let is_resource = |name: &str| name.eq_ignore_ascii_case("x-ratelimit-resource");
        let (_, resource) = headers.find(|(name, _)| is_resource(name))?;
        let scope = pool.as_str().split('/').nth(1)?;
        let apart = dialect == Dialect::GitHub && GITHUB.contains(&scope) && resource != scope;
        apart.then_some(resource.as_str())
    }

    /// Returns whether the body is a stream of events, which carry usage and errors.
    fn is_stream(&self) -> bool {
        let is_event_stream = |(name, value): &(String, String)| {
            name.eq_ignore_ascii_case("content-type") && value.contains("text/event-stream")
        };
        let begins = [&b"event:"[..], b"data:"].iter().any(|field| self.body.starts_with(field));
        begins || self.headers.iter().any(is_event_stream)
    }
}

impl Read {
    /// Removes everything about limits: the call is settled, but its answer is not about this pool.
    fn about_another(mut self, resource: &str) -> Self {
        if self.is_refused() {
            self.meaning = Meaning::Failed { transient: true };
        }
        (self.readings, self.hit) = (Vec::new(), None);
        self.notes.push(EventData::Anomaly {
            about: "x-ratelimit-resource".to_owned(),
            value: resource.chars().take(64).collect(),
            why: "it is about another limit than this pool's".to_owned(),
        });
        self
    }

    fn new(dialect: Dialect, answer: Answer) -> Self {
        let notes = answer.anomalies.iter().map(|anomaly| EventData::Anomaly {
            about: anomaly.what.clone(),
            value: anomaly.value.clone(),
            why: anomaly.why.to_string(),
        });
        let (meaning, hit) = match answer.verdict {
            Verdict::Ok => (Meaning::Served, None),
            Verdict::Failed { transient } => (Meaning::Failed { transient }, None),
            Verdict::Refused(refused) => {
                let hit = refused.unit.as_deref().and_then(Unit::named);
                let period = refused.period.map(span);
                let kind = throttle_kind(refused.kind);
                let (retry_after, message) = (refused.wait, refused.message);
                let refused = Meaning::Refused { kind, retry_after, message };
                (refused, hit.map(|unit| Hit { unit, period }))
            }
        };
        Self {
            meaning,
            notes: notes.collect(),
            readings: readings(&answer.limits, hit.as_ref()),
            used: answer.usage.map(|usage| used(dialect, &usage)).unwrap_or_default(),
            hit,
        }
    }

    /// Returns what the answer means for one of the pools of a call: the readings of its limits,
    /// and the refusal if that is about this pool.
    pub(crate) fn part(&self, is_here: impl Fn(&Reading) -> bool, refused_here: bool) -> Self {
        let meaning = match self.is_refused() && !refused_here {
            true => Meaning::Failed { transient: true },
            false => self.meaning.clone(),
        };
        let readings = self.readings.iter().filter(|reading| is_here(reading)).cloned();
        Self {
            meaning,
            notes: if refused_here { self.notes.clone() } else { Vec::new() },
            readings: readings.collect(),
            used: self.used.clone(),
            hit: self.hit.clone().filter(|_| refused_here),
        }
    }

    /// Returns whether the provider refused the call.
    pub(crate) const fn is_refused(&self) -> bool {
        matches!(self.meaning, Meaning::Refused { .. })
    }

    /// Returns the readings of limits in the answer.
    pub(crate) fn readings(&self) -> &[Reading] {
        &self.readings
    }

    /// Returns the actions for the call's lease, in this order. `used` are amounts of the caller.
    pub(crate) fn actions(&self, lease: Key, used: &Amounts) -> Vec<Action> {
        let mut actions = Vec::new();
        actions.extend(self.observed(Some(lease)));
        actions.push(match &self.meaning {
            Meaning::Served => {
                let used = self.figures(used);
                Action::Commit(Commit { lease, used, progress: false, refused: false })
            }
            Meaning::Failed { .. } => {
                let used = Amounts::default();
                Action::Commit(Commit { lease, used, progress: false, refused: true })
            }
            Meaning::Refused { kind, retry_after, .. } => Action::Throttled(Throttled {
                lease: Some(lease),
                agent: None,
                kind: *kind,
                retry_after: retry_after.map(span),
                hit: self.hit.clone(),
            }),
        });
        actions
    }

    /// Returns what a served call used: the caller's amounts, and the answer's for other units.
    pub(crate) fn figures(&self, used: &Amounts) -> Amounts {
        merged(used, &self.used)
    }

    /// Returns the report of the limits in the answer, if there are any.
    pub(crate) fn observed(&self, lease: Option<Key>) -> Option<Action> {
        let readings = self.readings.clone();
        (!readings.is_empty()).then_some(Action::Observed(Observed { lease, readings }))
    }

    /// Returns the limit that was exceeded, if the answer names it.
    pub(crate) const fn hit(&self) -> Option<&Hit> {
        self.hit.as_ref()
    }

    /// Returns the number of limits in the answer.
    pub(crate) fn limits(&self) -> usize {
        self.readings.len()
    }
}

const fn throttle_kind(kind: Kind) -> ThrottleKind {
    match kind {
        Kind::Quota => ThrottleKind::Quota,
        Kind::Concurrency => ThrottleKind::Concurrency,
        Kind::SlowDown => ThrottleKind::SlowDown,
        Kind::Overload => ThrottleKind::Overload,
        Kind::Terminal => ThrottleKind::Terminal,
    }
}

/// Returns the readings that the ledger can count. A total over input and output is dropped if the
/// answer has both separately.
fn readings(limits: &[LimitSeen], hit: Option<&Hit>) -> Vec<Reading> {
    let apart = limits.iter().any(|limit| limit.unit == "input_tokens");
    let counted = limits.iter().filter(|limit| !(apart && limit.unit == "tokens"));
    let each = counted.filter_map(|limit| {
        let known = ["requests", "input_tokens", "output_tokens", "tokens", "points", "content"];
        let unit = Unit::named(&limit.unit).filter(|_| known.contains(&limit.unit.as_ref()))?;
        // A refusal states the period of its limit more often than the headers do.
        let hit_period = hit.filter(|hit| hit.unit == unit).and_then(|hit| hit.period);
        Some(Reading {
            unit,
            period: limit.period.map(span).or(hit_period),
            limit: limit.limit,
            remaining: limit.remaining,
            coarse: limit.coarse,
            // A bucket admits calls long before it is full.
            reset_in: limit.reset_in.filter(|_| limit.reset == ResetMeans::WindowEnds).map(span),
            full_in: limit.reset_in.filter(|_| limit.reset == ResetMeans::Full).map(span),
        })
    });
    each.collect()
}

/// Returns the usage in an answer, in Standpipe's units.
pub(super) fn used(dialect: Dialect, usage: &Usage) -> Amounts {
    let input = usage.charged_input(dialect);
    let total = usage.total_tokens.or_else(|| Some(input? + usage.output_tokens?));
    let figures = [
        (Unit::InputTokens, input),
        (Unit::OutputTokens, usage.output_tokens),
        (Unit::Tokens, total),
        (Unit::Points, usage.points),
    ];
    let known = figures.into_iter().filter_map(|(unit, figure)| Some((unit, figure?)));
    Amounts::new(known).unwrap_or_default()
}

/// Returns the caller's amounts, and the provider's for units that the caller does not name.
fn merged(first: &Amounts, second: &Amounts) -> Amounts {
    let more = second.iter().filter(|(unit, _)| first.of(unit).is_none());
    let all = first.iter().chain(more).map(|(unit, amount)| (unit.clone(), amount));
    Amounts::new(all).unwrap_or_else(|_| first.clone())
}

/// Shows neither headers nor bodies, because both may contain secrets.
impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply").field("status", &self.status).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use standpipe_core::Span;

    const LEASE: Key = Key { session: 1, number: 1 };

    fn read(dialect: Dialect, reply: &Reply) -> (Meaning, Vec<Action>) {
        let read = reply.read(dialect, &"github/core".parse().unwrap());
        (read.meaning.clone(), read.actions(LEASE, &Amounts::default()))
    }

    #[test]
    fn a_refusal_becomes_a_throttle_with_its_limit() {
        let text = br#"{"error":{"message":"Rate limit reached for gpt-4o on tokens per min (TPM):
            Limit 30000, Used 29012, Requested 2100. Please try again in 2.224s.",
            "type":"tokens","param":null,"code":"rate_limit_exceeded"}}"#;
        let (meaning, actions) = read(Dialect::OpenAi, &Reply::new(429).body(*text));
        let Meaning::Refused { kind, retry_after, .. } = meaning else { panic!("{meaning:?}") };
        assert_eq!((kind, retry_after), (ThrottleKind::Quota, Some(Duration::from_millis(2_224))));
        let [Action::Throttled(throttled)] = &actions[..] else { panic!("{actions:?}") };
        assert_eq!(throttled.hit.as_ref().map(|hit| &hit.unit), Some(&Unit::Tokens));
        assert_eq!(throttled.lease, Some(LEASE));
    }

    #[test]
    fn a_served_call_settles_with_its_usage_and_reports_limits() {
        let reply = Reply::new(200)
            .header("anthropic-ratelimit-requests-limit", "1000")
            .header("anthropic-ratelimit-requests-remaining", "999")
            .header("anthropic-ratelimit-tokens-limit", "96000")
            .header("anthropic-ratelimit-input-tokens-limit", "80000")
            .body(
                *br#"{"type":"message","usage":{"input_tokens":12,"output_tokens":7,
                "cache_creation_input_tokens":3,"cache_read_input_tokens":100}}"#,
            );
        let (meaning, actions) = read(Dialect::Anthropic, &reply);
        assert_eq!(meaning, Meaning::Served);
        let [Action::Observed(observed), Action::Commit(commit)] = &actions[..] else {
            panic!("{actions:?}")
        };
        let limits: Vec<_> =
            observed.readings.iter().map(|seen| (&seen.unit, seen.limit)).collect();
        assert_eq!(
            limits,
            [(&Unit::Requests, Some(1_000)), (&Unit::InputTokens, Some(80_000))],
            "a total over both is dropped"
        );
        assert_eq!(observed.readings[0].period, Some(Span::secs(60)));
        let used = |unit| commit.used.of(&unit);
        assert_eq!((used(Unit::InputTokens), used(Unit::OutputTokens)), (Some(15), Some(7)));
    }

    #[test]
    fn the_callers_amounts_replace_the_providers() {
        let ours = Amounts::new([(Unit::InputTokens, 1)]).unwrap();
        let theirs = Amounts::new([(Unit::InputTokens, 9), (Unit::OutputTokens, 2)]).unwrap();
        let both = merged(&ours, &theirs);
        assert_eq!((both.of(&Unit::InputTokens), both.of(&Unit::OutputTokens)), (Some(1), Some(2)));
    }

    #[test]
    fn a_stream_is_read_to_its_end() {
        let stream = b"event: message_start\ndata: {\"type\":\"message_start\",\"message\":\
            {\"usage\":{\"input_tokens\":25,\"output_tokens\":1}}}\n\nevent: error\ndata: \
            {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"no\"}}\n\n";
        let (meaning, _) = read(Dialect::Anthropic, &Reply::new(200).body(*stream));
        let overload = ThrottleKind::Overload;
        assert!(
            matches!(meaning, Meaning::Refused { kind, .. } if kind == overload),
            "{meaning:?}"
        );
    }

    #[test]
    fn an_answer_about_another_resource_reports_no_limits() {
        let search = Reply::new(403)
            .header("x-ratelimit-resource", "search")
            .header("x-ratelimit-limit", "30")
            .header("x-ratelimit-remaining", "0");
        let (meaning, actions) = read(Dialect::GitHub, &search);
        assert_eq!(meaning, Meaning::Failed { transient: true });
        assert!(matches!(&actions[..], [Action::Commit(_)]), "{actions:?}");
    }

    #[test]
    fn errors_other_than_quota_settle_the_call_and_pause_nothing() {
        for (status, transient) in [(500, true), (502, true), (400, false), (404, false)] {
            let (meaning, actions) = read(Dialect::Generic, &Reply::new(status));
            assert_eq!(meaning, Meaning::Failed { transient }, "{status}");
            let [Action::Commit(commit)] = &actions[..] else { panic!("{actions:?}") };
            assert!(commit.refused && !commit.progress);
        }
    }

    /// A refusal of Standpipe itself must not pause a pool.
    #[test]
    fn b42_a_refusal_of_standpipe_itself_reports_nothing() {
        let ours =
            Reply::new(429).header("x-standpipe-origin", "ledger").header("retry-after", "9");
        let (meaning, actions) = read(Dialect::Anthropic, &ours);
        assert_eq!(meaning, Meaning::Failed { transient: false });
        assert!(matches!(&actions[..], [Action::Commit(_)]), "{actions:?}");
    }

    #[test]
    fn debug_output_of_a_reply_contains_no_secrets() {
        let reply = Reply::new(200).header("authorization", "Bearer sk-secret").body("sk-secret");
        assert!(!format!("{reply:?}").contains("secret"));
    }

    #[test]
    fn only_headers_about_limits_are_kept() {
        let reply = Reply::new(200)
            .header("Authorization", "Bearer secret")
            .header("Set-Cookie", "session=secret")
            .header("X-RateLimit-Remaining", "7")
            .header("Retry-After", "3");
        let kept = reply.headers_of_limits();
        assert_eq!(kept.keys().collect::<Vec<_>>(), ["retry-after", "x-ratelimit-remaining"]);
    }
}
