//! What a suite found: how many tests passed, which failed, and how to repeat one of them.

/// What a suite found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Report {
    /// Tests that passed.
    pub(crate) passed: u64,
    /// Tests that failed.
    pub(crate) failures: Vec<Failure>,
    /// Short remarks, always shown.
    pub(crate) notes: Vec<String>,
}

/// A test that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// Its name.
    pub(crate) test: String,
    /// What it printed.
    pub(crate) output: String,
    /// The command that runs it again, and nothing else.
    pub(crate) repeat: String,
}

impl Report {
    /// A suite that is one test.
    pub(crate) fn one(suite: &str, passed: bool, output: String) -> Self {
        let mut report = Self::default();
        match passed {
            true => report.pass(),
            false => report.fail(suite, output, &format!("cargo xtask test {suite}")),
        }
        report
    }

    /// Counts one test that passed.
    pub(crate) const fn pass(&mut self) {
        self.passed += 1;
    }

    /// Counts one test that failed.
    pub(crate) fn fail(&mut self, test: &str, output: impl Into<String>, repeat: &str) {
        let (test, repeat) = (test.to_owned(), repeat.to_owned());
        self.failures.push(Failure { test, output: output.into(), repeat });
    }

    /// Counts one test of a suite that can be selected as `suite::test`.
    pub(crate) fn count(&mut self, suite: &str, test: &str, found: Result<(), String>) {
        match found {
            Ok(()) => self.pass(),
            Err(why) => self.fail(test, why, &format!("cargo xtask test '{suite}::{test}'")),
        }
    }

    /// Adds a remark that is shown also when everything passed.
    pub(crate) fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// Adds the counts of another report.
    pub(crate) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failures.extend(other.failures);
        self.notes.extend(other.notes);
    }

    /// How many tests failed.
    pub(crate) fn failed(&self) -> u64 {
        self.failures.len() as u64
    }
}

/// The last lines of an output that has any: what failed stands at the end.
pub(crate) fn last_lines(output: &str, most: usize) -> String {
    let lines: Vec<&str> = output.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(most)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_suite_of_one_test_is_repeated_by_its_name() {
        let report = Report::one("fmt", false, "a.rs".into());
        assert_eq!((report.passed, report.failed()), (0, 1));
        assert_eq!(report.failures[0].repeat, "cargo xtask test fmt");
    }

    #[test]
    fn a_selected_test_is_repeated_alone() {
        let mut report = Report::default();
        report.count("deploy", "alerts", Err("why".into()));
        report.count("deploy", "yaml", Ok(()));
        assert_eq!((report.passed, report.failed()), (1, 1));
        assert_eq!(report.failures[0].repeat, "cargo xtask test 'deploy::alerts'");
    }

    #[test]
    fn the_end_of_an_output_is_kept() {
        assert_eq!(last_lines("one\ntwo\n\nthree\nfour\n", 3), "two\nthree\nfour");
        assert_eq!(last_lines("", 3), "");
    }
}
