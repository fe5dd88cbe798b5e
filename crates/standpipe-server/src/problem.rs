//! What could not be done, as callers are told: one shape for every error, with what to do.

use std::time::Duration;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use standpipe::config::ConfigError;
use standpipe::{Advice, Backpressure, Error, LeaseId, Moment, Reason, Refused};
use utoipa::ToSchema;

use crate::history::millis;

/// Why something was not done, and what to do about it (`application/problem+json`).
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct Problem {
    /// What kind of problem it is: `invalid`, `no_pool`, `never`, `not_in_time`, `terminal`,
    /// `queue_full`, `lease_gone`, `store`, `stopping`, `unauthorized`, `forbidden` …
    pub(crate) r#type: &'static str,
    /// The same in a few words.
    pub(crate) title: &'static str,
    /// The HTTP status.
    pub(crate) status: u16,
    /// What is wrong.
    pub(crate) detail: String,
    /// What to do.
    pub(crate) hint: String,
    /// More, where there is more to say.
    #[serde(flatten)]
    pub(crate) more: Box<More>,
}

/// What some problems say beside that.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
pub(crate) struct More {
    /// The pool it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pool: Option<String>,
    /// The lease it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    lease: Option<String>,
    /// The first step of the admission rule that said no.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    /// What the call was waiting for when its time was up.
    #[serde(skip_serializing_if = "Option::is_none")]
    waited_for: Option<&'static str>,
    /// The limit it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<String>,
    /// How many units are missing there.
    #[serde(skip_serializing_if = "Option::is_none")]
    short_by: Option<u64>,
    /// The exact instant at which the call is admitted if nothing else happens.
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<Moment>,
    /// A lower bound: the call is not admitted earlier, and perhaps later.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_before: Option<Moment>,
    /// What must happen first, if no instant is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting_for: Option<String>,
    /// Milliseconds to `until` or `not_before`; absent with `waiting_for`. The header
    /// `Retry-After` has the same in seconds, rounded up. If the daemon itself cannot serve
    /// (`stopping`, `store`, too many connections), when to try again.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
    /// How many tickets stood in front, and its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<usize>,
    /// What would have helped.
    #[serde(skip_serializing_if = "Option::is_none")]
    advice: Option<Advice>,
    /// Somebody this agent works for is throttled.
    #[serde(skip_serializing_if = "Option::is_none")]
    backpressure: Option<Backpressure>,
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
            more: Box::default(),
        }
    }

    /// The caller gave something that cannot be used.
    pub(crate) fn invalid(detail: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid", detail, hint)
    }

    /// There is no such pool.
    pub(crate) fn no_pool(pool: &str, hint: impl Into<String>) -> Self {
        let detail = format!("there is no pool `{pool}`");
        Self::new(StatusCode::NOT_FOUND, "no_pool", detail, hint).about(pool)
    }

    /// The daemon ends; another one, or the same anew, goes on.
    pub(crate) fn stopping() -> Self {
        let (detail, hint) = (
            "the daemon is stopping",
            "ask again in a moment; with an `id` the call keeps its place in the queue",
        );
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "stopping", detail, hint)
            .retry(Duration::from_secs(1))
    }

    /// More calls, connections or streams than are held at once.
    pub(crate) fn too_many(what: &str, most: usize) -> Self {
        let detail = format!("{most} {what} are held already, which is the most");
        let hint = "ask again in a moment";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "queue_full", detail, hint)
            .retry(Duration::from_secs(1))
    }

    /// Whoever asked has closed the connection; what is answered now is read by nobody.
    pub(crate) fn nobody_is_there() -> Self {
        let (detail, hint) = ("the caller is gone", "ask again; with an `id` the place is kept");
        Self::new(StatusCode::REQUEST_TIMEOUT, "too_slow", detail, hint)
    }

    /// Something failed here.
    pub(crate) fn internal(detail: impl Into<String>) -> Self {
        let hint = "see the daemon's log";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", detail, hint)
    }

    pub(crate) fn about(mut self, pool: &str) -> Self {
        self.more.pool = Some(pool.to_owned());
        self
    }

    pub(crate) fn advising(mut self, advice: Option<Advice>) -> Self {
        self.more.advice = advice;
        self
    }

    fn retry(mut self, after: Duration) -> Self {
        self.more.retry_after_ms = Some(millis(after));
        self
    }

    fn gone(lease: &LeaseId) -> Self {
        let detail = "the lease has ended: it was settled before, or its time was up";
        let hint = "nothing changed; reserve anew for another call";
        let mut problem = Self::new(StatusCode::GONE, "lease_gone", detail, hint);
        problem.more.lease = Some(lease.to_string());
        problem.about(lease.pool().as_str())
    }
}

/// A sentence of the library's, whose part after the semicolon says what to do.
fn said(status: StatusCode, kind: &'static str, text: &str) -> Problem {
    let (what, remedy) = text.split_once("; ").unwrap_or((text, ""));
    Problem::new(status, kind, what, remedy)
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
                let mut problem = said(StatusCode::SERVICE_UNAVAILABLE, "store", &text);
                if problem.hint.is_empty() {
                    "see that it runs; `standpipe doctor` says more".clone_into(&mut problem.hint);
                }
                problem.more.reason = Some("store");
                problem.retry(Duration::from_secs(1))
            }
            _ => Self::internal(text),
        }
    }
}

impl From<ConfigError> for Problem {
    /// The configuration was read when the daemon began: what is wrong with it now is the pool.
    fn from(error: ConfigError) -> Self {
        match error.problems.first() {
            Some(first) => Self::new(StatusCode::NOT_FOUND, "no_pool", &first.what, &first.remedy),
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
        let mut problem = said(status, kind, &refused.to_string()).about(refused.pool.as_str());
        problem.more.reason = Some(refused.reason.as_str());
        problem.more.waited_for = refused.waited_for.map(Reason::as_str);
        problem.more.limit = refused.limit;
        problem.more.short_by = Some(refused.short_by).filter(|short| *short > 0);
        problem.more.until = when.until;
        problem.more.not_before = when.not_before;
        problem.more.waiting_for = when.waiting_for;
        problem.more.retry_after_ms = when.until_ms.or(when.not_before_ms);
        problem.more.position = refused.position;
        problem.more.backpressure = refused.backpressure;
        problem
    }
}

fn title(kind: &str) -> &'static str {
    match kind {
        "invalid" => "cannot be understood",
        "no_pool" => "no such pool",
        "no_limits" => "the pool has no limits",
        "never" => "can never fit",
        "terminal" => "the provider said stop",
        "queue_full" => "too many wait already",
        "not_in_time" => "not in time",
        "lease_gone" => "no such lease",
        "store" => "the store cannot be reached",
        "stopping" => "the daemon is stopping",
        "unauthorized" => "a token is needed",
        "forbidden" => "not from there",
        "not_found" => "nothing is here",
        "method_not_allowed" => "not that way",
        "too_large" => "too large",
        "too_slow" => "too slow",
        "not_json" => "not JSON",
        _ => "something failed here",
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let retry_after_ms = self.more.retry_after_ms;
        let mut response = (status, body).into_response();
        let headers = response.headers_mut();
        let kind = HeaderValue::from_static("application/problem+json");
        headers.insert(header::CONTENT_TYPE, kind);
        headers.insert("x-standpipe-origin", HeaderValue::from_static("ledger"));
        if let Some(after) = retry_after_ms {
            // Whole seconds, rounded up: nobody returns too early.
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
