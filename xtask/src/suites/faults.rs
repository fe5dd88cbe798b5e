//! `docs/faults.md` names every fault that other limiters have had, once, with the test that proves
//! that this one has it not, or with the reason why it cannot; and every test it names exists.

use std::collections::BTreeMap;

use crate::context::Context;
use crate::references::Known;
use crate::report::Report;

pub(super) fn run(context: &Context) -> Result<Report, String> {
    let page = std::fs::read_to_string(context.root.join(PAGE))
        .map_err(|error| format!("cannot read {PAGE}: {error}"))?;
    Ok(check(&page, &Known::collect(context, context.programs()?)?))
}

const PAGE: &str = "docs/faults.md";
/// The faults are numbered from 1 to this.
const LAST: u32 = 95;
/// How the third column begins when there is no test to name.
const REASONS: [&str; 2] = ["cannot occur:", "later:"];

fn check(page: &str, known: &Known) -> Report {
    let mut rows: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (id, proof) in page.lines().filter_map(row) {
        rows.entry(id).or_default().push(proof);
    }
    let mut report = Report::default();
    for number in 1..=LAST {
        let id = format!("B{number:02}");
        let found = rows.remove(&id).unwrap_or_default();
        let judged = judge(&found, known);
        report.count("faults", &id, judged.map_err(|why| format!("{PAGE}: {id}: {why}")));
    }
    for id in rows.keys() {
        let why = format!("{PAGE}: {id}: no such fault; they go from B01 to B{LAST}");
        report.count("faults", id, Err(why));
    }
    report
}

/// The id and the third cell of a row of the table.
fn row(line: &str) -> Option<(String, String)> {
    // A bar inside a cell is written `\|`.
    let line = line.trim().strip_prefix('|')?.replace("\\|", "\u{1}");
    let cells: Vec<&str> = line.split('|').map(str::trim).collect();
    let id = *cells.first()?;
    let digits = id.strip_prefix('B')?;
    let is_id = digits.len() >= 2 && digits.bytes().all(|b| b.is_ascii_digit());
    let proof = cells.get(2).copied().unwrap_or_default().replace('\u{1}', "|");
    is_id.then(|| (id.to_owned(), proof))
}

fn judge(proofs: &[String], known: &Known) -> Result<(), String> {
    let [proof] = proofs else {
        return Err(format!("stands in the table {} times; once is right", proofs.len()));
    };
    if let Some(reason) = REASONS.iter().find_map(|word| proof.strip_prefix(word)) {
        let given = !reason.trim().is_empty();
        return if given { Ok(()) } else { Err("the reason is missing".into()) };
    }
    let references: Vec<&str> = proof.split('`').skip(1).step_by(2).collect();
    if references.is_empty() {
        return Err(format!("names no test and does not begin with {}", REASONS.join(" or ")));
    }
    let wrong: Vec<String> =
        references.iter().filter_map(|reference| known.check(reference).err()).collect();
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page on which every fault is proved by the same test.
    fn page() -> String {
        let rows = (1..=LAST).map(|n| format!("| B{n:02} | what | `core::props::holds` |\n"));
        format!("# Faults\n\n| id | fault | test |\n|---|---|---|\n{}", rows.collect::<String>())
    }

    fn failures(page: &str) -> String {
        let report = check(page, &Known::of(&["core::props::holds", "trace::order"]));
        assert!(report.failed() > 0, "nothing failed");
        let outputs: Vec<String> = report.failures.into_iter().map(|one| one.output).collect();
        outputs.join("\n")
    }

    #[test]
    fn a_complete_table_passes_and_counts_each_fault() {
        let known = Known::of(&["core::props::holds", "trace::order"]);
        let page = page().replace(
            "| B07 | what | `core::props::holds` |",
            "| B07 | a \\| b | cannot occur: no lock |",
        );
        let page = page.replace("| B08 | what | `core", "| B08 | what | `trace::order`, `core");
        let report = check(&page, &known);
        assert_eq!((report.passed, report.failed()), (u64::from(LAST), 0), "{report:?}");
    }

    #[test]
    fn a_missing_or_doubled_fault_fails() {
        let missing = page().replace("| B74 |", "| C74 |");
        assert!(failures(&missing).contains("B74: stands in the table 0 times"));
        let twice = page().replace("| B74 |", "| B73 |");
        assert!(failures(&twice).contains("B73: stands in the table 2 times"));
        assert!(failures(&format!("{}| B99 | x | later: x |\n", page())).contains("B99: no such"));
    }

    #[test]
    fn a_test_that_is_not_there_fails() {
        let page = page()
            .replace("| B03 | what | `core::props::holds`", "| B03 | what | `core::it::gone`");
        assert!(failures(&page).contains("B03: there is no test `core::it::gone`"));
    }

    #[test]
    fn a_row_without_test_or_reason_fails() {
        let page =
            page().replace("| B03 | what | `core::props::holds`", "| B03 | what | hopefully");
        assert!(failures(&page).contains("B03: names no test"));
        let page = page.replace("hopefully", "later:");
        assert!(failures(&page).contains("B03: the reason is missing"));
    }
}
