//! Reserves a call, waits until it is admitted, and makes it; again if the provider refuses it.
//!
//! A waiting client must not time out. A client that wants a stream gets its head and keep-alive
//! comments after a while; any other one is answered before its own timeout is over.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::http::request::Parts;
use axum::http::{Response, StatusCode};
use standpipe::{Lease, LeaseId, Pool};
use tokio::sync::SemaphorePermit;

use super::caller::Caller;
use super::disconnects::disconnected;
use super::errors::{add_headers, add_reason};
use super::estimate::Facts;
use super::format::Format;
use super::forward::{self, SendError, is_error, is_read};
use super::identify::Identified;
use super::observe::{self, Next};
use super::prompt_cache::SizedCall;
use super::recent::{Prices, ProxiedCall};
use super::relay;
use crate::http::names::SDK_TIMEOUT;
use crate::http::peer::Peer;
use crate::http::problem::Problem;
use crate::state::{AppState, MAX_WAITING};
use crate::watch::history::millis;

/// How long a call waits if neither the client nor its SDK states its own timeout: less than the
/// five minutes after which common HTTP clients give up.
const SILENT_WAIT: Duration = Duration::from_secs(240);
/// How long a stream with keep-alive comments waits.
const STREAM_WAIT: Duration = Duration::from_secs(600);

/// A call whose body was read and whose pool is known.
pub(crate) struct Call {
    pub(crate) state: Arc<AppState>,
    pub(crate) identified: Identified,
    pub(crate) caller: Caller,
    pub(crate) format: Format,
    pub(crate) facts: Facts,
    /// Its place in a session, whose prompt may be cached.
    pub(crate) cached: Option<SizedCall>,
    pub(crate) pool: Pool,
    pub(crate) parts: Parts,
    pub(crate) body: Bytes,
    /// The body's part of the memory of all bodies.
    pub(crate) _room: SemaphorePermit<'static>,
    /// What the client asked for, if this try asks for something else.
    pub(crate) original: Option<Original>,
}

/// What a try changed of a call, as it was before.
pub(crate) struct Original {
    pub(crate) pool: Pool,
    pub(crate) body: Bytes,
    pub(crate) path: String,
    pub(crate) model: Option<String>,
    pub(crate) max_output: Option<u64>,
    pub(crate) cached: Option<SizedCall>,
}

/// The tries of one call.
pub(crate) struct Tries {
    pub(crate) count: u32,
    /// How long the next one waits although there is room.
    pub(crate) wait: Duration,
    last: Option<LeaseId>,
    deadline: Instant,
    /// How long all tries waited for admission.
    pub(crate) waited: Duration,
}

impl Tries {
    pub(crate) fn new(patience: Duration) -> Self {
        Self {
            count: 0,
            wait: Duration::ZERO,
            last: None,
            deadline: Instant::now() + patience,
            waited: Duration::ZERO,
        }
    }
}

/// Makes a call. A stream that waits long begins with keep-alive comments.
pub(crate) async fn run(call: Call) -> Result<Response<Body>, Problem> {
    let interval = call.keepalive();
    let format = call.format;
    let mut answer = Box::pin(make(call));
    let Some(interval) = interval else { return answer.await };
    tokio::select! {
        biased;
        done = &mut answer => done,
        () = tokio::time::sleep(interval) => Ok(relay::held_open(answer, interval, format)),
    }
}

/// Makes a call and remembers it if it is refused.
async fn make(mut call: Call) -> Result<Response<Body>, Problem> {
    let mut tries = Tries::new(call.patience());
    let done = try_again(&mut call, &mut tries).await;
    let status = match &done {
        Ok(answer) => answer.status(),
        Err(problem) => StatusCode::from_u16(problem.status).unwrap_or_default(),
    };
    call.state.client_retries.answered(&call, status);
    // What is no error is shown when its body has passed.
    if is_error(status) {
        let why = match &done {
            Ok(answer) => failure(answer),
            Err(problem) => problem.message(),
        };
        call.state.proxied.fail(&call.caller, why);
        let refused = done.as_ref().err().filter(|_| tries.count == 0);
        let not_sent = refused.map(|problem| problem.reason().unwrap_or(problem.r#type));
        let shown = ProxiedCall { not_sent, ..ProxiedCall::of(&call, 0) };
        call.state.recent_calls.add(shown, status.as_u16());
    }
    done
}

/// Makes a call, again and again while that can help and the client waits.
async fn try_again(call: &mut Call, tries: &mut Tries) -> Result<Response<Body>, Problem> {
    let mut last: Option<Response<Body>> = None;
    let mut has_waited = false;
    loop {
        call.retarget(std::mem::take(&mut has_waited)).await?;
        let lease = match (reserve(call, tries).await, last.take()) {
            (Ok(Some(lease)), _) => lease,
            (Ok(None), answer) => {
                (has_waited, last) = (true, answer);
                continue;
            }
            // The provider's own answer says more than that there is no further try, and a header
            // says why there is none.
            (Err(problem), Some(mut answer)) => {
                add_reason(answer.headers_mut(), &problem);
                let why = format!("{}, not retried: {}", failure(&answer), problem.detail);
                answer.extensions_mut().insert(Failure(why));
                return Ok(answer);
            }
            (Err(problem), None) => return Err(problem),
        };
        let about = (lease.pool().clone(), lease.id().clone(), lease.zone());
        let sent = tokio::select! {
            biased;
            sent = forward::send(call) => sent,
            // The lease is dropped, which settles it at its estimate: the call may be served.
            () = call.disconnected() => return Err(Problem::client_gone()),
        };
        let problem = match sent {
            Ok(answer) if !is_error(answer.status()) => {
                return Ok(relay::relay(call, lease, answer, tries));
            }
            // Boxed, so that calls without an error do not carry its state.
            Ok(answer) => match Box::pin(observe::failed(call, lease, answer, tries)).await? {
                Next::Again(mut answer) => {
                    add_headers(answer.headers_mut(), &about, call, tries);
                    last = Some(answer);
                    continue;
                }
                Next::Final(mut answer) => {
                    add_headers(answer.headers_mut(), &about, call, tries);
                    return Ok(answer);
                }
            },
            Err(SendError::NotSent(problem)) => {
                call.state.awaited(lease.cancel()).await?;
                problem
            }
            // It may have been served, so it counts at its estimate.
            Err(SendError::Broken(problem)) => {
                call.state.awaited(lease.commit([])).await?;
                if !call.format.is_model() && !is_read(call) {
                    return Err(problem);
                }
                problem
            }
        };
        tries.back_off();
        if !tries.has_more() || Instant::now() + tries.wait >= tries.deadline {
            return Err(problem);
        }
        let mut answer = super::errors::response(call.format, &problem);
        answer.extensions_mut().insert(Failure(problem.message()));
        last = Some(answer);
    }
}

/// Why an answer that the proxy made itself, or did not retry, is an error.
#[derive(Clone)]
struct Failure(String);

/// What went wrong with a call, by its last answer.
fn failure(answer: &Response<Body>) -> String {
    match answer.extensions().get() {
        Some(Failure(why)) => why.clone(),
        None => format!("the answer was {}", answer.status()),
    }
}

/// Reserves one try. `None` means that it waited long and a fallback has room.
pub(crate) async fn reserve(call: &Call, tries: &mut Tries) -> Result<Option<Lease>, Problem> {
    let state = &call.state;
    if state.is_stopping() {
        return Err(Problem::stopping());
    }
    let _permit =
        state.waiting.try_acquire().map_err(|_| Problem::too_many("calls", MAX_WAITING))?;
    let began = Instant::now();
    let left = tries.deadline.saturating_duration_since(began);
    let mut request = call.request().timeout(left);
    // A try on another pool is a call of its own there.
    if let Some(lease) = tries.last.as_ref().filter(|lease| lease.pool() == call.pool.name()) {
        request = request.retry_of(lease.clone());
    }
    if !tries.wait.is_zero() {
        request = request.hold(tries.wait);
    }
    // Dropping this future, because the client disconnected, cancels the ticket.
    let lease = tokio::select! {
        biased;
        outcome = call.pool.reserve(request) => outcome?,
        () = call.fallback_has_room() => {
            tries.waited += began.elapsed();
            return Ok(None);
        }
        () = state.stopped() => return Err(Problem::stopping()),
        () = call.disconnected() => return Err(Problem::client_gone()),
    };
    tries.count += 1;
    tries.waited += lease.waited();
    let (waited, is_retry) = (lease.waited(), tries.last.is_some());
    state.proxied.add(&call.caller, |own| {
        own.waited_ms += millis(waited);
        own.retries += u64::from(is_retry);
    });
    tries.last = Some(lease.id().clone());
    Ok(Some(lease))
}

impl Call {
    /// The interval of keep-alive comments, if the client can be sent any.
    fn keepalive(&self) -> Option<Duration> {
        let tap = self.state.tap();
        let configured = tap.settings().pools.get(self.pool.name()).map(|pool| pool.keepalive);
        let interval = configured.unwrap_or(Some(standpipe::Span::secs(10)))?;
        let can_wait = self.facts.stream && self.format.has_comments();
        can_wait.then(|| Duration::from_micros(interval.0))
    }

    /// The prices of the pool. A pool that it lies within may have others, which the ledger knows.
    pub(crate) fn prices(&self) -> Prices {
        let tap = self.state.tap();
        let pool = tap.settings().pools.get(self.pool.name());
        let alone = pool.filter(|pool| pool.within.is_none());
        alone.map(|pool| pool.price.clone()).unwrap_or_default()
    }

    /// How long the client waits for its call to be admitted.
    pub(crate) fn patience(&self) -> Duration {
        if let Some(wait) = self.identified.wait {
            return wait;
        }
        if self.keepalive().is_some() {
            return STREAM_WAIT;
        }
        let header = self.parts.headers.get(&SDK_TIMEOUT).and_then(|value| value.to_str().ok());
        let stated = header.and_then(|text| text.split('.').next()?.parse::<u64>().ok());
        match stated {
            // A fifth is left for the call itself.
            Some(seconds) => Duration::from_secs(seconds.min(3_600)) * 4 / 5,
            None => SILENT_WAIT,
        }
    }

    pub(crate) async fn disconnected(&self) {
        match self.parts.extensions.get::<Peer>() {
            Some(peer) => disconnected(peer).await,
            None => std::future::pending().await,
        }
    }
}
