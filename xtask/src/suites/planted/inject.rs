//! Puts all planted bugs into the text of the sources, each behind its number.
//!
//! The right expression becomes `(if planted(N) { wrong } else { right })`, so one build holds all
//! bugs and an environment variable chooses one. Several bugs may stand in the same place.

use std::collections::BTreeMap;

use crate::planted::Planted;

/// The variable whose value is the number of the bug that is switched on.
pub(super) const VARIABLE: &str = "STANDPIPE_PLANTED";

const CORE: &str = "crates/standpipe-core/src/";

/// The changed files, by path: every file with a bug, and the core's root with the switch.
pub(super) fn all(
    table: &[Planted],
    read: impl Fn(&str) -> Result<String, String>,
) -> Result<BTreeMap<String, String>, String> {
    let mut files: BTreeMap<String, Vec<(usize, &Planted)>> = BTreeMap::new();
    for (number, bug) in table.iter().enumerate() {
        files.entry(bug.file.to_owned()).or_default().push((number, bug));
    }
    let root = format!("{CORE}lib.rs");
    files.entry(root.clone()).or_default();
    let mut changed = BTreeMap::new();
    let mut problems = Vec::new();
    for (path, bugs) in files {
        let text = read(&path)?;
        match plant(&path, &text, &bugs) {
            Ok(text) => drop(changed.insert(path, text)),
            Err(problem) => problems.push(problem),
        }
    }
    if !problems.is_empty() {
        return Err(problems.join("\n"));
    }
    changed.entry(root).or_default().push_str(&switch());
    Ok(changed)
}

/// The text with these bugs in it.
fn plant(path: &str, text: &str, bugs: &[(usize, &Planted)]) -> Result<String, String> {
    let mut places: BTreeMap<usize, (&str, String)> = BTreeMap::new();
    for (number, bug) in bugs {
        let at = only_place(text, bug)?;
        let (right, choice) = places.entry(at).or_insert((bug.before, String::new()));
        if *right != bug.before {
            return Err(overlap(bug));
        }
        let planted = if path.starts_with(CORE) { "crate" } else { "standpipe_core" };
        choice.push_str(&format!("if {planted}::planted({number}) {{ {} }} else ", bug.after));
    }
    let mut out = String::new();
    let mut end = 0;
    for (at, (right, choice)) in places {
        let Some(between) = text.get(end..at) else {
            let bug = bugs.iter().find(|(_, bug)| bug.before == right);
            return Err(bug.map(|(_, bug)| overlap(bug)).unwrap_or_default());
        };
        out.push_str(between);
        out.push_str(&format!("({choice}{{ {right} }})"));
        end = at + right.len();
    }
    out.push_str(text.get(end..).unwrap_or_default());
    Ok(out)
}

fn only_place(text: &str, bug: &Planted) -> Result<usize, String> {
    let Planted { name, file, before, .. } = bug;
    let places: Vec<usize> = text.match_indices(before).map(|(at, _)| at).collect();
    match places.as_slice() {
        [at] if !before.is_empty() => Ok(*at),
        _ => Err(format!(
            "planted bug `{name}`: `{before}` occurs {} times in {file}; it must occur once",
            places.len()
        )),
    }
}

fn overlap(bug: &Planted) -> String {
    format!("planted bug `{}`: its place in {} overlaps another bug's", bug.name, bug.file)
}

/// What the copy of the core has besides: the switch. In a module, so that names cannot clash.
fn switch() -> String {
    SWITCH.replace("VARIABLE", VARIABLE)
}

const SWITCH: &str = r#"
#[doc(hidden)]
pub use planted_switch::planted;

mod planted_switch {
    extern crate std;
    use std::sync::OnceLock;

    /// Whether the bug of that number is switched on.
    pub fn planted(number: u32) -> bool {
        static CHOSEN: OnceLock<Option<u32>> = OnceLock::new();
        *CHOSEN.get_or_init(|| std::env::var("VARIABLE").ok()?.parse().ok()) == Some(number)
    }
}
"#;

#[cfg(test)]
mod tests {
    use super::*;

    const LIB: &str = "crates/standpipe-core/src/lib.rs";

    const fn bug(file: &'static str, before: &'static str, after: &'static str) -> Planted {
        Planted { name: "bug", file, before, after, caught_by: &["a::b::c"] }
    }

    fn inject(table: &[Planted]) -> Result<BTreeMap<String, String>, String> {
        all(table, |path| {
            Ok(if path == LIB { "//! Core.\n" } else { "let a = b < c;\nlet d = e;\n" }.to_owned())
        })
    }

    #[test]
    fn a_bug_stands_behind_its_number_beside_the_right_expression() {
        let changed = inject(&[
            bug("crates/standpipe-core/src/a.rs", "e", "f + 1"),
            bug("crates/standpipe-core/src/a.rs", "b < c", "b <= c"),
        ]);
        // `e` is also in `let`, so it is not a place.
        assert!(changed.unwrap_err().contains("`e` occurs 3 times"));
        let changed = inject(&[
            bug("crates/standpipe-core/src/a.rs", "= e", "= f"),
            bug("crates/standpipe-core/src/a.rs", "b < c", "b <= c"),
        ]);
        let text = &changed.unwrap()["crates/standpipe-core/src/a.rs"];
        assert!(text.contains("let a = (if crate::planted(1) { b <= c } else { b < c });\n"));
    }

    #[test]
    fn bugs_in_one_place_are_alternatives_in_the_order_of_the_table() {
        let file = "crates/standpipe-store/src/a.rs";
        let changed = inject(&[bug(file, "b < c", "b <= c"), bug(file, "b < c", "true")]).unwrap();
        let wanted = "(if standpipe_core::planted(0) { b <= c } else \
                      if standpipe_core::planted(1) { true } else { b < c })";
        assert!(changed[file].contains(wanted), "{}", changed[file]);
    }

    #[test]
    fn an_expression_that_is_not_there_is_named() {
        let error = inject(&[bug("crates/standpipe-core/src/a.rs", "x", "y")]).unwrap_err();
        assert_eq!(
            error,
            "planted bug `bug`: `x` occurs 0 times in crates/standpipe-core/src/a.rs; \
             it must occur once"
        );
    }

    #[test]
    fn overlapping_places_are_refused() {
        let file = "crates/standpipe-core/src/a.rs";
        for (one, other) in [("b < c", "< c;"), ("b < c", "b < c;"), ("a = b", "b < c")] {
            let error = inject(&[bug(file, one, "x"), bug(file, other, "y")]).unwrap_err();
            assert!(error.contains("overlaps"), "{error}");
        }
    }

    #[test]
    fn the_switch_is_in_the_core_even_when_no_bug_is_in_its_root() {
        let changed = inject(&[bug("crates/standpipe-store/src/a.rs", "b < c", "true")]).unwrap();
        assert!(changed[LIB].starts_with("//! Core.\n"));
        assert!(changed[LIB].contains("pub fn planted(number: u32) -> bool"));
    }
}
