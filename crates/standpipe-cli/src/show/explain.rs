//! `explain` for people: the answer and what to do first, then the admission rule step by step, the
//! limits, and the shares of agents that count in it.

use standpipe::observe::{Denial, Explanation, LimitStatus, Step};
use standpipe::{Refused, escape};

use crate::show::amount::{amount, cost, percent};
use crate::show::duration::length;
use crate::show::reasons::to_do;
use crate::show::style::{Style, TextRole};
use crate::show::table::{sentence, table};
use crate::show::when::{refused, wait_reason, why_and_when};

/// The most waiting calls that are listed.
const MAX_WAITING: usize = 5;

pub(crate) fn text(style: Style, explanation: &Explanation) -> String {
    let takes = cost(explanation.cost.iter().map(|(unit, figure)| (unit.as_str(), *figure)));
    let asks = format!(
        "{} asks {} for {takes} ({})",
        explanation.agent, explanation.pool, explanation.priority
    );
    let mut lines = sentence(0, style.width, &escape::text(&asks));
    lines.extend(sentence(0, style.width, &verdict(style, explanation)));
    lines.extend(hints(explanation).iter().flat_map(|hint| {
        let hint = format!("hint: {hint}");
        sentence(0, style.width, &escape::text(&hint))
    }));
    lines.extend(waiting(style, explanation));
    lines.push(String::new());
    let rows: Vec<_> = explanation.steps.iter().flat_map(|step| rows(style, step)).collect();
    lines.extend(table(2, style.width, &rows));
    lines.extend(limits(style, explanation));
    lines.extend(shares(style, explanation));
    let mut text = lines.join("\n") + "\n";
    for other in &explanation.others {
        let draws = format!("It also draws on {}:", other.pool);
        text.push_str(&format!("\n{}\n\n", escape::text(&draws)));
        text.push_str(&self::text(style, other));
    }
    text
}

/// A step that admits the call is one row; else each denial is one.
fn rows(style: Style, step: &Step) -> Vec<Vec<String>> {
    let row = |at: usize, mark: String, text: String| {
        let first = at == 0;
        let number = if first { format!("{}.", step.number) } else { String::new() };
        vec![number, mark, if first { step.name.to_owned() } else { String::new() }, text]
    };
    if !step.says_no() {
        let passed = style.paint(TextRole::Muted, step.passed);
        return vec![row(0, style.paint(TextRole::Good, "ok"), passed)];
    }
    let noes = step.noes.iter().enumerate().map(|(at, no)| {
        let why = why_and_when(&no.why(), &no.when);
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
            figure(limit.effective),
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
        format!("{units} of {} are kept for the floor of {}", kept.limit, kept.agent)
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

/// The agent's calls that wait already. Their reason may differ from that of a new call.
fn waiting(style: Style, explanation: &Explanation) -> Vec<String> {
    let each = explanation.waiting.iter().take(MAX_WAITING).flat_map(|ticket| {
        let since = length(ticket.waits_ms);
        let (place, why) = (ticket.position, wait_reason(ticket));
        let text =
            format!("A call of this agent has waited for {since} at position {place}: {why}.");
        sentence(0, style.width, &escape::text(&text))
    });
    let mut lines: Vec<String> = each.collect();
    if explanation.waiting.len() > MAX_WAITING {
        lines.push(format!(
            "And {} more; --json shows them all.",
            explanation.waiting.len() - MAX_WAITING
        ));
    }
    lines
}

/// The answer in one sentence: what the deciding rule lacks, and until when.
fn verdict(style: Style, explanation: &Explanation) -> String {
    let why = explanation.why.as_ref().map(|why| escape::text(&reason(explanation, why)).into());
    let why: Option<String> = why;
    match (explanation.verdict.as_str(), why) {
        ("admitted", None) if !explanation.others.is_empty() => {
            let text = format!("{} would admit it now.", explanation.pool);
            style.paint(TextRole::Good, &escape::text(&text))
        }
        ("admitted", None) => style.paint(TextRole::Good, "It would be admitted now."),
        ("admitted", Some(why)) => format!("Shadow mode: it would be admitted; otherwise {why}."),
        ("waits", Some(why)) => style.paint(TextRole::Warning, &format!("It would wait: {why}.")),
        (_, Some(why)) => style.paint(TextRole::Error, &format!("It would be refused: {why}.")),
        (word, None) => format!("It would be {word}."),
    }
}

/// The denial that decides names agents; a refusal alone does not. The instant is that of the whole
/// answer, because rules after the first may last longer.
fn reason(explanation: &Explanation, why: &Refused) -> String {
    let denials = explanation.steps.iter().flat_map(|step| &step.noes);
    let same = |no: &&Denial| no.reason.as_str() == why.reason.as_str() && no.limit == why.limit;
    match denials.into_iter().find(same) {
        Some(no) => why_and_when(&no.why(), &why.when()),
        None => refused(why),
    }
}

/// What to do: about the reason, and to avoid a wait that is forecast.
fn hints(explanation: &Explanation) -> Vec<String> {
    let refused = explanation.why.as_ref().filter(|_| explanation.verdict.as_str() != "admitted");
    let why = refused.and_then(Refused::why);
    let about_reason = why.map(|why| to_do(&why, &explanation.pool));
    let advice = explanation.advice.as_ref().filter(|advice| !advice.try_this.is_empty());
    let advice = advice.map(|advice| advice.sentence());
    about_reason.into_iter().chain(advice).filter(|hint| !hint.is_empty()).collect()
}
