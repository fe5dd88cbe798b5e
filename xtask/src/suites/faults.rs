//! `docs/faults.md` lists every fault of rate limiters once. `tests/faults.toml` has for each the
//! tests that cover it, or the reason why it needs none. Every test that it names exists.

use std::collections::BTreeMap;

use crate::context::Context;
use crate::references::Known;
use crate::report::Report;

pub(super) fn run(context: &Context) -> Result<Report, String> {
    let read = |name: &str| {
        std::fs::read_to_string(context.root.join(name))
            .map_err(|error| format!("cannot read {name}: {error}"))
    };
    let proofs = proofs(&read(PROOFS)?)?;
    Ok(check(&read(PAGE)?, &proofs, &Known::collect(context, context.programs()?)?))
}

const PAGE: &str = "docs/faults.md";
const PROOFS: &str = "tests/faults.toml";
/// The faults are numbered from 1 to this.
const LAST: u32 = 95;
/// How a reason begins when there is no test to name.
const REASONS: [&str; 2] = ["cannot occur:", "not applicable:"];

/// The entries of the file for each fault: more than one if a fault is listed twice.
type Proofs = BTreeMap<String, Vec<Proof>>;

/// What the file has for a fault: the names of its tests, or why it needs none.
#[derive(Clone, Debug, Default)]
struct Proof {
    tests: Vec<String>,
    reason: Option<String>,
}

fn check(page: &str, proofs: &Proofs, known: &Known) -> Report {
    let mut rows: BTreeMap<&str, u32> = BTreeMap::new();
    for id in page.lines().filter_map(row) {
        *rows.entry(id).or_default() += 1;
    }
    let mut report = Report::default();
    for number in 1..=LAST {
        let id = format!("B{number:02}");
        let judged = match rows.remove(id.as_str()).unwrap_or(0) {
            1 => judge(proofs.get(&id).map_or(&[], Vec::as_slice), known)
                .map_err(|why| format!("{PROOFS}: {id}: {why}")),
            count => Err(format!("{PAGE}: {id}: stands in the table {count} times; once is right")),
        };
        report.count("faults", &id, judged);
    }
    let listed = |id: &str| {
        let number = id.strip_prefix('B').and_then(|digits| digits.parse::<u32>().ok());
        number.is_some_and(|number| (1..=LAST).contains(&number) && id == format!("B{number:02}"))
    };
    let stray_rows = rows.into_keys().map(|id| (PAGE, id));
    let stray_entries = proofs.keys().filter(|id| !listed(id)).map(|id| (PROOFS, id.as_str()));
    for (file, id) in stray_rows.chain(stray_entries) {
        let why = format!("{file}: {id}: no such fault; they go from B01 to B{LAST}");
        report.count("faults", id, Err(why));
    }
    report
}

/// The id of a row of the table.
fn row(line: &str) -> Option<&str> {
    let id = line.trim().strip_prefix('|')?.split('|').next()?.trim();
    let digits = id.strip_prefix('B')?;
    (digits.len() >= 2 && digits.bytes().all(|b| b.is_ascii_digit())).then_some(id)
}

/// Reads the file: `[B01]` begins the entry of a fault, which has lists of tests by package or
/// module, or a reason. Only the forms that this file uses are read; any other line is an error.
fn proofs(text: &str) -> Result<Proofs, String> {
    let mut proofs = Proofs::new();
    let mut id = "";
    let mut package = None;
    for (at, line) in text.lines().enumerate() {
        let unexpected = || format!("{PROOFS}:{}: unexpected: {line}", at + 1);
        let quoted = |text: &str| {
            let inner = text.trim().strip_prefix('"')?.strip_suffix('"')?;
            (!inner.contains(['"', '\\'])).then(|| inner.to_owned())
        };
        if let Some(open) = &package {
            if line == "]" {
                package = None;
                continue;
            }
            let name = line.strip_suffix(',').and_then(quoted).ok_or_else(unexpected)?;
            let entry = proofs.get_mut(id).and_then(|entries: &mut Vec<Proof>| entries.last_mut());
            entry.ok_or_else(unexpected)?.tests.push(format!("{open}::{name}"));
        } else if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            id = name;
            proofs.entry(id.to_owned()).or_default().push(Proof::default());
        } else if let Some((key, value)) = line.split_once(" = ") {
            let entry = proofs.get_mut(id).and_then(|entries| entries.last_mut());
            let entry = entry.ok_or_else(unexpected)?;
            match value {
                "[" => package = Some(quoted(key).unwrap_or_else(|| key.to_owned())),
                _ if key == "reason" => entry.reason = Some(quoted(value).ok_or_else(unexpected)?),
                _ => return Err(unexpected()),
            }
        } else if !line.is_empty() && !line.starts_with('#') {
            return Err(unexpected());
        }
    }
    match package {
        Some(_) => Err(format!("{PROOFS}: {id}: the list has no end")),
        None => Ok(proofs),
    }
}

fn judge(proofs: &[Proof], known: &Known) -> Result<(), String> {
    let [proof] = proofs else {
        return Err(format!("has {} entries; one is right", proofs.len()));
    };
    match &proof.reason {
        Some(_) if !proof.tests.is_empty() => Err("has tests and a reason".into()),
        Some(text) => match REASONS.iter().find_map(|word| text.strip_prefix(word)) {
            Some(reason) if !reason.trim().is_empty() => Ok(()),
            Some(_) => Err("the reason is missing".into()),
            None => Err(format!("does not begin with {}", REASONS.join(" or "))),
        },
        None if proof.tests.is_empty() => Err("names no test".into()),
        None => {
            let tests = proof.tests.iter();
            let wrong: Vec<String> = tests.filter_map(|test| known.check(test).err()).collect();
            if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ")) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> String {
        let rows = (1..=LAST).map(|n| format!("| B{n:02} | what |\n"));
        format!("# Faults\n\n| fault | symptom |\n|---|---|\n{}", rows.collect::<String>())
    }

    /// A file in which the same test covers every fault.
    fn file() -> String {
        let entries = (1..=LAST).map(|n| format!("[B{n:02}]\n{TEST}\n"));
        format!("# Tests\n\n{}", entries.collect::<String>())
    }

    const TEST: &str = "core = [\n    \"props::holds\",\n]\n";

    /// The file with something else for B03.
    fn with(entry: &str) -> String {
        file().replace(&format!("[B03]\n{TEST}\n"), entry)
    }

    fn checked(page: &str, file: &str) -> Report {
        check(page, &proofs(file).unwrap(), &Known::of(&["core::props::holds", "trace::order"]))
    }

    fn failures(page: &str, file: &str) -> String {
        let report = checked(page, file);
        assert!(report.failed() > 0, "nothing failed");
        let outputs: Vec<String> = report.failures.into_iter().map(|one| one.output).collect();
        outputs.join("\n")
    }

    #[test]
    fn a_complete_table_passes_and_counts_each_fault() {
        let page = page().replace("| B07 | what |", "| B07 | a \\| b |");
        for entry in [
            "[B03]\nreason = \"cannot occur: no lock\"\n",
            "[B03]\nreason = \"not applicable: no such store\"\n",
            &format!("[B03]\n{TEST}trace = [\n    \"order\",\n]\n"),
        ] {
            let report = checked(&page, &with(entry));
            assert_eq!((report.passed, report.failed()), (u64::from(LAST), 0), "{report:?}");
        }
    }

    #[test]
    fn a_missing_or_doubled_fault_fails() {
        let missing = page().replace("| B74 |", "| C74 |");
        assert!(failures(&missing, &file()).contains("B74: stands in the table 0 times"));
        let twice = page().replace("| B74 |", "| B73 |");
        assert!(failures(&twice, &file()).contains("B73: stands in the table 2 times"));
        let more = format!("{}| B99 | x |\n", page());
        assert!(failures(&more, &file()).contains("docs/faults.md: B99: no such"));
    }

    #[test]
    fn a_missing_or_doubled_entry_fails() {
        assert!(failures(&page(), &with("")).contains("B03: has 0 entries"));
        let twice = format!("{}[B03]\nreason = \"cannot occur: x\"\n", file());
        assert!(failures(&page(), &twice).contains("B03: has 2 entries"));
    }

    #[test]
    fn an_entry_without_a_row_fails() {
        for id in ["B99", "B3", "B0", "fault"] {
            let more = format!("{}[{id}]\nreason = \"cannot occur: x\"\n", file());
            let expected = format!("tests/faults.toml: {id}: no such fault");
            assert!(failures(&page(), &more).contains(&expected));
        }
    }

    #[test]
    fn a_test_that_is_not_there_fails() {
        let file = with("[B03]\ncore = [\n    \"it::gone\",\n]\n");
        assert!(failures(&page(), &file).contains("B03: there is no test `core::it::gone`"));
    }

    #[test]
    fn a_fault_without_test_or_reason_fails() {
        for entry in ["[B03]\n", "[B03]\ncore = [\n]\n"] {
            assert!(failures(&page(), &with(entry)).contains("B03: names no test"));
        }
        let both = with(&format!("[B03]\n{TEST}reason = \"cannot occur: x\"\n"));
        assert!(failures(&page(), &both).contains("B03: has tests and a reason"));
        let hopefully = with("[B03]\nreason = \"hopefully\"\n");
        assert!(failures(&page(), &hopefully).contains("B03: does not begin with"));
        let empty = with("[B03]\nreason = \"not applicable:\"\n");
        assert!(failures(&page(), &empty).contains("B03: the reason is missing"));
    }

    #[test]
    fn a_line_that_is_no_entry_is_an_error() {
        for (text, error) in [
            ("B01\n", "tests/faults.toml:1: unexpected: B01"),
            ("core = [\n]\n", ":1: unexpected"),
            ("[B01]\nreason = no\n", ":2: unexpected"),
            ("[B01]\nwhy = \"cannot occur: x\"\n", ":2: unexpected"),
            ("[B01]\ncore = [\n    it\n]\n", ":3: unexpected"),
            ("[B01]\ncore = [\n", "B01: the list has no end"),
        ] {
            let found = proofs(text).unwrap_err();
            assert!(found.contains(error), "{found}");
        }
    }
}
