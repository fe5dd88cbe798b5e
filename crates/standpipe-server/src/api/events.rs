//! `/v1/events`: the machine's journal, as pages and as a resumable stream.
//!
//! A stream that is resumed with `last-event-id` has no duplicates, and no gaps among what is kept.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::SystemTime;

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response, sse};
use futures_util::stream::unfold;
use serde::{Deserialize, Serialize};
use standpipe::Standpipe;
use standpipe::config::{nearest, text};
use standpipe::observe::Timestamp;
use standpipe::observe::journal::{Event, EventKind, Follow, JournalCursor};
use tokio::sync::{OwnedSemaphorePermit, watch};
use utoipa::{IntoParams, ToSchema};

use super::{Problems, SCHEMA, lookup};
use crate::http::extract::QueryParams;
use crate::http::parse_error::plain;
use crate::http::problem::Problem;
use crate::state::AppState;
use crate::watch::sse::{self as streams};

/// The default number of events on a page.
const DEFAULT_LIMIT: usize = 1_000;
/// The most events on a page.
const MAX_LIMIT: usize = 10_000;

/// Which events to show.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct EventsQuery {
    /// The start: a duration such as `1h` or an instant such as `2026-01-31T12:00:00Z`. Default: a
    /// day ago for a page, now for a stream.
    since: Option<String>,
    /// Only of this kind: `wait`, `throttle`, `pause`, `reclaim` …
    kind: Option<String>,
    /// Only on this pool.
    #[param(pattern = r"^[A-Za-z0-9._:@-]{1,64}(/[A-Za-z0-9._:@-]{1,128}){1,3}$")]
    pool: Option<String>,
    /// The maximum number of events; the newest, unless `after` is given.
    #[param(minimum = 1, maximum = 10_000)]
    limit: Option<usize>,
    /// Only events after this position, oldest first: `next` of a page, or `id` of an event.
    after: Option<String>,
}

/// A page of events.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EventsPage {
    schema: u64,
    /// Oldest first.
    events: Vec<Event>,
    /// The value of `after` for the next page.
    next: String,
}

/// A parsed query.
struct EventFilter {
    since: Option<SystemTime>,
    kind: Option<EventKind>,
    pool: Option<String>,
    limit: usize,
    after: Option<JournalCursor>,
}

/// Lists the events of this machine's pools.
///
/// With `accept: text/event-stream` it follows the journal. Each event has an `id`; sent back as
/// `last-event-id`, the stream resumes after it without duplicates or gaps.
#[utoipa::path(
    get, path = "/v1/events", tag = "views", params(EventsQuery),
    responses(
        (status = 200, description = "The events, oldest first", content(
            (EventsPage = "application/json"), (String = "text/event-stream")
        )),
        Problems
    )
)]
pub(crate) async fn events(
    State(state): State<Arc<AppState>>,
    headers: HeaderMap,
    QueryParams(mut query): QueryParams<EventsQuery>,
) -> Result<Response, Problem> {
    if streams::is_accepted(&headers) {
        let last = headers.get("last-event-id").and_then(|value| value.to_str().ok());
        query.after = last.map(str::to_owned).or(query.after);
        return follow(&state, filter(&query)?);
    }
    let filter = filter(&query)?;
    let page = state.on_store(move |tap| Ok(page(tap, &filter))).await?;
    Ok(Json(page).into_response())
}

fn filter(query: &EventsQuery) -> Result<EventFilter, Problem> {
    let since = query.since.as_deref().map(instant).transpose()?;
    let kind = query.kind.as_deref().map(kind).transpose()?;
    let limit = query.limit.unwrap_or(DEFAULT_LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        let hint = format!("use 1 to {MAX_LIMIT}, and `after` for the rest");
        return Err(Problem::invalid(format!("`limit` is {limit}, out of range"), hint));
    }
    let after = query.after.as_deref().map(str::parse::<JournalCursor>).transpose();
    let after = after
        .map_err(|wrong| Problem::invalid("`after` is not a valid mark", wrong.to_string()))?;
    let pool = query.pool.as_deref().map(lookup::name).transpose()?;
    Ok(EventFilter { since, kind, pool: pool.map(|pool| pool.to_string()), limit, after })
}

fn kind(word: &str) -> Result<EventKind, Problem> {
    word.parse().map_err(|_| {
        let words = EventKind::ALL.map(EventKind::as_str);
        let hint = match nearest(word, words.into_iter()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("use one of: {}", words.join(", ")),
        };
        Problem::invalid(format!("there is no kind of event `{}`", plain(word)), hint)
    })
}

/// A duration before now, or an instant.
fn instant(stated: &str) -> Result<SystemTime, Problem> {
    if let Ok(moment) = stated.parse::<Timestamp>() {
        return Ok(moment.system());
    }
    let span =
        text::duration(stated).map_err(|wrong| Problem::invalid(wrong.what, wrong.remedy))?;
    let back = std::time::Duration::from_micros(span.0);
    Ok(SystemTime::now().checked_sub(back).unwrap_or(SystemTime::UNIX_EPOCH))
}

impl EventFilter {
    fn matches(&self, event: &Event) -> bool {
        self.pool.as_ref().is_none_or(|pool| event.pool == *pool)
    }

    fn follow(&self, tap: &Standpipe, since: Option<SystemTime>) -> Follow {
        match &self.after {
            Some(mark) => tap.journal().follow_from(mark, self.kind),
            None => tap.journal().follow(since, self.kind),
        }
    }
}

fn page(tap: &Standpipe, filter: &EventFilter) -> EventsPage {
    let a_day_ago = SystemTime::now().checked_sub(std::time::Duration::from_secs(86_400));
    // What the daemon's own calls used is written every ten seconds; a reader wants it now.
    tap.flush_journal();
    let mut follow = filter.follow(tap, filter.since.or(a_day_ago));
    let mut events = std::collections::VecDeque::new();
    let mut next = follow.mark();
    loop {
        let some = follow.some();
        if some.is_empty() {
            // Skips events that were read but did not match.
            next = follow.mark();
            break;
        }
        for (event, mark) in some {
            if filter.after.is_some() && events.len() == filter.limit {
                return EventsPage {
                    schema: SCHEMA,
                    events: events.into(),
                    next: next.to_string(),
                };
            }
            next = mark;
            if filter.matches(&event) && filter.since.is_none_or(|since| event.at.system() >= since)
            {
                events.push_back(event);
            }
            if events.len() > filter.limit {
                events.pop_front();
            }
        }
    }
    EventsPage { schema: SCHEMA, events: events.into(), next: next.to_string() }
}

/// The state of one stream of events.
struct EventStream {
    state: Arc<AppState>,
    follow: Option<Follow>,
    filter: EventFilter,
    grew: watch::Receiver<u64>,
    ready: std::collections::VecDeque<sse::Event>,
    ended: bool,
    _permit: OwnedSemaphorePermit,
}

fn follow(state: &Arc<AppState>, filter: EventFilter) -> Result<Response, Problem> {
    let stream = EventStream {
        state: Arc::clone(state),
        follow: Some(filter.follow(&state.tap(), filter.since)),
        filter,
        grew: state.journal_grew.subscribe(),
        ready: std::collections::VecDeque::new(),
        ended: false,
        _permit: streams::permit(state)?,
    };
    let events = unfold(stream, |mut stream| async {
        let event = stream.next().await?;
        Some((Ok::<_, Infallible>(event), stream))
    });
    Ok(streams::response(events))
}

impl EventStream {
    async fn next(&mut self) -> Option<sse::Event> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            if self.ended {
                return None;
            }
            let mut follow = self.follow.take()?;
            self.grew.mark_unchanged();
            let read = tokio::task::spawn_blocking(move || (follow.some(), follow)).await.ok()?;
            let (some, follow) = read;
            self.follow = Some(follow);
            let is_empty = some.is_empty();
            let matching = some.into_iter().filter(|(event, _)| self.filter.matches(event));
            self.ready.extend(matching.map(|(event, mark)| message(&event, &mark)));
            if !is_empty {
                continue;
            }
            tokio::select! {
                grew = self.grew.changed() => grew.ok()?,
                () = self.state.stopped() => {
                    self.ended = true;
                    return Some(streams::bye());
                }
            }
        }
    }
}

fn message(event: &Event, mark: &JournalCursor) -> sse::Event {
    let data = serde_json::to_string(event).unwrap_or_default();
    sse::Event::default().event(event.what.kind().as_str()).id(mark.to_string()).data(data)
}
