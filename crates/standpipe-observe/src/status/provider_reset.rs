//! The end of a provider's own window of a limit.
//!
//! A response decides when the next window has begun, not time: calls that wait past the announced
//! end are admitted when a response shows the new window. So they have no known instant.

use serde::{Deserialize, Serialize};
use standpipe_core::{Instant, LimitUsage, Reason, Refusal, Rule, Span, State};

use super::Expected;
use crate::refusal::when;
use crate::time::{Now, Timestamp};

/// A shorter window is over before a person acts on its end.
const LONG: Span = Span::secs(300);

/// The end of the provider's own window, as a response announced it.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ProviderReset {
    /// When the window ends, or ended.
    pub at: Timestamp,
    /// In how long; 0 once it has ended.
    pub in_ms: u64,
    /// Whether the limit follows it (`resets = "provider"`): one call is admitted then, and its
    /// response shows the new window.
    pub followed: bool,
    /// Whether it has ended, and no response has shown the next one.
    pub ended: bool,
}

impl ProviderReset {
    /// Returns the announced end of the window of a limit.
    pub(crate) fn of(state: &State, usage: &LimitUsage, now: &Now) -> Option<Self> {
        let (at, followed) = end_of(state, usage)?;
        let period = usage.limit.id().period()?;
        // By then everything that was charged before has aged.
        (now.store < at + period).then(|| Self {
            at: if at > now.store { now.ahead(at) } else { now.past(at) },
            in_ms: now.millis_until(at),
            followed,
            ended: at <= now.store,
        })
    }

    /// Returns the window of the limit that refuses a call, if a response decides about it: the
    /// window has ended, or the refusal lasts beyond its end although the limit does not follow it.
    pub(crate) fn deciding(state: &State, no: &Refusal, now: &Now) -> Option<Self> {
        let (reset, at) = full_window(state, &state.figures(now.store), no, now)?;
        let is_later = when::instant(no).is_none_or(|until| until > at);
        (reset.ended || !reset.followed && is_later).then_some(reset)
    }

    /// Returns the same for a queued call, of which a forecast is known.
    pub(crate) fn deciding_queued(
        state: &State,
        figures: &[LimitUsage],
        (no, expected): (&Refusal, Option<Expected>),
        now: &Now,
    ) -> Option<Self> {
        let (reset, at) = full_window(state, figures, no, now)?;
        let admitted = match expected {
            Some(Expected::At(at)) => Some(at),
            Some(_) => None,
            None => when::instant(no),
        };
        // The first call is the probe at the reset. The others wait for its response.
        let is_probe = reset.followed && no.reason == Reason::Limit;
        let is_earlier = admitted.is_some_and(|admitted| admitted < at);
        let waits_for_it = !is_probe && !is_earlier;
        (reset.ended || waits_for_it).then_some(reset)
    }
}

/// The window of the limit that has no room for a call, and its end.
fn full_window(
    state: &State,
    figures: &[LimitUsage],
    no: &Refusal,
    now: &Now,
) -> Option<(ProviderReset, Instant)> {
    let same = |usage: &&LimitUsage| Some(usage.limit.id()) == no.limit;
    let is_room = matches!(no.reason, Reason::Limit | Reason::Order);
    let usage = figures.iter().find(same).filter(|_| is_room)?;
    let (at, _) = end_of(state, usage)?;
    Some((ProviderReset::of(state, usage, now)?, at))
}

/// When the window of a limit ends, and whether the limit follows that.
fn end_of(state: &State, usage: &LimitUsage) -> Option<(Instant, bool)> {
    let followed = followed(state, usage).map(|at| (at, true));
    followed.or_else(|| announced(state, usage).map(|at| (at, false)))
}

/// The reset that a limit with `resets = "provider"` follows.
fn followed(state: &State, usage: &LimitUsage) -> Option<Instant> {
    let facts = state.facts();
    let limits = facts.config.iter().flat_map(|config| &config.limits);
    // The counters begin with those of the stated limits.
    let mut counters = limits.zip(facts.counters.iter());
    let (_, counter) = counters.find(|(limit, _)| limit.id() == usage.limit.id())?;
    counter.reset.as_ref().map(|reset| reset.at)
}

/// The reset that the provider announced with its figures, and that the limit does not follow.
fn announced(state: &State, usage: &LimitUsage) -> Option<Instant> {
    let Rule::Window { period, .. } = usage.limit.rule else { return None };
    let mut external = state.facts().external.iter();
    let known = external.find(|known| known.limit == usage.limit.id())?;
    let reported = known.reported.filter(|_| period >= LONG && usage.left == 0)?;
    // Without a reset of the provider its figures count for one period.
    (reported.until < reported.at + period).then_some(reported.until)
}
