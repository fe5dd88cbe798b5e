//! `explain` for people: the admission rule for one call, step by step.

use standpipe::observe::{Explanation, Step};
use standpipe::{Refused, escape};

use crate::show::amount::{amount, cost};
use crate::show::duration::length;
use crate::show::status::{behind_text, reason_text, wait_reason};
use crate::show::style::{Style, TextRole};
use crate::show::table::{sentence, table};

/// The most waiting calls that are listed.
const MAX_WAITING: usize = 5;

pub(crate) fn text(style: Style, explanation: &Explanation) -> String {
    let takes = cost(explanation.cost.iter().map(|(unit, figure)| (unit.as_str(), *figure)));
    let asks = format!(
        "{} asks {} for {takes} ({})",
        explanation.agent, explanation.pool, explanation.priority
    );
    let mut lines = sentence(0, style.width, &escape::text(&asks));
    lines.push(String::new());
    let rows: Vec<_> = explanation.steps.iter().map(|step| row(style, step)).collect();
    lines.extend(table(2, style.width, &rows));
    lines.push(String::new());
    lines.extend(figures(style, explanation));
    if explanation.zone.as_str() != "green" {
        lines.extend(sentence(0, style.width, &format!("The zone is {}.", explanation.zone)));
    }
    lines.extend(sentence(0, style.width, &verdict(style, explanation)));
    lines.extend(waiting(style, explanation));
    if let Some(advice) = explanation.advice.as_ref().filter(|advice| !advice.try_this.is_empty()) {
        let advice = format!("Advice: {}.", advice.sentence());
        lines.extend(sentence(0, style.width, &escape::text(&advice)));
    }
    let mut text = lines.join("\n") + "\n";
    for other in &explanation.others {
        let draws = format!("It also draws on {}:", other.pool);
        text.push_str(&format!("\n{}\n\n", escape::text(&draws)));
        text.push_str(&self::text(style, other));
    }
    text
}

fn row(style: Style, step: &Step) -> Vec<String> {
    let (mark, ink) = if step.says_no() { ("no", TextRole::Error) } else { ("ok", TextRole::Good) };
    let noes = step.noes.iter().map(|no| {
        let why = behind_text(no.behind.as_deref(), no.limit.as_deref())
            .unwrap_or_else(|| reason_text(no.reason.as_str(), no.limit.as_deref(), no.short_by));
        if no.when.is_empty() { why } else { format!("{why}, {}", no.when) }
    });
    let noes = escape::text(&noes.collect::<Vec<_>>().join("; ")).into_owned();
    let text = if step.says_no() { noes } else { style.paint(TextRole::Muted, step.question) };
    vec![format!("{}.", step.number), style.paint(ink, mark), step.name.to_owned(), text]
}

/// The limits of the call: its cost, and what is left.
fn figures(style: Style, explanation: &Explanation) -> Vec<String> {
    let rows = explanation.limits.iter().map(|limit| {
        let parallel = limit.kind.as_str() == "parallel";
        let takes = explanation.cost.get(&limit.unit).copied().unwrap_or(u64::from(parallel));
        vec![
            escape::text(&limit.limit).into_owned(),
            format!("takes {}", amount(&limit.unit, takes)),
            format!("{} left", amount(&limit.unit, limit.left)),
            format!("of {}", amount(&limit.unit, limit.effective)),
        ]
    });
    let mut lines = table(2, style.width, &rows.collect::<Vec<_>>());
    if !lines.is_empty() {
        lines.push(String::new());
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

fn verdict(style: Style, explanation: &Explanation) -> String {
    let sentence = explanation.why.as_ref().map(Refused::to_string);
    let sentence = sentence.map(|why| escape::text(&why).into_owned());
    match (explanation.verdict.as_str(), sentence) {
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
