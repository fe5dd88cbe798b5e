//! Errors as callers get them: `application/problem+json`, one shape for all.
//!
//! Every problem states what is wrong and what to do about it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use standpipe::config::ConfigError;
use standpipe::observe::{PausedBy, Timestamp};
use standpipe::{Advice, Backpressure, Error, LeaseId, Reason, Refused};
use utoipa::ToSchema;

use crate::watch::history::millis;

/// The type of a problem whose cause is a provider that did not answer.
pub(crate) const UPSTREAM: &str = "upstream";

/// Why something was not done, and what to do about it (`application/problem+json`).
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct Problem {
    /// What kind of problem it is: `invalid`, `no_pool`, `never`, `not_in_time`, `terminal`,
    /// `queue_full`, `lease_gone`, `store`, `stopping`, `unauthorized`, `forbidden` …
    pub(crate) r#type: &'static str,
    /// The type in a few words.
    pub(crate) title: &'static str,
    /// The HTTP status.
    pub(crate) status: u16,
    /// What is wrong.
    pub(crate) detail: String,
    /// What to do.
    pub(crate) hint: String,
    /// Details of some types.
    #[serde(flatten)]
    pub(crate) details: Box<ProblemDetails>,
}

/// Details that some problems have.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
pub(crate) struct ProblemDetails {
    /// The pool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pool: Option<String>,
    /// The lease.
    #[serde(skip_serializing_if = "Option::is_none")]
    lease: Option<String>,
    /// The first step of the admission rule that refused the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    /// What the call was waiting for when its time was up.
    #[serde(skip_serializing_if = "Option::is_none")]
    waited_for: Option<&'static str>,
    /// The limit that lacks room.
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<String>,
    /// How many units that limit lacks.
    #[serde(skip_serializing_if = "Option::is_none")]
    short_by: Option<u64>,
    /// In fair order, the agent whose call is first in the queue for the limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    behind: Option<String>,
    /// Who ordered the pause that the call waits for, and when.
    #[serde(skip_serializing_if = "Option::is_none")]
    paused: Option<PausedBy>,
    /// The exact instant at which the call is admitted if nothing else happens.
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<Timestamp>,
    /// A lower bound: the call is not admitted earlier, and perhaps later.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_before: Option<Timestamp>,
    /// What must happen first, if no instant is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting_for: Option<String>,
    /// Milliseconds to `until` or `not_before`; absent with `waiting_for`. The header
    /// `Retry-After` has the same in seconds, rounded up. If the daemon itself cannot serve
    /// (`stopping`, `store`, too many connections), when to try again.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
    /// The call's position in the queue, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<usize>,
    /// What would avoid the refusal.
    #[serde(skip_serializing_if = "Option::is_none")]
    advice: Option<Advice>,
    /// An agent upstream in this agent's workflow is throttled.
    #[serde(skip_serializing_if = "Option::is_none")]
    backpressure: Option<Backpressure>,
    /// The configuration file that the problem is about.
    #[serde(skip)]
    file: Option<PathBuf>,
}

impl Problem {
    pub(crate) fn new(
        status: StatusCode,
        kind: &'static str,
        detail: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self {
            r#type: kind,
            title: title(kind),
            status: status.as_u16(),
            detail: detail.into(),
            hint: hint.into(),
            details: Box::default(),
        }
    }

    /// The request is malformed or contains an invalid value.
    pub(crate) fn invalid(detail: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid", detail, hint)
    }

    /// There is no such pool, but perhaps one of a similar name.
    pub(crate) fn no_pool(pool: &str, hint: impl Into<String>) -> Self {
        let detail = format!("there is no pool `{pool}`");
        Self::new(StatusCode::NOT_FOUND, "no_pool", detail, hint).about(pool)
    }

    /// The daemon is shutting down.
    pub(crate) fn stopping() -> Self {
        let (detail, hint) = (
            "the daemon is stopping",
            "retry in a moment; a call with an `id` keeps its place in the queue",
        );
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "stopping", detail, hint)
            .retry(Duration::from_secs(1))
    }

    /// A bound of the daemon is reached.
    pub(crate) fn too_many(what: &str, most: usize) -> Self {
        let detail = format!("{most} {what} are open, which is the maximum");
        let hint = "retry in a moment";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "queue_full", detail, hint)
            .retry(Duration::from_secs(1))
    }

    /// The client closed the connection, so this answer is never read.
    pub(crate) fn client_gone() -> Self {
        let (detail, hint) =
            ("the client disconnected", "retry; a call with an `id` keeps its place");
        Self::new(StatusCode::REQUEST_TIMEOUT, "too_slow", detail, hint)
    }

    /// The call was admitted only after its timeout, which is no admission.
    pub(crate) fn too_late(pool: &str, timeout: Duration) -> Self {
        let detail = format!("the call was admitted after its timeout of {} ms", millis(timeout));
        let hint = "the daemon was stopped meanwhile; repeat the request";
        let mut problem =
            Self::new(StatusCode::TOO_MANY_REQUESTS, "not_in_time", detail, hint).about(pool);
        problem.details.reason = Some(Reason::Deadline.as_str());
        problem.details.waiting_for = Some("the request to be repeated".to_owned());
        problem
    }

    /// The body of a request is too large.
    pub(crate) fn too_large(most: usize) -> Self {
        let detail = format!("the body has more than {most} bytes");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", detail, "send less at once")
    }

    /// What is wrong and what to do, in one line.
    pub(crate) fn message(&self) -> String {
        match self.hint.is_empty() {
            true => self.detail.clone(),
            false => format!("{}; {}", self.detail, self.hint),
        }
    }

    /// The rule that refused a call, or [`UPSTREAM`] if the provider did not answer it.
    pub(crate) fn reason(&self) -> Option<&'static str> {
        self.details.reason.or_else(|| (self.r#type == UPSTREAM).then_some(UPSTREAM))
    }

    /// The configuration file that the problem is about.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.details.file.as_deref()
    }

    pub(crate) const fn position(&self) -> Option<usize> {
        self.details.position
    }

    /// The store is unavailable.
    pub(crate) fn store(detail: impl Into<String>) -> Self {
        let hint = "check that the store runs; `standpipe doctor` has details";
        let mut problem = Self::new(StatusCode::SERVICE_UNAVAILABLE, "store", detail, hint);
        problem.details.reason = Some("store");
        problem.retry(Duration::from_secs(1))
    }

    /// The daemon itself failed.
    pub(crate) fn internal(detail: impl Into<String>) -> Self {
        let hint = "see the daemon's log";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", detail, hint)
    }

    pub(crate) fn about(mut self, pool: &str) -> Self {
        self.details.pool = Some(pool.to_owned());
        self
    }

    pub(crate) fn with_advice(mut self, advice: Option<Advice>) -> Self {
        self.details.advice = advice;
        self
    }

    fn retry(mut self, after: Duration) -> Self {
        self.details.retry_after_ms = Some(millis(after));
        self
    }

    fn gone(lease: &LeaseId) -> Self {
        let detail = "the lease has ended: it was settled, or it expired";
        let hint = "nothing changed; reserve again for another call";
        let mut problem = Self::new(StatusCode::GONE, "lease_gone", detail, hint);
        problem.details.lease = Some(lease.to_string());
        problem.about(lease.pool().as_str())
    }
}

/// Splits a message of the library at its first semicolon into detail and hint.
fn from_message(status: StatusCode, kind: &'static str, text: &str) -> Problem {
    let (detail, hint) = text.split_once("; ").unwrap_or((text, ""));
    Problem::new(status, kind, detail, hint)
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let text = error.to_string();
        match error {
            Error::Refused(refused) => Self::from(*refused),
            Error::LeaseGone { lease } => Self::gone(&lease),
            Error::NoLimits { pool } => {
                let hint = "give it some in standpipe.toml, or with the call, for example \
                            \"limits\": {\"requests\": \"60/min\"}";
                let detail = format!("the pool `{pool}` has no limits");
                Self::new(StatusCode::NOT_FOUND, "no_limits", detail, hint).about(pool.as_str())
            }
            Error::Config(error) => Self::from(error),
            Error::Invalid { what, remedy } => Self::invalid(what, remedy),
            Error::Store(_) => {
                let (detail, hint) = text.split_once("; ").unwrap_or((&text, ""));
                let mut problem = Self::store(detail);
                if !hint.is_empty() {
                    hint.clone_into(&mut problem.hint);
                }
                problem
            }
            _ => Self::internal(text),
        }
    }
}

impl From<ConfigError> for Problem {
    /// The configuration was valid when the daemon started, so the error is about the pool.
    fn from(error: ConfigError) -> Self {
        match error.problems.first() {
            Some(first) => {
                let mut problem =
                    Self::new(StatusCode::NOT_FOUND, "no_pool", &first.what, &first.remedy);
                problem.details.file.clone_from(&first.file);
                problem
            }
            None => Self::internal(error.to_string()),
        }
    }
}

impl From<Refused> for Problem {
    fn from(refused: Refused) -> Self {
        let (status, kind) = match refused.reason {
            Reason::Never => (StatusCode::UNPROCESSABLE_ENTITY, "never"),
            Reason::Terminal => (StatusCode::TOO_MANY_REQUESTS, "terminal"),
            Reason::QueueFull => (StatusCode::SERVICE_UNAVAILABLE, "queue_full"),
            _ => (StatusCode::TOO_MANY_REQUESTS, "not_in_time"),
        };
        let when = refused.when();
        let mut problem =
            from_message(status, kind, &refused.to_string()).about(refused.pool.as_str());
        problem.details.reason = Some(refused.reason.as_str());
        problem.details.waited_for = refused.waited_for.map(Reason::as_str);
        problem.details.limit = refused.limit;
        problem.details.short_by = Some(refused.short_by).filter(|short| *short > 0);
        problem.details.behind = refused.behind;
        problem.details.paused = refused.paused;
        problem.details.until = when.until;
        problem.details.not_before = when.not_before;
        problem.details.waiting_for = when.waiting_for;
        problem.details.retry_after_ms = when.until_ms.or(when.not_before_ms);
        problem.details.position = refused.position;
        problem.details.backpressure = refused.backpressure;
        problem
    }
}

fn title(kind: &str) -> &'static str {
    match kind {
        "invalid" => "invalid request",
        "no_pool" => "no such pool",
        "no_limits" => "the pool has no limits",
        "never" => "can never fit",
        "terminal" => "stopped by the provider",
        "queue_full" => "a queue is full",
        "not_in_time" => "not in time",
        "lease_gone" => "the lease has ended",
        "store" => "the store is unavailable",
        "stopping" => "the daemon is stopping",
        "unauthorized" => "a token is required",
        "forbidden" => "forbidden",
        "not_found" => "no such path",
        "method_not_allowed" => "method not allowed",
        "too_large" => "too large",
        "too_slow" => "too slow",
        "not_json" => "not JSON",
        UPSTREAM => "the provider did not answer",
        "upgrade" => "upgrade not supported",
        "no_key" => "the provider's key is missing",
        _ => "internal error",
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let retry_after_ms = self.details.retry_after_ms;
        let mut response = (status, body).into_response();
        let headers = response.headers_mut();
        let kind = HeaderValue::from_static("application/problem+json");
        headers.insert(header::CONTENT_TYPE, kind);
        // A provider that does not answer is a failure of the provider, not a refusal of ours.
        let origin = if self.r#type == UPSTREAM { "provider" } else { "ledger" };
        headers.insert("x-standpipe-origin", HeaderValue::from_static(origin));
        if let Some(after) = retry_after_ms {
            // Whole seconds, rounded up, so that no client returns too early.
            let seconds = after.div_ceil(1_000);
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if status == StatusCode::UNAUTHORIZED {
            let bearer = HeaderValue::from_static("Bearer realm=\"standpipe\"");
            headers.insert(header::WWW_AUTHENTICATE, bearer);
        }
        response
    }
}
