//! The admission rule for one call, step by step, for people.

use standpipe::{Explanation, Refused, Step, escape};

use crate::show::amount::{amount, cost};
use crate::show::length::length;
use crate::show::status::{waits_for, why};
use crate::show::style::{Ink, Style};
use crate::show::table::{sentence, table};

/// So many of its waiting calls are told of.
const SHOWN: usize = 5;

pub(crate) fn explanation(style: Style, told: &Explanation) -> String {
    let takes = cost(told.cost.iter().map(|(unit, figure)| (unit.as_str(), *figure)));
    let asks = format!("{} asks {} for {takes} ({})", told.agent, told.pool, told.priority);
    let mut lines = sentence(0, style.width, &escape::text(&asks));
    lines.push(String::new());
    let rows: Vec<_> = told.steps.iter().map(|step| row(style, step)).collect();
    lines.extend(table(2, style.width, &rows));
    lines.push(String::new());
    lines.extend(figures(style, told));
    if told.zone != "green" {
        lines.extend(sentence(0, style.width, &format!("The light is {}.", told.zone)));
    }
    lines.extend(sentence(0, style.width, &verdict(style, told)));
    lines.extend(waiting(style, told));
    if let Some(advice) = told.advice.as_ref().filter(|advice| !advice.try_this.is_empty()) {
        let advice = format!("Advice: {}.", advice.sentence());
        lines.extend(sentence(0, style.width, &escape::text(&advice)));
    }
    lines.join("\n") + "\n"
}

fn row(style: Style, step: &Step) -> Vec<String> {
    let (mark, ink) = if step.says_no() { ("no", Ink::Bad) } else { ("ok", Ink::Good) };
    let noes = step.noes.iter().map(|no| {
        let why = why(no.reason, no.limit.as_deref(), no.short_by);
        if no.when.is_empty() { why } else { format!("{why}, {}", no.when) }
    });
    let noes = escape::text(&noes.collect::<Vec<_>>().join("; ")).into_owned();
    let said = if step.says_no() { noes } else { style.ink(Ink::Dim, step.question) };
    vec![format!("{}.", step.number), style.ink(ink, mark), step.name.to_owned(), said]
}

/// The limits the call goes by: what it takes of what is left.
fn figures(style: Style, told: &Explanation) -> Vec<String> {
    let rows = told.limits.iter().map(|limit| {
        let parallel = limit.kind == "parallel";
        let takes = told.cost.get(&limit.unit).copied().unwrap_or(u64::from(parallel));
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

/// Its calls that wait already: what holds them is not what would hold a new one.
fn waiting(style: Style, told: &Explanation) -> Vec<String> {
    let each = told.waiting.iter().take(SHOWN).flat_map(|ticket| {
        let since = length(ticket.waits_ms);
        let (place, why) = (ticket.position, waits_for(ticket));
        let text = format!("A call of it waits for {since}, at place {place}: {why}.");
        sentence(0, style.width, &escape::text(&text))
    });
    let mut lines: Vec<String> = each.collect();
    if told.waiting.len() > SHOWN {
        lines.push(format!("And {} more; --json shows them all.", told.waiting.len() - SHOWN));
    }
    lines
}

fn verdict(style: Style, told: &Explanation) -> String {
    let sentence = told.why.as_ref().map(Refused::to_string);
    let sentence = sentence.map(|why| escape::text(&why).into_owned());
    match (told.verdict, sentence) {
        ("admitted", None) => style.ink(Ink::Good, "It would be admitted now."),
        ("admitted", Some(why)) => format!("Shadow mode: it would be admitted; otherwise {why}."),
        ("waits", Some(why)) => style.ink(Ink::Short, &format!("It would wait: {why}.")),
        (_, Some(why)) => style.ink(Ink::Bad, &format!("It would be refused: {why}.")),
        (word, None) => format!("It would be {word}."),
    }
}
