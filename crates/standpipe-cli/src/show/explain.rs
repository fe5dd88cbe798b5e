//! `explain` for people: the answer and what to do first, then the admission rule step by step, the
//! limits, and the shares of agents that count in it.

use standpipe::observe::{Denial, Explanation, LimitStatus, NextReason, Step, Why, reset_if_idle};
use standpipe::{PoolStatus, Reason, Refused, escape};

use crate::show::amount::{amount, cost, counted, percent};
use crate::show::duration::{length, remaining};
use crate::show::local_time::clock;
use crate::show::reasons::{Situation, to_do};
use crate::show::status::{Shown, leases, ramp, unowned_lease};
use crate::show::style::{Style, TextRole};
use crate::show::table::{sentence, table};
use crate::show::when::{beside, denied, gives_up, is_late, refused, stopped, when, why_and_until};

pub(crate) fn text(style: Style, explanation: &Explanation) -> String {
    let mut lines = Vec::new();
    if explanation.holds {
        return kept(style, explanation) + &others(style, explanation);
    }
    if let Some(other) = decides_elsewhere(explanation) {
        lines.extend(answer(style, other));
        lines.extend([String::new(), format!("On {}:", escape::text(&explanation.pool))]);
    }
    lines.extend(answer(style, explanation));
    lines.push(String::new());
    let steps = reached(&explanation.steps).iter();
    let rows: Vec<_> = steps.flat_map(|step| rows(style, explanation, step)).collect();
    lines.extend(table(2, style.width, &rows));
    if !explanation.holders.is_empty() {
        lines.push(String::new());
        lines.extend(leases(style, &explanation.holders));
    }
    lines.extend(limits(style, explanation));
    lines.extend(shares(style, explanation));
    lines.join("\n") + "\n" + &others(style, explanation)
}

/// `1 call waits: crawler (background); …`, for a question that names no agent. Empty if no call
/// waits.
pub(crate) fn others_wait(style: Style, status: &PoolStatus) -> String {
    const MOST: usize = 3;
    let mut agents: Vec<(&str, &str)> = Vec::new();
    for ticket in &status.tickets {
        let agent = (ticket.agent.as_str(), ticket.priority.as_str());
        if !agents.contains(&agent) {
            agents.push(agent);
        }
    }
    let Some((first, _)) = agents.first() else { return String::new() };
    let named = agents.iter().take(MOST).map(|(agent, priority)| match *priority {
        "standard" => (*agent).to_owned(),
        other => format!("{agent} ({other})"),
    });
    let more = agents.len().saturating_sub(MOST);
    let more = (more > 0).then(|| format!("{} more", counted(more as u64, "agent")));
    let names: Vec<String> = named.chain(more).collect();
    let verb = if status.waiting == 1 { "waits" } else { "wait" };
    let text = format!(
        "{} {verb}: {}; `standpipe explain {} --as {first}` shows why",
        counted(status.waiting as u64, "call"),
        names.join(", "),
        status.pool
    );
    let lines = sentence(0, style.width, &escape::text(&text));
    style.paint(TextRole::Warning, &lines.join("\n")) + "\n\n"
}

/// The other pools that the call draws on.
fn others(style: Style, explanation: &Explanation) -> String {
    let each = explanation.others.iter().map(|other| {
        let draws = format!("It also draws on {}:", other.pool);
        format!("\n{}\n\n{}", escape::text(&draws), text(style, other))
    });
    each.collect()
}

/// A call that has its units here, and the pool that it waits on, if that is known.
fn kept(style: Style, explanation: &Explanation) -> String {
    let Explanation { agent, pool, priority, .. } = explanation;
    let takes = cost(explanation.cost.iter().map(|(unit, figure)| (unit.as_str(), *figure)));
    let is_slot = explanation.limits.iter().any(|limit| limit.unit == "parallel");
    let what = if is_slot { "its slot" } else { "its units" };
    let mut texts = vec![format!("A call of {agent} on {pool} ({takes}, {priority}) waits")];
    match explanation.waits_on() {
        Some(other) => {
            let why = other.why.as_ref().map(|why| reason(other, why)).unwrap_or_default();
            let why = escape::text(&why);
            texts.push(style.paint(
                TextRole::Warning,
                &format!("It has {what} on {pool} and waits for {}: {why}.", other.pool),
            ));
            texts.extend(hints(other).into_iter().map(|hint| format!("hint: {hint}")));
        }
        None => texts.push(format!("It has {what} on {pool}.")),
    }
    let lines = texts.iter().flat_map(|text| sentence(0, style.width, text));
    lines.map(|line| line + "\n").collect()
}

/// The other pool that decides about a call which this one would admit.
fn decides_elsewhere(explanation: &Explanation) -> Option<&Explanation> {
    let is_admitted = |one: &Explanation| one.verdict.as_str() == "admitted";
    let mut others = explanation.others.iter().filter(|_| is_admitted(explanation));
    others.find(|other| !is_admitted(other) || other.waits_ms.is_some())
}

/// What is asked, the answer in a sentence, and what to do.
fn answer(style: Style, explanation: &Explanation) -> Vec<String> {
    let mut lines = sentence(0, style.width, &escape::text(&asks(explanation)));
    lines.extend(sentence(0, style.width, &verdict(style, explanation)));
    lines.extend(waiting(style, explanation));
    lines.extend(hints(explanation).iter().flat_map(|hint| {
        let hint = format!("hint: {hint}");
        sentence(0, style.width, &escape::text(&hint))
    }));
    lines
}

/// What is explained: a call that waits, or one that is not made yet.
fn asks(explanation: &Explanation) -> String {
    let takes = cost(explanation.cost.iter().map(|(unit, figure)| (unit.as_str(), *figure)));
    let Explanation { agent, pool, priority, .. } = explanation;
    let place = explanation.why.as_ref().and_then(|why| why.position);
    let place = place.map(|place| format!(" at position {place}")).unwrap_or_default();
    match explanation.waits_ms {
        // It is queued more than once, so how long it has waited is not known.
        Some(_) if explanation.is_of_several() => {
            format!("A call of {agent} on {pool} ({takes}, {priority}) waits{place}")
        }
        Some(ms) => {
            let since = length(ms);
            format!("A call of {agent} on {pool} ({takes}, {priority}) has waited {since}{place}")
        }
        None => format!("{agent} asks {pool} for {takes} ({priority})"),
    }
}

/// The steps that matter: none after the one that refuses the call for good.
fn reached(steps: &[Step]) -> &[Step] {
    let never = |step: &Step| step.noes.iter().any(|no| no.reason.as_str() == "never");
    let count = steps.iter().position(never).map_or(steps.len(), |at| at + 1);
    steps.get(..count).unwrap_or(steps)
}

/// A step that admits the call is one row; else each denial is one. The denial that decides has the
/// instant of the whole answer, as the headline has: one reason, one instant.
fn rows(style: Style, explanation: &Explanation, step: &Step) -> Vec<Vec<String>> {
    let decides = explanation.why.as_ref();
    let row = |at: usize, mark: String, text: String| {
        let first = at == 0;
        let number = if first { format!("{}.", step.number) } else { String::new() };
        vec![number, mark, if first { step.name.to_owned() } else { String::new() }, text]
    };
    // The ledger asks for room when the calls ahead are admitted.
    let is_behind = |other: &Step| other.name == "queue" && other.says_no();
    if !step.says_no() && step.name == "room" && explanation.steps.iter().any(is_behind) {
        let text = "asked when the calls ahead of it are admitted";
        return vec![row(0, "-".to_owned(), style.paint(TextRole::Muted, text))];
    }
    if !step.says_no() {
        let passed = style.paint(TextRole::Muted, step.passed);
        return vec![row(0, style.paint(TextRole::Good, "ok"), passed)];
    }
    // The text about a pause has the return from it.
    let is_paused = step.noes.iter().any(|no| no.returns.is_some());
    let noes = step.noes.iter();
    let noes = noes.filter(|no| !is_paused || no.reason.as_str() != "return_window");
    let noes = noes.enumerate().map(|(at, no)| {
        let why = match decides.filter(|why| is_about(why, no)) {
            Some(deciding) => decided(explanation, deciding, no),
            None => why_and_until(&no.why(), &no.when),
        };
        row(at, style.paint(TextRole::Error, "no"), escape::text(&why).into_owned())
    });
    noes.collect()
}

/// The limits: what the call takes, what is left, and how the usable part comes about.
fn limits(style: Style, explanation: &Explanation) -> Vec<String> {
    if explanation.limits.is_empty() {
        return Vec::new();
    }
    let head = ["limit", "it takes", "left", "usable", "of"].map(str::to_owned).to_vec();
    let rows = explanation.limits.iter().map(|limit| {
        let parallel = limit.kind.as_str() == "parallel";
        let takes = explanation.cost.get(&limit.unit).copied().unwrap_or(u64::from(parallel));
        let figure = |units: u64| amount(&limit.unit, units);
        vec![
            escape::text(&limit.limit).into_owned(),
            figure(takes),
            figure(limit.left),
            figure(Shown::of(limit).usable),
            of_stated(limit),
        ]
    });
    let all: Vec<_> = std::iter::once(head).chain(rows).collect();
    let mut lines = vec![String::new()];
    lines.extend(table(2, style.width, &all));
    lines
}

/// `60, margin 20 %`
fn of_stated(limit: &LimitStatus) -> String {
    let figure = |units: u64| amount(&limit.unit, units);
    let stated = limit.burst.unwrap_or(limit.amount);
    let mut parts = vec![match limit.learned.filter(|learned| *learned < stated) {
        Some(learned) => format!("{} by the provider ({} stated)", figure(learned), figure(stated)),
        None => figure(stated),
    }];
    if let Some(margin) = limit.margin_per_mille.filter(|margin| *margin > 0) {
        parts.push(format!("margin {}", percent(margin)));
    }
    if limit.by_others > 0 {
        parts.push(format!("{} used by others", figure(limit.by_others)));
    }
    if let Some(ramp) = ramp(limit) {
        parts.push(format!("ramp until {} ({})", clock(ramp.until), remaining(ramp.until_ms)));
    }
    parts.join(", ")
}

/// The agent's own use, floor and cap, and what floors of others keep from it.
fn shares(style: Style, explanation: &Explanation) -> Vec<String> {
    let agent = &explanation.agent;
    let own = explanation.shares.iter().map(|own| {
        let figure = |units: u64| amount(&own.unit, units);
        let mut parts = vec![format!("{agent} uses {} of {}", figure(own.used), own.limit)];
        parts.extend(own.floor.map(|floor| format!("its floor is {}", figure(floor))));
        parts.extend(own.cap.map(|cap| format!("its cap is {}", figure(cap))));
        parts.join(", ")
    });
    let kept = explanation.floors.iter().map(|kept| {
        let units = amount(&kept.unit, kept.units);
        let are = if kept.units == 1 { "is" } else { "are" };
        format!("{units} of {} {are} kept for the floor of {}", kept.limit, kept.agent)
    });
    let zone = explanation.zone.as_str();
    let zone = (zone != "green").then(|| format!("the zone is {zone}: little is left"));
    let all = own.chain(kept).chain(zone);
    let mut lines: Vec<String> =
        all.flat_map(|line| sentence(2, style.width, &escape::text(&line))).collect();
    if !lines.is_empty() {
        lines.insert(0, String::new());
    }
    lines
}

/// The agent's other calls that wait.
fn waiting(style: Style, explanation: &Explanation) -> Vec<String> {
    let agent = &explanation.agent;
    let explained = usize::from(explanation.waits_ms.is_some());
    let more = explanation.waiting.len() - explained.min(explanation.waiting.len());
    let text = match (more, explained) {
        (0, _) => return Vec::new(),
        (1, 0) => format!("A call of {agent} waits already."),
        (1, _) => format!("Another call of {agent} waits behind it."),
        (more, 0) => format!("{more} calls of {agent} wait already."),
        (more, _) => format!("{more} more calls of {agent} wait behind it."),
    };
    sentence(0, style.width, &escape::text(&text))
}

/// The answer in one sentence: what the deciding rule lacks, and until when.
fn verdict(style: Style, explanation: &Explanation) -> String {
    let why = explanation.why.as_ref().map(|why| escape::text(&reason(explanation, why)).into());
    let why: Option<String> = why;
    let waits = explanation.waits_ms.is_some();
    let it = if explanation.waiting.is_empty() { "It" } else { "A new call" };
    match (explanation.verdict.as_str(), why) {
        ("admitted", None) if waits => style.paint(TextRole::Good, "It is next."),
        ("admitted", None) if !explanation.others.is_empty() => {
            let text = format!("{} would admit it now.", explanation.pool);
            style.paint(TextRole::Good, &escape::text(&text))
        }
        ("admitted", None) => style.paint(TextRole::Good, &format!("{it} would be admitted now.")),
        ("admitted", Some(why)) => format!("Shadow mode: it would be admitted; otherwise {why}."),
        ("waits", Some(why)) if waits => {
            let late = explanation.waiting.first().map(gives_up).unwrap_or_default();
            style.paint(TextRole::Warning, &format!("It waits: {why}{late}."))
        }
        ("waits", Some(why)) => style.paint(TextRole::Warning, &format!("{it} would wait: {why}.")),
        (_, Some(why)) => style.paint(TextRole::Error, &format!("{it} would be refused: {why}.")),
        (word, None) => format!("{it} would be {word}."),
    }
}

/// The denial that decides names agents; a refusal alone does not. The instant is that of the whole
/// answer, because rules after the first may last longer.
fn reason(explanation: &Explanation, why: &Refused) -> String {
    let mut denials = explanation.steps.iter().flat_map(|step| &step.noes);
    match denials.find(|no| is_about(why, no)) {
        Some(no) => decided(explanation, why, no),
        None => refused(why),
    }
}

/// Describes the denial that decides: one sentence with one instant of admission.
fn decided(explanation: &Explanation, why: &Refused, no: &Denial) -> String {
    if why.is_terminal() {
        return stopped(why);
    }
    if explanation.verdict.as_str() == "refused" && explanation.admission.until.is_some() {
        return format!("{}; ask again {}", no.why(), when(&explanation.admission));
    }
    let next = explanation.next.as_ref();
    let text = denied(no, next, &explanation.admission, explanation.priority.as_str());
    let also: Vec<String> = explanation.others.iter().map(|one| one.pool.to_string()).collect();
    text + &beside(&also, explanation.bound_by.as_deref())
}

/// Whether a denial is the one that decides.
fn is_about(why: &Refused, no: &Denial) -> bool {
    no.reason.as_str() == why.reason.as_str() && no.limit == why.limit
}

/// What to do: about the reason, and to avoid a wait that is forecast.
fn hints(explanation: &Explanation) -> Vec<String> {
    let refused = explanation.why.as_ref().filter(|_| explanation.verdict.as_str() != "admitted");
    let decides = refused.map(|why| {
        let mut denials = explanation.steps.iter().flat_map(|step| &step.noes);
        denials.find(|no| is_about(why, no)).map_or_else(|| why.why(), |no| Some(no.why()))
    });
    let why = decides.flatten();
    // What decides the time is what something can be done about.
    let why = explanation.next.as_ref().filter(|_| why.is_some()).map(NextReason::why).or(why);
    let situation = Situation {
        pool: &explanation.pool,
        priority: explanation.priority.as_str(),
        stopped: &explanation.stopped_holders,
        limits: &explanation.limits,
        from_file: explanation.from_file,
        lacks_two: explanation.next.is_some()
            && refused.is_some_and(|why| why.reason == Reason::Limit),
    };
    if explanation.recovers && refused.is_some() {
        return vec![format!("{}; else wait", reset_if_idle(explanation.pool.as_str()))];
    }
    let late = explanation.waiting.first().filter(|_| explanation.waits_ms.is_some());
    if late.is_some_and(is_late) {
        let agent = &explanation.agent;
        let text = format!(
            "the call of {agent} gives up before its turn: start it with a longer --timeout"
        );
        return vec![text];
    }
    let about_reason =
        why.map(|why| about_slot(explanation, &why).unwrap_or_else(|| to_do(&why, &situation)));
    let advice = explanation.advice.as_ref().filter(|advice| !advice.try_this.is_empty());
    let advice = advice.map(|advice| advice.sentence());
    about_reason.into_iter().chain(advice).filter(|hint| !hint.is_empty()).collect()
}

/// What to do about a slot that no process holds, if the call waits for a slot.
fn about_slot(explanation: &Explanation, why: &Why<'_>) -> Option<String> {
    let is_open = why.limit == Some("parallel") && explanation.stopped_holders.is_empty();
    unowned_lease(&explanation.holders).filter(|_| is_open)
}
