//! What each reason of the admission rule means, and what to do about it.

use standpipe::config::plain;
use standpipe::observe::{LimitStatus, ProviderReset, Why};
use standpipe::{Priority, Reason, Refused, Span, Unit};

use crate::show::amount::amount;

/// What each reason means, and what to do about it.
pub(crate) const MEANINGS: [(Reason, &str, &str); 20] = [
    (
        Reason::Terminal,
        "the provider stopped it: no credit, a spent quota, a blocked key",
        "fix the account at the provider, then `standpipe resume POOL`",
    ),
    (
        Reason::Never,
        "the call is larger than a limit of the pool",
        "send a smaller call, or raise the limit",
    ),
    (
        Reason::Pause,
        "the pool is paused, after a 429 or by hand",
        "wait; `standpipe resume POOL` ends the pause",
    ),
    (
        Reason::ReturnWindow,
        "after a pause calls return staggered by priority",
        "wait; calls return within seconds after the pause",
    ),
    (
        Reason::Zone,
        "little is left of a limit, and calls of this priority are spaced out",
        "use `--priority critical` for calls that must not wait, or set a floor",
    ),
    (
        Reason::Hold,
        "an agent earlier in the workflow was throttled, or the call is a retry",
        "nothing to do; it ends with that pause",
    ),
    (
        Reason::Yield,
        "little is left of a limit, and background calls are stopped",
        "raise its priority if it must run now",
    ),
    (
        Reason::Spread,
        "background calls are paced so that the quota lasts",
        "raise its priority, or set `spread = false` in the pool",
    ),
    (
        Reason::Cap,
        "the agent's own cap is reached",
        "wait, or raise `cap` of the agent in standpipe.toml",
    ),
    (
        Reason::Order,
        "earlier calls, or calls of a higher priority, wait for the same limit",
        "wait, or give urgent calls `--priority critical`",
    ),
    (
        Reason::Limit,
        "a limit has no room",
        "wait; request less; or raise the limit in standpipe.toml if the provider allows more",
    ),
    (
        Reason::Floor,
        "the rest of the limit is kept for agents with a floor",
        "wait, or lower the floor of the others in standpipe.toml",
    ),
    (
        Reason::Ramp,
        "after a pause only a part of a limit is usable at first",
        "wait; all of the limit is usable again when the ramp ends",
    ),
    (
        Reason::Pace,
        "too soon after the last call (`pace`)",
        "nothing to do; the next call follows soon",
    ),
    (
        Reason::Probe,
        "after a pause one call probes; the others wait for its response, at most one second",
        "nothing to do; a lost probe is replaced",
    ),
    (
        Reason::Sequential,
        "several agents were throttled, so calls run one at a time",
        "nothing to do; it ends after some successful calls",
    ),
    (
        Reason::Learning,
        "the store lost calls in flight, or the provider's limits are not known yet",
        "wait, or state the limits in standpipe.toml",
    ),
    (
        Reason::RetryBudget,
        "too many of the last minute's calls were retries",
        "find out why the calls fail, or raise `retry_budget` in standpipe.toml",
    ),
    (
        Reason::QueueFull,
        "too many calls wait or are in flight on the pool",
        "send fewer at once; `standpipe status POOL` shows whose they are",
    ),
    (Reason::Deadline, "its timeout has passed", "give it a longer `--timeout`"),
];

/// What is known of a pool beside the reason of a wait.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Situation<'a> {
    pub(crate) pool: &'a str,
    /// The priority of the call.
    pub(crate) priority: &'a str,
    /// Processes that hold leases and are stopped.
    pub(crate) stopped: &'a [u32],
    /// The limits of the pool.
    pub(crate) limits: &'a [LimitStatus],
    /// Whether the limits of the pool are from a configuration file.
    pub(crate) from_file: bool,
    /// Whether the call lacks room on two limits.
    pub(crate) lacks_two: bool,
}

impl Situation<'_> {
    /// Fewer slots than stated, because the provider refused calls at once.
    fn has_learned_slots(&self) -> bool {
        let is_learned =
            |limit: &LimitStatus| limit.learned.is_some() || limit.effective < limit.amount;
        self.limits.iter().any(|limit| limit.unit == "parallel" && is_learned(limit))
    }

    /// What to do about a window of the provider: a response shows when the next one has begun.
    fn about_reset(&self, reset: &ProviderReset, name: Option<&str>) -> String {
        let pool = self.pool;
        let observe = format!("`standpipe observe {pool} -` reads a response");
        if reset.followed {
            return format!("wait; {observe} that shows the new window");
        }
        let limit = self.limits.iter().find(|limit| Some(limit.limit.as_str()) == name);
        let stated = limit.and_then(|limit| {
            let period = Span::millis(limit.period_ms?);
            let rate = plain::rate(&Unit::named(&limit.unit)?, limit.amount, period);
            Some(format!(" ({} = {{ rate = \"{rate}\", resets = \"provider\" }})", limit.unit))
        });
        let state = format!(
            "state the limit with `resets = \"provider\"` in standpipe.toml{}, and one call tries \
             after each reset",
            stated.unwrap_or_default()
        );
        match reset.ended {
            true => format!("{observe} that shows the new window, and calls go on; or {state}"),
            false => format!("{state}; {observe}"),
        }
    }

    /// What others use of a limit, and all of it, if they use a notable part.
    fn used_by_others(&self, name: Option<&str>) -> Option<String> {
        let limit = self.limits.iter().find(|limit| Some(limit.limit.as_str()) == name)?;
        let units = limit.by_others.max(limit.outside);
        let stated = limit.learned.map_or(limit.amount, |learned| learned.min(limit.amount));
        // A tenth; providers round what they count.
        let is_notable = units > 0 && units.saturating_mul(10) >= stated;
        let (units, stated) = (amount(&limit.unit, units), amount(&limit.unit, stated));
        is_notable.then(|| format!("{units} of {stated} are used by others"))
    }
}

/// What a person can do about calls that wait for this reason on a pool. Empty for a reason that
/// only a newer version knows.
pub(crate) fn to_do(why: &Why<'_>, situation: &Situation<'_>) -> String {
    let Situation { pool, priority, stopped, lacks_two, .. } = *situation;
    if let Some(reset) = why.reset {
        return situation.about_reset(reset, why.limit);
    }
    if why.limit == Some("parallel") && !stopped.is_empty() {
        let each: Vec<String> = stopped.iter().map(|pid| Refused::stopped_holder(*pid)).collect();
        return each.join("; ");
    }
    if let (true, Some(used)) =
        (why.reason == Reason::Limit.as_str(), situation.used_by_others(why.limit))
    {
        return format!("{used}; find those callers (`standpipe doctor`), or wait");
    }
    if why.reason == Reason::Limit.as_str()
        && why.limit == Some("parallel")
        && situation.has_learned_slots()
    {
        return "wait; the provider refused more calls at once, and one more is admitted after each \
                minute without a 429"
            .to_owned();
    }
    if why.reason == Reason::Limit.as_str() && lacks_two {
        return "wait; two limits are full, and raising one of them alone gains nothing".to_owned();
    }
    if why.reason == Reason::Terminal.as_str() {
        return format!("{}, then `standpipe resume {pool}`", Refused::FIX_ACCOUNT);
    }
    let refused = why.paused.is_some_and(|cause| cause.refusal.is_some());
    if why.reason == Reason::Pause.as_str() && refused {
        return format!(
            "wait; `standpipe resume {pool}` ends the pause, but the provider may refuse again"
        );
    }
    if let (true, Some(agent)) = (why.reason == Reason::Cap.as_str(), why.agent) {
        return format!("wait, or raise `cap` of {agent} in standpipe.toml");
    }
    if why.reason == Reason::Never.as_str() && why.by_cap {
        return "send a smaller call, or raise the agent's cap in standpipe.toml".to_owned();
    }
    if why.reason == Reason::Order.as_str() && priority == Priority::Critical.as_str() {
        return "wait; calls of the highest priority go in order".to_owned();
    }
    if why.reason == Reason::Limit.as_str() && why.alone {
        return "send a smaller call, or wait until the limit is free".to_owned();
    }
    if why.reason == Reason::Learning.as_str() && why.limit.is_some() {
        let reset = standpipe::observe::reset_if_idle(pool);
        return format!("{reset}; else wait: running processes report their calls");
    }
    if why.reason == Reason::Limit.as_str() && why.limit == Some("parallel") {
        let file = if situation.from_file { "" } else { " (`standpipe config init` writes it)" };
        return format!("wait for a call to end, or raise `parallel` in standpipe.toml{file}");
    }
    let known = MEANINGS.iter().find(|(known, ..)| known.as_str() == why.reason);
    known.map(|(.., to_do)| to_do.replace("POOL", pool)).unwrap_or_default()
}
