//! `status` for people. Each pool begins with its worst state, why, until when and what to do;
//! then its limits, who uses them, who waits and why, and the calls in flight.

mod agents;
mod calls;
mod condition;
mod limits;
mod lost;
mod overview;
mod queue;
mod throttling;
mod warnings;

use standpipe::observe::{ConfigRejected, LimitStatus, PoolState};
use standpipe::{Backpressure, PoolStatus, Settings, escape};

use crate::show::amount::{amount, percent};
use crate::show::duration::remaining;
use crate::show::local_time::clock;
use crate::show::style::{Style, TextRole, columns};
use crate::show::table::sentence;

pub(crate) use agents::{active_text, share_text};
pub(crate) use calls::{cost_text, expiry, leases, priority_label};
pub(crate) use condition::{state_role, state_text, unowned_lease};
pub(crate) use limits::{Shown, ramp};
pub(crate) use lost::ledgers as lost;
pub(crate) use overview::{counts, origin};

/// The text for a store without pools.
pub(crate) const NO_POOLS: &str = "\
No pools yet. The first `hold` or `reserve` on a pool
creates it:

  standpipe hold my/slots --limit parallel=2 -- sleep 10

To write limits to a file, once for every caller:

  standpipe config init
";

/// The text for a store without pools, which it names: it may be another one than meant. A file may
/// not allow the first call to create a pool.
pub(crate) fn no_pools(style: Style, settings: &Settings, store: &str) -> String {
    let Some((what, remedy)) = settings.without_pools() else {
        let ledger = style.paint(TextRole::Muted, &format!("ledger {}", escape::text(store)));
        return format!("{NO_POOLS}\n{ledger}\n");
    };
    let text = format!("No pools yet. {what}");
    let lines =
        [sentence(0, style.width, &text), sentence(0, style.width, &format!("hint: {remedy}"))];
    lines.concat().join("\n") + "\n"
}

/// Formats all pools, separated by empty lines: the worst state first, then by name.
pub(crate) fn pools(style: Style, all: &[PoolStatus]) -> String {
    let mut sorted: Vec<&PoolStatus> = all.iter().collect();
    sorted.sort_by_key(|status| status.state());
    let is_calm = |status: &PoolStatus| {
        let is_idle = status.state() == PoolState::Idle && !has_condition(style, status);
        all.len() > MANY && is_idle && status.limits.iter().all(|limit| is_unused(status, limit))
    };
    let (calm, others): (Vec<_>, Vec<_>) = sorted.into_iter().partition(|status| is_calm(status));
    let mut parts: Vec<String> =
        others.into_iter().map(|status| pool(style, status).join("\n") + "\n").collect();
    // What needs attention must not scroll away.
    let calm: String = calm.into_iter().map(|status| heading(style, status) + "\n").collect();
    if !calm.is_empty() {
        let note = "Idle pools are a line each; `standpipe status POOL` shows more.";
        parts.push(calm + &style.paint(TextRole::Muted, note) + "\n");
    }
    parts.join("\n")
}

/// Of more pools than this, idle ones are a line each.
const MANY: usize = 4;

/// Whether little of a limit is used, and nothing of it by others.
fn is_unused(status: &PoolStatus, limit: &LimitStatus) -> bool {
    let taken = limit.used.saturating_add(limit.held);
    status.notable_use_by_others(limit).is_none() && taken.saturating_mul(4) <= limit.effective
}

fn has_condition(style: Style, status: &PoolStatus) -> bool {
    !condition::lines(style, status).is_empty()
}

/// Formats the throttled agents that workflows depend on.
pub(crate) fn backpressure(all: &[Backpressure]) -> String {
    let each = all.iter().map(|throttled| {
        let (agent, pool, left) =
            (&throttled.agent, &throttled.pool, remaining(throttled.until_ms));
        format!("\nworkflows: {agent} is throttled on {pool} for another {left}\n")
    });
    each.collect()
}

/// Formats a configuration file that the running daemon rejected.
pub(crate) fn rejected(style: Style, rejected: Option<&ConfigRejected>) -> String {
    let Some(rejected) = rejected else { return String::new() };
    let file = rejected.file.as_deref().unwrap_or("the configuration file");
    let text = format!("the daemon rejected {file} at {}", clock(rejected.at));
    let mut lines = vec![style.paint(TextRole::Error, &text)];
    lines.extend(rejected.errors.iter().flat_map(|error| sentence(2, style.width, error)));
    lines.extend(sentence(0, style.width, &format!("hint: {}", rejected.remedy())));
    lines.join("\n") + "\n\n"
}

fn pool(style: Style, status: &PoolStatus) -> Vec<String> {
    let mut lines = vec![heading(style, status)];
    lines.extend(summary(style, status));
    lines.extend(users(style, status));
    lines.extend(calls::leases(style, &status.leases));
    lines
}

/// Formats who uses a pool, and who waits for it and why.
pub(crate) fn users(style: Style, status: &PoolStatus) -> Vec<String> {
    let mut lines = agents::lines(style, status);
    lines.extend(queue::tickets(style, &status.tickets));
    lines
}

/// Formats what follows a pool's name: its condition with a hint, then a bar per limit.
pub(crate) fn summary(style: Style, status: &PoolStatus) -> Vec<String> {
    let condition = condition::lines(style, status).into_iter();
    let mut lines: Vec<_> = condition.flat_map(|line| sentence(2, style.width, &line)).collect();
    lines.extend(limits::lines(style, &status.limits, false));
    lines
}

/// Formats the same for little room: the first lines of the condition, limits without remarks.
pub(crate) fn brief(style: Style, status: &PoolStatus) -> Vec<String> {
    const MOST: usize = 4;
    let condition = condition::lines(style, status).into_iter();
    let condition = condition.flat_map(|line| sentence(2, style.width, &line));
    let mut lines: Vec<_> = condition.take(MOST).collect();
    lines.extend(limits::lines(style, &status.limits, true));
    lines
}

/// `margin 20 %`, or `margin 5 to 50 %` if the limits have different ones.
fn margin(margins: &[u16]) -> Option<String> {
    let (least, most) = (*margins.iter().min()?, *margins.iter().max()?);
    match (least, most) {
        (_, 0) => None,
        (least, most) if least == most => Some(format!("margin {}", percent(most))),
        (least, most) => {
            let least = percent(least);
            Some(format!("margin {} to {}", least.trim_end_matches(" %"), percent(most)))
        }
    }
}

/// The name at the left, the worst state and the number of calls at the right.
fn heading(style: Style, status: &PoolStatus) -> String {
    let mut about = vec![state_text(style, status)];
    for (count, what) in [(status.in_flight, "in flight"), (status.waiting, "waiting")] {
        if count > 0 {
            about.push(format!("{} {what}", amount("", count as u64)));
        }
    }
    let margins = status.limits.iter().filter_map(|limit| limit.margin_per_mille);
    about.extend(margin(&margins.collect::<Vec<_>>()));
    if !status.enforce {
        about.push("shadow mode: limits are not enforced".to_owned());
    }
    let about = about.join(style.dot());
    let used = columns(&status.pool) + columns(&about);
    let gap = style.width.min(100).saturating_sub(used).max(2);
    format!("{}{}{about}", style.paint(TextRole::Title, &status.pool), " ".repeat(gap))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use standpipe::{AgentName, Amounts, Limit, PoolConfig, Rule, Span, Unit};
    use standpipe_core::{Action, Configure, Event, Instant, Key, Reserve, Source, State};
    use standpipe_observe::time::Now;

    /// A pool; `used` 30 s ago, by a call that has ended.
    fn seen(name: &str, used: bool) -> PoolStatus {
        let rule = Rule::Window { unit: Unit::Requests, amount: 100, period: Span::secs(60) };
        let config = PoolConfig::new(vec![Limit::new(rule)]);
        let call = Reserve::new(AgentName::new("blog").unwrap(), Amounts::default());
        let lease = Key { session: 7, number: 2 };
        let configure = Action::Configure(Box::new(Configure { source: Source::Code, config }));
        let calls = [Action::from(call), Action::Cancel { lease }];
        let mut state = State::new();
        let actions = std::iter::once(configure).chain(calls.into_iter().filter(|_| used));
        for (number, action) in (1..).zip(actions) {
            let _ = state.apply(&Event { key: Key { session: 7, number }, action }, Instant(0));
        }
        let now = Now::at(Instant(30_000_000));
        PoolStatus::of(&name.parse().unwrap(), &state.at(now.store), &now, &|_| None)
    }

    #[test]
    fn of_many_pools_the_idle_ones_are_a_line_each() {
        let names = ["a/b", "c/d", "e/f", "g/h", "i/j"];
        let all: Vec<PoolStatus> = names.iter().map(|name| seen(name, *name == "e/f")).collect();
        let style = Style { colour: false, unicode: true, width: 80 };
        let shown = pools(style, &all);
        let bars = shown.lines().filter(|line| line.starts_with("  requests")).count();
        assert!(bars == 1 && shown.starts_with("e/f  ") && shown.contains("active"), "{shown}");
        assert!(shown.contains("Idle pools are a line each"), "{shown}");
    }

    #[test]
    fn a_file_that_needs_a_restart_has_nothing_to_correct() {
        let style = Style { colour: false, unicode: true, width: 80 };
        let shown = |errors: &[&str]| {
            let errors: Vec<&str> = errors.to_vec();
            let file =
                json!({"at": "2026-01-31T16:59:20.000Z", "file": "s.toml", "errors": errors});
            rejected(style, Some(&serde_json::from_value(file).unwrap()))
        };
        let restart = "`listen` has changed, which needs a restart; restart the daemon";
        assert!(shown(&[restart]).contains("hint: restart the daemon"));
        assert!(shown(&[restart, "unknown key"]).contains("hint: correct the file"));
    }

    #[test]
    fn the_heading_has_one_margin_only_if_all_limits_have_it() {
        assert_eq!(margin(&[200, 200]).as_deref(), Some("margin 20 %"));
        assert_eq!(margin(&[500, 50, 200]).as_deref(), Some("margin 5 to 50 %"));
        assert_eq!((margin(&[0, 0]), margin(&[])), (None, None));
    }
}
