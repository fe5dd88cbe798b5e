//! An answer that is an error: what it means, and whether the call is tried again.
//!
//! The ledger gets the report first, so that a refusal pauses every caller before this one tries
//! again. A terminal refusal and an error of the client's own pass at once.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, Response};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use standpipe::{Lease, Meaning, ThrottleKind};

use super::forward::{is_read, remove_connection_headers, reply_head};
use super::hold::{Call, Tries};
use crate::http::problem::Problem;

/// The largest error that is read, in bytes. Real ones have a few hundred.
const MAX_ERROR: usize = 256 * 1024;
/// How long an error's body may take.
const ERROR_TIMEOUT: Duration = Duration::from_secs(10);
/// The waits after a failure other than quota: half a second, then twice as long each time.
const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(8);
/// The most tries of one call. The ledger's retry budget usually ends them before.
const MAX_TRIES: u32 = 10;

/// What follows an error.
pub(crate) enum Next {
    /// Try again; this is the answer if that is not possible.
    Again(Response<Body>),
    /// The answer for the client.
    Final(Response<Body>),
}

/// Reports an error to the ledger and decides what follows.
pub(crate) async fn failed(
    call: &Call,
    lease: Lease,
    answer: Response<Incoming>,
    tries: &mut Tries,
) -> Result<Next, Problem> {
    let (mut head, body) = answer.into_parts();
    let body = read(body).await;
    let reply = reply_head(&head).body(body.to_vec());
    let meaning = match lease.answered(reply).await {
        Ok(meaning) => meaning,
        // It expired under the call; the answer passes.
        Err(standpipe::Error::LeaseGone { .. }) => Meaning::Failed { transient: false },
        Err(error) => return Err(error.into()),
    };
    remove_connection_headers(&mut head.headers);
    let is_refused = matches!(meaning, Meaning::Refused { .. });
    call.state.proxied.add(&call.caller, |own| own.refused += u64::from(is_refused));
    let is_again = match meaning {
        Meaning::Refused { kind: ThrottleKind::Terminal, .. } => false,
        // The next reserve waits for the end of the pause.
        Meaning::Refused { .. } => {
            tries.wait = Duration::ZERO;
            true
        }
        Meaning::Failed { transient: true } if call.format.is_model() || is_read(call) => {
            tries.back_off();
            true
        }
        _ => false,
    };
    let headers = &mut head.headers;
    headers.insert("x-standpipe-origin", HeaderValue::from_static("provider"));
    // The one retry layer is here: an SDK that tries again would multiply it.
    headers.insert("x-should-retry", HeaderValue::from_static("false"));
    let answer = Response::from_parts(head, Body::from(body));
    match is_again && tries.count < MAX_TRIES {
        true => Ok(Next::Again(answer)),
        false => Ok(Next::Final(answer)),
    }
}

impl Tries {
    /// Lets the next try wait longer than the last one.
    pub(crate) fn back_off(&mut self) {
        self.wait = (self.wait * 2).clamp(FIRST_WAIT, LONGEST_WAIT);
    }

    pub(crate) const fn has_more(&self) -> bool {
        self.count < MAX_TRIES
    }
}

/// The body of an error, or what arrived of it.
async fn read(body: Incoming) -> Bytes {
    let limited = Limited::new(body, MAX_ERROR).collect();
    match tokio::time::timeout(ERROR_TIMEOUT, limited).await {
        Ok(Ok(whole)) => whole.to_bytes(),
        _ => Bytes::new(),
    }
}
