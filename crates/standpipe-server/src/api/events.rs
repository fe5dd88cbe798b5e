//! What happened: the machine's journal, as pages and as a stream that can be taken up again.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::SystemTime;

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response, sse};
use futures_util::stream::unfold;
use serde::{Deserialize, Serialize};
use standpipe::config::text;
use standpipe::journal::{Event, Follow, Kind, Mark};
use standpipe::{Moment, Standpipe};
use tokio::sync::{OwnedSemaphorePermit, watch};
use utoipa::{IntoParams, ToSchema};

use super::{Problems, SCHEMA};
use crate::house::House;
use crate::problem::Problem;
use crate::said::Asked;
use crate::stream;

/// How many events a page has when nothing is said, and at most.
const USUAL: usize = 1_000;
const MOST: usize = 10_000;

/// Which events.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Which {
    /// How far back: a length such as `1h`, or a moment such as `2026-01-31T12:00:00Z`. Without one
    /// a page has the last day, and a stream what comes from now on.
    since: Option<String>,
    /// Only of this kind: `wait`, `throttle`, `pause`, `reclaim` …
    kind: Option<String>,
    /// Only on this pool.
    #[param(pattern = r"^[A-Za-z0-9._:@-]{1,64}(/[A-Za-z0-9._:@-]{1,128}){1,3}$")]
    pool: Option<String>,
    /// At most so many; the newest, unless `after` is given.
    #[param(minimum = 1, maximum = 10_000)]
    limit: Option<usize>,
    /// What was written behind this mark, oldest first: `next` of a page, or `id` of an event.
    after: Option<String>,
}

/// A page of events.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Page {
    schema: u64,
    /// Oldest first.
    events: Vec<Event>,
    /// For `after`: what follows this page.
    next: String,
}

/// What is wanted, understood.
struct Choice {
    since: Option<SystemTime>,
    kind: Option<Kind>,
    pool: Option<String>,
    limit: usize,
    after: Option<Mark>,
}

/// What happened on this machine's pools.
///
/// With `accept: text/event-stream` it goes on as things happen. Each event has an `id`; sent back
/// as `last-event-id` the stream goes on behind it: nothing twice, nothing missing that is kept.
#[utoipa::path(
    get, path = "/v1/events", tag = "looking", params(Which),
    responses(
        (status = 200, description = "Oldest first", content(
            (Page = "application/json"), (String = "text/event-stream")
        )),
        Problems
    )
)]
pub(crate) async fn events(
    State(house): State<Arc<House>>,
    headers: HeaderMap,
    Asked(mut which): Asked<Which>,
) -> Result<Response, Problem> {
    if stream::is_wanted(&headers) {
        let last = headers.get("last-event-id").and_then(|value| value.to_str().ok());
        which.after = last.map(str::to_owned).or(which.after);
        return follow(&house, choice(&which)?);
    }
    let choice = choice(&which)?;
    let page = house.aside(move |tap| Ok(page(tap, &choice))).await?;
    Ok(Json(page).into_response())
}

fn choice(which: &Which) -> Result<Choice, Problem> {
    let since = which.since.as_deref().map(moment).transpose()?;
    let kind = which.kind.as_deref().map(str::parse::<Kind>).transpose();
    let kind =
        kind.map_err(|wrong| Problem::invalid("there is no such kind", wrong.to_string()))?;
    let limit = which.limit.unwrap_or(USUAL);
    if !(1..=MOST).contains(&limit) {
        let hint = format!("ask for 1 to {MOST}, and for the rest with `after`");
        return Err(Problem::invalid(format!("limit is {limit}"), hint));
    }
    let after = which.after.as_deref().map(str::parse::<Mark>).transpose();
    let after =
        after.map_err(|wrong| Problem::invalid("`after` cannot be used", wrong.to_string()))?;
    let pool = which.pool.as_deref().map(crate::pools::name).transpose()?;
    Ok(Choice { since, kind, pool: pool.map(|pool| pool.to_string()), limit, after })
}

/// `1h` ago, or a moment of the calendar.
fn moment(said: &str) -> Result<SystemTime, Problem> {
    if let Ok(moment) = said.parse::<Moment>() {
        return Ok(moment.system());
    }
    let span = text::duration(said).map_err(|wrong| Problem::invalid(wrong.what, wrong.remedy))?;
    let back = std::time::Duration::from_micros(span.0);
    Ok(SystemTime::now().checked_sub(back).unwrap_or(SystemTime::UNIX_EPOCH))
}

impl Choice {
    fn wants(&self, event: &Event) -> bool {
        self.pool.as_ref().is_none_or(|pool| event.pool == *pool)
    }

    fn follow(&self, tap: &Standpipe, since: Option<SystemTime>) -> Follow {
        match &self.after {
            Some(mark) => tap.journal().follow_from(mark, self.kind),
            None => tap.journal().follow(since, self.kind),
        }
    }
}

fn page(tap: &Standpipe, choice: &Choice) -> Page {
    let a_day_ago = SystemTime::now().checked_sub(std::time::Duration::from_secs(86_400));
    let mut follow = choice.follow(tap, choice.since.or(a_day_ago));
    let mut events = std::collections::VecDeque::new();
    let mut next = follow.mark();
    loop {
        let some = follow.some();
        if some.is_empty() {
            // What was read and not wanted need not be read again.
            next = follow.mark();
            break;
        }
        for (event, mark) in some {
            if choice.after.is_some() && events.len() == choice.limit {
                return Page { schema: SCHEMA, events: events.into(), next: next.to_string() };
            }
            next = mark;
            if choice.wants(&event) && choice.since.is_none_or(|since| event.at.system() >= since) {
                events.push_back(event);
            }
            if events.len() > choice.limit {
                events.pop_front();
            }
        }
    }
    Page { schema: SCHEMA, events: events.into(), next: next.to_string() }
}

/// A stream of events.
struct Follower {
    house: Arc<House>,
    follow: Option<Follow>,
    choice: Choice,
    grew: watch::Receiver<u64>,
    ready: std::collections::VecDeque<sse::Event>,
    ended: bool,
    _place: OwnedSemaphorePermit,
}

fn follow(house: &Arc<House>, choice: Choice) -> Result<Response, Problem> {
    let follower = Follower {
        house: Arc::clone(house),
        follow: Some(choice.follow(&house.tap(), choice.since)),
        choice,
        grew: house.journal_grew.subscribe(),
        ready: std::collections::VecDeque::new(),
        ended: false,
        _place: stream::place(house)?,
    };
    let events = unfold(follower, |mut follower| async {
        let event = follower.next().await?;
        Some((Ok::<_, Infallible>(event), follower))
    });
    Ok(stream::answer(events))
}

impl Follower {
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
            let nothing = some.is_empty();
            let wanted = some.into_iter().filter(|(event, _)| self.choice.wants(event));
            self.ready.extend(wanted.map(|(event, mark)| shown(&event, &mark)));
            if !nothing {
                continue;
            }
            tokio::select! {
                grew = self.grew.changed() => grew.ok()?,
                () = self.house.stops() => {
                    self.ended = true;
                    return Some(stream::bye());
                }
            }
        }
    }
}

fn shown(event: &Event, mark: &Mark) -> sse::Event {
    let data = serde_json::to_string(event).unwrap_or_default();
    sse::Event::default().event(event.what.kind().as_str()).id(mark.to_string()).data(data)
}
