//! Why a call is not admitted, in one phrase for people: the same in every text of the library, in
//! `status`, `explain` and `top`.

use std::fmt;

use standpipe_core::Unit;

use super::Refused;
use crate::amount::grouped;
use crate::explain::Denial;
use crate::status::{Delay, KeptUnits, PausedBy, ProviderReset, TicketStatus};

/// What is known about a refusal, without its instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Why<'a> {
    /// The name of the reason.
    pub reason: &'a str,
    /// The limit it is about.
    pub limit: Option<&'a str>,
    /// How many units are missing there.
    pub short_by: u64,
    /// In fair order, the agent whose call is first in the queue for the limit.
    pub behind: Option<&'a str>,
    /// How many calls are in its way in the queue for the limit.
    pub calls_ahead: usize,
    /// The agents of the calls ahead of it in the queue for the limit, the first ones.
    pub ahead: &'a [String],
    /// How many more agents are ahead of it.
    pub ahead_more: usize,
    /// The agents that hold the slots that it waits for.
    pub in_use_by: &'a [String],
    /// The agent of the call, if it is known.
    pub agent: Option<&'a str>,
    /// Whether it takes more than the usable part of the limit.
    pub alone: bool,
    /// What floors of other agents keep from it.
    pub kept: &'a [KeptUnits],
    /// The agent of a higher priority that it leaves units to.
    pub superior: Option<&'a str>,
    /// What delays it, if that is known.
    pub delay: Option<&'a Delay>,
    /// Who ordered the pause, and when.
    pub paused: Option<&'a PausedBy>,
    /// Whether the agent's own cap is what the call can never fit.
    pub by_cap: bool,
    /// The provider's own window that has to begin first.
    pub reset: Option<&'a ProviderReset>,
}

impl<'a> Why<'a> {
    /// A reason about a limit, of which nothing else is known.
    #[must_use]
    pub const fn new(reason: &'a str, limit: Option<&'a str>) -> Self {
        Self {
            reason,
            limit,
            short_by: 0,
            behind: None,
            calls_ahead: 0,
            ahead: &[],
            ahead_more: 0,
            in_use_by: &[],
            agent: None,
            alone: false,
            kept: &[],
            superior: None,
            delay: None,
            paused: None,
            by_cap: false,
            reset: None,
        }
    }
}

impl Refused {
    /// Returns why a call is refused; `None` if a call timed out and the reason is unknown.
    #[must_use]
    pub fn why(&self) -> Option<Why<'_>> {
        let timed_out = self.reason == standpipe_core::Reason::Deadline;
        let reason = if timed_out { self.waited_for? } else { self.reason };
        Some(Why {
            short_by: self.short_by,
            behind: self.behind.as_deref(),
            paused: self.paused.as_ref(),
            by_cap: self.by_cap,
            reset: self.reset.as_ref(),
            ..Why::new(reason.as_str(), self.limit.as_deref())
        })
    }
}

impl TicketStatus {
    /// Returns why the call waits; `None` when it is due.
    #[must_use]
    pub fn why(&self) -> Option<Why<'_>> {
        Some(Why {
            reason: self.reason?.as_str(),
            limit: self.limit.as_deref(),
            short_by: self.short_by,
            behind: self.behind.as_deref(),
            calls_ahead: self.calls_ahead,
            ahead: &self.ahead,
            ahead_more: self.ahead_more,
            in_use_by: &self.in_use_by,
            agent: Some(&self.agent),
            alone: self.alone,
            kept: &self.kept,
            superior: self.superior.as_deref(),
            delay: self.delay.as_ref(),
            paused: self.paused.as_ref(),
            by_cap: false,
            reset: self.reset.as_ref(),
        })
    }
}

impl Denial {
    /// Returns why the rule denies the call.
    #[must_use]
    pub fn why(&self) -> Why<'_> {
        Why {
            reason: self.reason.as_str(),
            limit: self.limit.as_deref(),
            short_by: self.short_by,
            behind: self.behind.as_deref(),
            calls_ahead: self.calls_ahead,
            ahead: &self.ahead,
            ahead_more: self.ahead_more,
            in_use_by: &self.in_use_by,
            agent: Some(&self.agent),
            alone: self.alone,
            kept: &self.kept,
            superior: self.superior.as_deref(),
            delay: self.delay.as_ref(),
            paused: self.paused.as_ref(),
            by_cap: self.by_cap,
            reset: self.reset.as_ref(),
        }
    }
}

impl fmt::Display for Why<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limit = self.limit.unwrap_or("a limit");
        match self.reason {
            "terminal" => f.write_str("the provider stopped the pool"),
            "never" => {
                let cap = if self.by_cap { "the agent's own cap on " } else { "" };
                // A record of an earlier version does not have the number.
                let shortage =
                    if self.short_by == 0 { String::new() } else { self.shortage() + " " };
                write!(f, "it takes {shortage}more than {cap}{limit} ever allows")
            }
            "pause" => match self.paused {
                Some(cause) => write!(f, "the pool is paused{}", cause.cause()),
                None => f.write_str("the pool is paused"),
            },
            "return_window" => f.write_str("after the pause callers return staggered by priority"),
            "zone" | "yield" | "spread" => self.fmt_protected(f, limit),
            "hold" => match self.delay {
                Some(Delay::Retry) => f.write_str("it is delayed before a retry"),
                Some(Delay::Upstream(agent)) => {
                    write!(f, "it is delayed because {agent}, which it depends on, is throttled")
                }
                None => f.write_str(
                    "it is delayed before a retry, or because an agent it depends on is throttled",
                ),
            },
            "probe" => f.write_str("the probe after a pause has not been answered yet"),
            "sequential" => f.write_str("several agents were throttled, so calls go one at a time"),
            "retry_budget" => f.write_str("too many of the last minute's calls were retries"),
            "cap" => write!(f, "the agent's own cap on {limit} is reached{}", self.short_by()),
            "order" => self.fmt_order(f, limit),
            "limit" if self.alone => write!(
                f,
                "it takes more than the usable part of {limit}, so it waits until nothing else is \
                 charged there"
            ),
            "limit" if !self.in_use_by.is_empty() => {
                let (short_by, agents) = (self.short_by(), listed(self.in_use_by));
                let verb = if limit == "parallel" { "in use" } else { "used" };
                write!(f, "{limit} has no room{short_by}, {verb} by {agents}")
            }
            "limit" => write!(f, "{limit} has no room{}", self.short_by()),
            "floor" => self.fmt_floor(f, limit),
            "ramp" => write!(
                f,
                "a pause has just ended, and the part of {limit} that is usable at first is used"
            ),
            "pace" => write!(f, "too soon after the last call ({limit})"),
            "learning" if self.limit.is_some() => f.write_str(
                "the store lost the ledger, and calls in flight are being counted again",
            ),
            "learning" => {
                f.write_str("the provider's limits are not known yet, so few calls run at a time")
            }
            "queue_full" => f.write_str("too many calls are queued or in flight"),
            "deadline" => f.write_str("its timeout has passed"),
            "store" => f.write_str("the store is unavailable"),
            other => f.write_str(other),
        }
    }
}

impl Why<'_> {
    /// A call that leaves units to a higher priority. Names the agent, if it is known.
    fn fmt_protected(&self, f: &mut fmt::Formatter<'_>, limit: &str) -> fmt::Result {
        let text = match self.reason {
            "zone" => format!(
                "little is left of {limit}, so calls are spaced out while higher priorities are \
                 active"
            ),
            "yield" => format!(
                "little is left of {limit}, and background waits while higher priorities are active"
            ),
            _ => format!(
                "background is paced so that {limit} lasts while higher priorities are active"
            ),
        };
        match self.superior {
            Some(name) => {
                f.write_str(&text.replace("higher priorities are", &format!("{name} is")))
            }
            None => f.write_str(&text),
        }
    }

    /// What is missing, in the form of its unit.
    fn shortage(&self) -> String {
        let unit = self.limit.and_then(|limit| limit.split(' ').next());
        amount(unit.unwrap_or_default(), self.short_by)
    }

    /// The same in brackets; empty if it is not known.
    fn short_by(&self) -> String {
        match self.short_by {
            0 => String::new(),
            _ => format!(" (short by {})", self.shortage()),
        }
    }

    fn fmt_order(&self, f: &mut fmt::Formatter<'_>, limit: &str) -> fmt::Result {
        let first = self.behind.filter(|_| self.calls_ahead == 0);
        if let Some(agent) = first {
            return write!(f, "behind {agent} by fair order for {limit}");
        }
        // One call each: the names are the calls.
        let each = self.calls_ahead <= self.ahead.len() && self.ahead_more == 0;
        let mut names = self.names_ahead(if each { "its own earlier call" } else { "its own" });
        match self.ahead_more {
            0 => {}
            1 => names.push("1 more agent".to_owned()),
            more => names.push(format!("{} more agents", grouped(more as u64))),
        }
        let ahead = match (names.as_slice(), each) {
            ([], _) => "behind other calls".to_owned(),
            (names, true) => format!("behind {}", listed(names)),
            (names, false) => {
                format!("behind {} calls ({})", grouped(self.calls_ahead as u64), listed(names))
            }
        };
        match self.limit {
            Some(limit) if self.behind.is_some() => write!(f, "{ahead} by fair order for {limit}"),
            Some(limit) => write!(f, "{ahead} in the queue for {limit}"),
            None => write!(f, "{ahead}, until a call in flight is answered"),
        }
    }

    /// The agents ahead of the call. Its own agent is not named like another one.
    fn names_ahead(&self, own: &str) -> Vec<String> {
        let name = |name: &String| match self.agent == Some(name) {
            true => own.to_owned(),
            false => name.clone(),
        };
        self.ahead.iter().map(name).collect()
    }

    fn fmt_floor(&self, f: &mut fmt::Formatter<'_>, limit: &str) -> fmt::Result {
        if self.kept.is_empty() {
            return write!(f, "the rest of {limit} is reserved for the floors of other agents");
        }
        let owner = |kept: &KeptUnits| {
            format!("{} for the floor of {}", amount(&kept.unit, kept.units), kept.agent)
        };
        let owners: Vec<String> = self.kept.iter().map(owner).collect();
        write!(f, "the rest of {limit} is kept: {}", owners.join(", "))
    }
}

/// `blog, news and poller`
fn listed(names: &[String]) -> String {
    match names {
        [some @ .., last] if !some.is_empty() => format!("{} and {last}", some.join(", ")),
        _ => names.concat(),
    }
}

/// An amount with its unit: `90,000 tokens`, `3 slots`, `$2.50`.
pub(super) fn counted(unit: &str, units: u64) -> String {
    match Unit::named(unit) {
        Some(Unit::Usd) => amount(unit, units),
        Some(Unit::Parallel) => crate::finding::counted(units, "slot"),
        _ => format!("{} {unit}", grouped(units)),
    }
}

pub(crate) fn amount(unit: &str, units: u64) -> String {
    match Unit::named(unit) {
        // Whole cents, rounded up: what is missing is never shown as nothing.
        Some(Unit::Usd) => {
            let cents = units.div_ceil(10_000);
            format!("${}.{:02}", cents / 100, cents % 100)
        }
        _ => grouped(units),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_ahead_and_floors_are_named() {
        let ahead = ["blog".to_owned(), "news".to_owned(), "poller".to_owned()];
        let limit = Some("requests per 1min");
        let base = Why { short_by: 2, ..Why::new("", limit) };
        let why = |reason, ahead, kept| Why { reason, ahead, kept, ..base };
        let order = |ahead| why("order", ahead, &[]).to_string();
        assert_eq!(order(&ahead[..1]), "behind blog in the queue for requests per 1min");
        let all = "behind blog, news and poller in the queue for requests per 1min";
        assert_eq!(order(&ahead), all);
        assert!(order(&[]).starts_with("behind other calls"));
        let base = why("order", &ahead, &[]);
        let many = Why { calls_ahead: 8, ahead_more: 1, agent: Some("news"), ..base };
        let text = "behind 8 calls (blog, its own, poller and 1 more agent) in the queue for \
                    requests per 1min";
        assert_eq!(many.to_string(), text);
        let gate = Why { limit: None, ..why("order", &ahead[..1], &[]) };
        assert_eq!(gate.to_string(), "behind blog, until a call in flight is answered");
        let kept = |agent: &str, units| KeptUnits {
            limit: "usd per 1h".to_owned(),
            unit: "usd".to_owned(),
            agent: agent.to_owned(),
            units,
        };
        let floors = [kept("release", 2_500_000), kept("ops", 10_000)];
        let text = "the rest of requests per 1min is kept: $2.50 for the floor of release, $0.01 \
                    for the floor of ops";
        assert_eq!(why("floor", &[], &floors).to_string(), text);
    }

    #[test]
    fn what_is_missing_is_easy_to_read() {
        let lacks = Why { short_by: 20_152, ..Why::new("limit", Some("tokens per 1min")) };
        assert_eq!(lacks.to_string(), "tokens per 1min has no room (short by 20,152)");
        let alone = Why { alone: true, ..lacks }.to_string();
        assert!(alone.ends_with("waits until nothing else is charged there"), "{alone}");
    }

    #[test]
    fn every_reason_has_a_phrase() {
        for reason in standpipe_core::Reason::ALL {
            let reason = reason.as_str();
            let why = Why::new(reason, None);
            assert!(why.to_string().contains(' '), "{reason}");
        }
    }
}
