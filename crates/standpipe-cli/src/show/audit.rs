//! `audit` for people: calls and rates per agent, the sums against the quota, findings.

use std::collections::BTreeMap;

use standpipe::escape;
use standpipe::observe::{self, AgentAudit, AgentRate, Audit, Level, LimitAudit, PoolAudit, Rate};

use crate::show::amount::{amount, counted};
use crate::show::duration::{length, period};
use crate::show::findings;
use crate::show::local_time::clock;
use crate::show::style::{Style, TextRole, columns};
use crate::show::table::{sentence, table};

/// The most agents that are listed; `--json` has all.
const MAX_ROWS: usize = 20;
/// The most pools without records that are named.
const MAX_NAMES: usize = 10;

/// `is_shared`: other machines use the pools too, and their calls are in their own journals.
pub(crate) fn text(style: Style, audit: &Audit, back_ms: u64, is_shared: bool) -> String {
    let back = match period(back_ms).as_str() {
        "s" => "second".to_owned(),
        "min" => "minute".to_owned(),
        back => back.to_owned(),
    };
    if audit.pools.iter().all(|pool| pool.agents.is_empty()) {
        return nothing(style, audit, &back, is_shared);
    }
    let extent = match is_shared {
        true => format!("the last {back}{}{MACHINE}", style.dot()),
        false => format!("the last {back}"),
    };
    let is_empty = |pool: &&PoolAudit| {
        pool.agents.is_empty() && pool.findings.is_empty() && pool.complete_until.is_none()
    };
    let (empty, mut pools): (Vec<&PoolAudit>, Vec<&PoolAudit>) =
        audit.pools.iter().partition(is_empty);
    let worst = |pool: &PoolAudit| pool.findings.iter().map(|finding| finding.level).max();
    pools.sort_by_key(|pool| std::cmp::Reverse(worst(pool)));
    let is_well = |pool: &&&PoolAudit| worst(pool) == Some(Level::Ok) && pools.len() > MANY;
    let well: Vec<&PoolAudit> = pools.iter().filter(is_well).copied().collect();
    let others = pools.iter().filter(|pool| !is_well(pool));
    let each = others.map(|each| pool(style, each, &extent));
    let mut parts: Vec<Vec<String>> = each.collect();
    if !well.is_empty() {
        parts.push(healthy(style, &well));
    }
    parts.extend(totals(style, &pools));
    if !empty.is_empty() {
        parts.push(sentence(0, style.width, &format!("nothing recorded: {}", names(&empty))));
    }
    let parts: Vec<String> = parts.iter().map(|lines| lines.join("\n") + "\n").collect();
    parts.join("\n")
}

/// Of more pools than this, those that are well share one line.
const MANY: usize = 4;

/// `26 pools are well: a/b, c/d, and 24 more`
fn healthy(style: Style, pools: &[&PoolAudit]) -> Vec<String> {
    let verb = if pools.len() == 1 { "is" } else { "are" };
    let ok = style.paint(TextRole::Good, Level::Ok.as_str());
    let (count, names) = (counted(pools.len() as u64, "pool"), names(pools));
    let text = format!("{ok}  {count} {verb} well: {names}; `standpipe audit POOL` shows more");
    let mut lines = sentence(0, style.width, &text);
    if let Some(until) = pools.iter().filter_map(|pool| pool.complete_until).min() {
        let text = format!("calls of running processes after {} may be missing", clock(until));
        lines.push(format!("  {}", style.paint(TextRole::Muted, &text)));
    }
    lines
}

/// `a/b, c/d, and 9 more`
fn names(pools: &[&PoolAudit]) -> String {
    let mut names: Vec<String> =
        pools.iter().take(MAX_NAMES).map(|pool| escape::text(&pool.pool).into_owned()).collect();
    if pools.len() > MAX_NAMES {
        names.push(format!("and {} more", pools.len() - MAX_NAMES));
    }
    names.join(", ")
}

/// The extent of an audit of pools that several machines share.
const MACHINE: &str = "on this machine only";

/// The text for an empty journal.
fn nothing(style: Style, audit: &Audit, back: &str, is_shared: bool) -> String {
    let back = if is_shared { format!("{back}, {MACHINE}") } else { back.to_owned() };
    let unreadable = audit.pools.iter().flat_map(|pool| findings::list(style, &pool.findings));
    let unreadable: String = unreadable.map(|line| line + "\n").collect();
    if let Some(until) = audit.pools.iter().find_map(|pool| pool.complete_until) {
        let until = clock(until);
        return format!(
            "Nothing is recorded yet. Calls of running processes after {until}\n\
             may be missing: they are written every 10 s\n{unreadable}"
        );
    }
    format!(
        "Nothing was recorded in the last {back}. Calls through Standpipe are
recorded automatically:

  standpipe hold my/api --as blog --limit requests=60/min -- ./job

To see first what your agents do without limits, write
`enforce = false` in the pool's table (`standpipe config init` writes a
file to begin with), let them run, and look again.
{unreadable}"
    )
}

fn pool(style: Style, audit: &PoolAudit, extent: &str) -> Vec<String> {
    let mut lines = vec![heading(style, audit, extent)];
    if audit.agents.is_empty() {
        lines.push("  nothing was recorded".to_owned());
    } else {
        lines.extend(agents(style, &audit.agents));
        let used = audit.limits.iter().enumerate().filter(|(_, limit)| limit.peak > 0);
        for (at, limit) in used {
            lines.push(String::new());
            lines.extend(rates(style, limit, audit, at));
        }
        lines.push(String::new());
    }
    lines.extend(findings::list(style, &audit.findings));
    if let Some(until) = audit.complete_until {
        let text = format!("calls of running processes after {} may be missing", clock(until));
        lines.push(format!("  {}", style.paint(TextRole::Muted, &text)));
    }
    if audit.left_out > 0 {
        let mode = if audit.enforce { "in shadow mode" } else { "while they were held back" };
        let text = format!("{} calls {mode} are left out; --compare has both", audit.left_out);
        lines.push(format!("  {}", style.paint(TextRole::Muted, &text)));
    }
    lines
}

/// The name at the left, the number of calls at the right.
fn heading(style: Style, audit: &PoolAudit, extent: &str) -> String {
    let mut about = Vec::new();
    if !audit.enforce {
        about.push("shadow mode".to_owned());
    }
    if audit.calls > 0 {
        let calls = if audit.calls == 1 { "call" } else { "calls" };
        about.push(format!("{} {calls}", amount("calls", audit.calls)));
    }
    about.push(extent.to_owned());
    let about = about.join(style.dot());
    let name = escape::text(&audit.pool);
    let used = columns(&name) + columns(&about);
    let gap = style.width.min(100).saturating_sub(used).max(2);
    format!("{}{}{about}", style.paint(TextRole::Title, &name), " ".repeat(gap))
}

/// What one agent did on all pools.
#[derive(Default)]
struct Total {
    pools: u64,
    calls: u64,
    refused: u64,
    retries: u64,
    waited_ms: u64,
    micro_usd: Option<u64>,
}

/// The calls of each agent on all pools, if several agents called on several.
fn totals(style: Style, pools: &[&PoolAudit]) -> Option<Vec<String>> {
    // A pool has the calls on the pools within it, too.
    let is_counted = |pool: &PoolAudit| {
        let above = pool.within.as_deref();
        !pools.iter().any(|other| Some(other.pool.as_str()) == above)
    };
    let mut agents: BTreeMap<&str, Total> = BTreeMap::new();
    for (pool, agent) in pools.iter().flat_map(|pool| pool.agents.iter().map(move |a| (pool, a))) {
        // A call on several pools counts on the one that the caller named.
        let parts = agent.parts;
        let total = agents.entry(&agent.agent).or_default();
        total.pools += u64::from(is_counted(pool));
        total.calls = total.calls.saturating_add(agent.calls.saturating_sub(parts.calls));
        total.refused = total.refused.saturating_add(agent.refused.saturating_sub(parts.refused));
        total.retries = total.retries.saturating_add(agent.retries.saturating_sub(parts.retries));
        total.waited_ms = total.waited_ms.saturating_add(agent.waited_ms);
        let cost = agent.micro_usd.map(|cost| {
            let own = cost.saturating_sub(parts.micro_usd);
            total.micro_usd.unwrap_or(0).saturating_add(own)
        });
        total.micro_usd = cost.or(total.micro_usd);
    }
    if agents.len() < 2 || agents.values().all(|total| total.pools < 2) {
        return None;
    }
    let mut agents: Vec<(&str, Total)> = agents.into_iter().collect();
    agents.sort_by_key(|(_, total)| std::cmp::Reverse(total.calls));
    let priced = agents.iter().any(|(_, total)| total.micro_usd.is_some());
    let head = ["", "pools", "calls", "refused", "retries", "waited"];
    let head = head.into_iter().chain(priced.then_some("cost"));
    let mut rows = vec![head.map(str::to_owned).collect::<Vec<_>>()];
    rows.extend(agents.iter().take(MAX_ROWS).map(|(name, total)| {
        vec![
            escape::text(name).into_owned(),
            amount("pools", total.pools),
            amount("calls", total.calls),
            nonzero(total.refused),
            nonzero(total.retries),
            if total.waited_ms == 0 { String::new() } else { length(total.waited_ms) },
            total.micro_usd.map_or_else(String::new, |cost| amount("usd", cost)),
        ]
    }));
    let mut lines = vec![style.paint(TextRole::Title, "all pools")];
    lines.extend(figures(style, rows));
    Some(lines)
}

/// The calls of each agent and their outcomes.
fn agents(style: Style, all: &[AgentAudit]) -> Vec<String> {
    let priced = all.iter().any(|agent| agent.micro_usd.is_some());
    let cost = if priced { "cost" } else { "" };
    let title = |name, count: fn(&AgentAudit) -> u64| {
        if all.iter().any(|agent| count(agent) > 0) { name } else { "" }
    };
    let cancelled = title("cancelled", |agent| agent.cancelled);
    let not_admitted = title("not admitted", |agent| agent.not_admitted);
    let running = title("running", |agent| agent.in_flight);
    let outcomes = ["", "calls", running, not_admitted, "refused", "retries", "waited"];
    let head = outcomes.into_iter().chain([cost, cancelled]);
    let mut rows = vec![head.map(str::to_owned).collect::<Vec<_>>()];
    rows.extend(all.iter().take(MAX_ROWS).map(|agent| {
        vec![
            escape::text(&agent.agent).into_owned(),
            amount("calls", agent.calls),
            nonzero(agent.in_flight),
            nonzero(agent.not_admitted),
            nonzero(agent.refused),
            nonzero(agent.retries),
            if agent.waited_ms == 0 { String::new() } else { length(agent.waited_ms) },
            agent.micro_usd.map_or_else(String::new, |cost| amount("usd", cost)),
            nonzero(agent.cancelled),
        ]
    }));
    let mut lines = figures(style, rows);
    if all.len() > MAX_ROWS {
        let more = all.len() - MAX_ROWS;
        lines.push(format!("  and {more} more, included in the sums below; see --json"));
    }
    lines
}

/// The rate of each agent on a limit, and of all together.
fn rates(style: Style, limit: &LimitAudit, audit: &PoolAudit, at: usize) -> Vec<String> {
    let unit = &limit.unit;
    let of = |agent: &AgentAudit, rate: &AgentRate| {
        let name = escape::text(&agent.agent).into_owned();
        vec![name, average(unit, rate.average), amount(unit, rate.peak)]
    };
    let name = escape::text(&limit.limit).into_owned();
    let mut rows = vec![vec![name, "average".to_owned(), "peak".to_owned()]];
    let each = audit.agents.iter().take(MAX_ROWS);
    rows.extend(each.filter_map(|agent| Some(of(agent, agent.rates.get(at)?))));
    rows.extend(together(limit));
    rows.extend(share(style, limit));
    figures(style, rows)
}

/// All agents together. Agents that were active at different times have averages that add up to
/// more than the peak; that sum is a forecast, so it has a row of its own.
fn together(limit: &LimitAudit) -> Vec<Vec<String>> {
    let unit = &limit.unit;
    let (sum, peak) = (average(unit, limit.average), amount(unit, limit.peak));
    let row = |title: &str, sum: String, peak: String| vec![title.to_owned(), sum, peak];
    if limit.average.tenths <= limit.peak.saturating_mul(10) {
        return vec![row("together", sum, peak)];
    }
    let forecast = row("if all are active at once", sum, String::new());
    vec![row("together", String::new(), peak), forecast]
}

/// The sums as a share of the quota. A bucket may pass its burst in addition in a period.
fn share(style: Style, limit: &LimitAudit) -> Option<Vec<String>> {
    let part = |percent: u64, part: u64, whole: u64| {
        let role = match percent {
            0..=80 => TextRole::Good,
            81..=100 => TextRole::Warning,
            _ => TextRole::Error,
        };
        style.paint(role, &observe::share(part.into(), whole.into()))
    };
    let (stated, most) = (limit.stated?, limit.peak_stated?);
    let burst = match most == stated {
        true => String::new(),
        false => format!(" (peak: of {} with the burst)", amount(&limit.unit, most)),
    };
    let average = part(limit.average_percent?, limit.average.tenths, stated.saturating_mul(10));
    let title = format!("of the {} stated{burst}", amount(&limit.unit, stated));
    Some(vec![title, average, part(limit.peak_percent?, limit.peak, most)])
}

/// Columns of figures: the first at the left, the others at the right, a title on top.
fn figures(style: Style, mut rows: Vec<Vec<String>>) -> Vec<String> {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    for at in 1..count {
        let cells = rows.iter().filter_map(|row| row.get(at));
        let widest = cells.map(|cell| columns(cell)).max().unwrap_or(0);
        for cell in rows.iter_mut().filter_map(|row| row.get_mut(at)) {
            *cell = format!("{}{cell}", " ".repeat(widest - columns(cell)));
        }
    }
    for cell in rows.first_mut().into_iter().flatten() {
        *cell = style.paint(TextRole::Muted, cell);
    }
    table(2, style.width, &rows)
}

/// An average as people read it: tenths where they matter.
fn average(unit: &str, rate: Rate) -> String {
    match rate.tenths {
        0..1_000 if unit != "usd" => rate.to_string(),
        tenths => amount(unit, tenths.saturating_add(5) / 10),
    }
}

/// Formats a count; zero is left blank.
fn nonzero(count: u64) -> String {
    if count == 0 { String::new() } else { amount("calls", count) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use standpipe::observe::Timestamp;
    use standpipe::observe::journal::{Event, EventData, Usage};

    const PLAIN: Style = Style { colour: false, unicode: true, width: 80 };

    #[test]
    fn figures_stand_under_each_other() {
        let rows = [["", "calls", "waited"], ["blog", "1,200", ""], ["data", "3", "4.2s"]];
        let rows = rows.map(|row| row.map(str::to_owned).to_vec()).to_vec();
        let lines = figures(PLAIN, rows);
        assert_eq!(lines, ["        calls  waited", "  blog  1,200", "  data      3    4.2s"]);
    }

    /// An audit of calls: pool, agent, second, how many.
    fn audit(calls: &[(&str, &str, u64, u32)], idle: &[&str]) -> Audit {
        let at = |second: u64| Timestamp { millis: second * 1_000 };
        let event = |(pool, agent, second, count): &(&str, &str, u64, u32)| {
            let mut usage = Usage::default();
            (usage.agent, usage.from, usage.enforced) = ((*agent).to_owned(), at(*second), true);
            (usage.per_second, usage.calls) = (vec![*count], u64::from(*count));
            Event { at: at(*second), pool: (*pool).to_owned(), what: EventData::Usage(usage) }
        };
        let names = calls.iter().map(|(pool, ..)| *pool).chain(idle.iter().copied());
        let pools = names.map(|name| (name.parse().unwrap(), Ok(None))).collect();
        let events = calls.iter().map(event).collect();
        Audit::of(at(0), at(9_000), BTreeMap::new(), events, pools)
    }

    #[test]
    fn a_sum_that_never_was_is_not_beside_the_peak() {
        let rows = |second: u64| {
            let calls = [("a/b", "blog", 0, 50), ("a/b", "data", second, 40)];
            let shown = text(PLAIN, &audit(&calls, &[]), 60_000, false);
            let rows =
                shown.lines().map(|row| row.split_whitespace().collect::<Vec<_>>().join(" "));
            rows.collect::<Vec<_>>()
        };
        let apart = rows(6_000);
        let at = apart.iter().position(|row| row == "together 50").unwrap();
        assert_eq!(apart[at + 1], "if all are active at once 90", "{apart:?}");
        assert!(rows(6).contains(&"together 90 90".to_owned()));
    }

    #[test]
    fn the_worst_pool_is_first_and_pools_without_records_are_one_line() {
        let calls = [("a/calm", "blog", 0, 1), ("b/calm", "data", 0, 2), ("c/calm", "blog", 0, 4)];
        let idle: Vec<String> = (10..23).map(|at| format!("idle/{at}")).collect();
        let idle: Vec<&str> = idle.iter().map(String::as_str).collect();
        let mut audit = audit(&calls, &idle);
        let mut failure = audit.pools[0].findings[0].clone();
        failure.level = observe::Level::Warning;
        audit.pools[2].findings.push(failure);
        let shown = text(PLAIN, &audit, 60_000, false);
        let at = |words: &str| shown.find(words).unwrap_or_else(|| panic!("{words} in {shown}"));
        let order = ["c/calm", "a/calm", "b/calm", "all pools", "nothing recorded: idle/10, "];
        assert!(order.map(at).is_sorted(), "{shown}");
        assert!(shown.ends_with("idle/19, and 3 more\n"), "{shown}");
        let total = shown.lines().skip_while(|line| *line != "all pools").nth(2).unwrap();
        assert_eq!(total, "  blog      2      5", "{shown}");
    }

    #[test]
    fn a_call_on_two_pools_is_one_call_in_the_sum() {
        let calls = [("a/b", "blog", 0, 2), ("c/d", "blog", 0, 2), ("c/d", "data", 0, 1)];
        let mut audit = audit(&calls, &[]);
        audit.pools[1].agents[0].parts.calls = 2;
        let shown = text(PLAIN, &audit, 60_000, false);
        let total = shown.lines().skip_while(|line| *line != "all pools").nth(2).unwrap();
        assert_eq!(total, "  blog      2      2", "{shown}");
    }

    #[test]
    fn averages_have_tenths_where_they_matter() {
        let shown = |tenths| average("requests", Rate { tenths });
        assert_eq!((shown(3).as_str(), shown(120).as_str()), ("0.3", "12"));
        assert_eq!((shown(999).as_str(), shown(12_345).as_str()), ("99.9", "1,235"));
        assert_eq!(average("usd", Rate { tenths: 15_000_000 }), "$1.50");
    }
}
