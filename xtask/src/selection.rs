//! What the command line of `cargo xtask test` selects: suites, or one test.

use crate::suites::{self, Suite};

/// What to run.
#[derive(Debug)]
pub(crate) struct Selection {
    /// These suites, in the given order.
    pub(crate) suites: Vec<&'static Suite>,
    /// Only the tests of the suite that this names.
    pub(crate) only: Option<String>,
    /// More cases, longer fuzzing.
    pub(crate) long: bool,
    /// Only lists the suites.
    pub(crate) list: bool,
}

impl Selection {
    /// Reads the arguments behind `cargo xtask test`.
    ///
    /// # Errors
    /// Names the argument that is neither a suite nor a test.
    pub(crate) fn parse(arguments: &[String]) -> Result<Self, String> {
        let mut selection = Self { suites: Vec::new(), only: None, long: false, list: false };
        for argument in arguments {
            match argument.as_str() {
                "--long" => selection.long = true,
                "--list" => selection.list = true,
                name => selection.add(name)?,
            }
        }
        if selection.only.is_some() && selection.suites.len() > 1 {
            return Err("a single test runs alone\nhint: name one test, or only suites".to_owned());
        }
        if selection.suites.is_empty() {
            selection.suites = suites::ALL.iter().collect();
        }
        Ok(selection)
    }

    fn add(&mut self, name: &str) -> Result<(), String> {
        let (first, rest) = name.split_once("::").unwrap_or((name, ""));
        let is_package = first == "xtask" || first.starts_with("standpipe");
        let (suite, only) = if is_package { ("unit", name) } else { (first, rest) };
        let Some(suite) = suites::ALL.iter().find(|known| known.name == suite) else {
            let known: Vec<&str> = suites::ALL.iter().map(|suite| suite.name).collect();
            return Err(format!(
                "there is no suite and no package `{first}`\nhint: the suites are {}; one test is \
                 named as `standpipe-core::module::test`",
                known.join(", ")
            ));
        };
        self.suites.push(suite);
        self.only = Some(only.to_owned()).filter(|only| !only.is_empty()).or(self.only.take());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Selection, String> {
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        Selection::parse(&words)
    }

    fn names(selection: &Selection) -> Vec<&str> {
        selection.suites.iter().map(|suite| suite.name).collect()
    }

    #[test]
    fn no_name_means_every_suite() {
        let selection = parse("--long").unwrap();
        assert_eq!(selection.suites.len(), suites::ALL.len());
        assert!(selection.long && !selection.list);
    }

    #[test]
    fn named_suites_run_in_the_given_order() {
        assert_eq!(names(&parse("unit tidy").unwrap()), ["unit", "tidy"]);
    }

    #[test]
    fn one_test_is_selected_by_package_or_suite() {
        let selection = parse("standpipe-core::props::window_never_over").unwrap();
        assert_eq!(names(&selection), ["unit"]);
        assert_eq!(selection.only.as_deref(), Some("standpipe-core::props::window_never_over"));
        let selection = parse("planted::refund-twice").unwrap();
        assert_eq!(names(&selection), ["planted"]);
        assert_eq!(selection.only.as_deref(), Some("refund-twice"));
        assert!(parse("planted::refund-twice tidy").is_err());
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_list() {
        let error = parse("unti").unwrap_err();
        assert!(error.contains("`unti`") && error.contains("fmt, tidy, clippy"), "{error}");
    }
}
