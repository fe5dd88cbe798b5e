//! What a suite found: how many tests passed and failed, and what there is to read.

/// What a suite found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Report {
    /// Tests that held.
    pub(crate) passed: u64,
    /// Tests that did not.
    pub(crate) failed: u64,
    /// Short remarks, shown always: what was skipped, what was odd.
    pub(crate) notes: Vec<String>,
    /// Everything there is to read, shown when something failed.
    pub(crate) output: String,
}

impl Report {
    /// A suite that is one test.
    pub(crate) fn one(passed: bool, output: String) -> Self {
        let mut report = Self::default();
        report.count(passed);
        report.output = output;
        report
    }

    /// Counts one test.
    pub(crate) fn count(&mut self, passed: bool) {
        if passed {
            self.passed += 1;
        } else {
            self.failed += 1;
        }
    }

    /// Counts one test that failed, and says why.
    pub(crate) fn fail(&mut self, why: &str) {
        self.failed += 1;
        self.output.push_str(why.trim_end());
        self.output.push('\n');
    }

    /// Adds a remark that is shown also when all is well.
    pub(crate) fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }
}
