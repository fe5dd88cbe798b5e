//! Names of tests as documents and tables write them, and whether there is such a test.
//!
//! `package::path` is a test of the workspace, as [`crate::programs`] names it, `planted::name` a
//! planted bug, and `trace::stem` a golden trace.

use std::collections::BTreeSet;

use crate::context::Context;
use crate::planted;
use crate::programs::TestProgram;

/// Every name there is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known(BTreeSet<String>);

impl Known {
    /// All tests of these programs, all planted bugs and all golden traces.
    pub(crate) fn collect(context: &Context, programs: &[TestProgram]) -> Result<Self, String> {
        let mut known = Self::default();
        for program in programs {
            for test in program.tests(context)? {
                known.0.insert(program.reference(&test));
            }
        }
        known.0.extend(planted::table().iter().map(|bug| format!("planted::{}", bug.name)));
        // Without the directory there are no traces, and every reference to one says so.
        for entry in std::fs::read_dir(context.root.join("spec/traces")).into_iter().flatten() {
            let name = entry.map_err(|error| format!("spec/traces: {error}"))?.file_name();
            if let Some(stem) = name.to_string_lossy().strip_suffix(".jsonl") {
                known.0.insert(format!("trace::{stem}"));
            }
        }
        Ok(known)
    }

    /// Whether there is such a test.
    ///
    /// # Errors
    /// Says that there is not, and which one may be meant.
    pub(crate) fn check(&self, reference: &str) -> Result<(), String> {
        if self.0.contains(reference) {
            return Ok(());
        }
        let last = reference.rsplit("::").next().unwrap_or(reference);
        let meant = self.0.iter().find(|known| known.rsplit("::").next() == Some(last));
        let hint = meant.map(|known| format!("; is `{known}` meant?")).unwrap_or_default();
        Err(format!("there is no test `{reference}`{hint}"))
    }

    #[cfg(test)]
    pub(crate) fn of(names: &[&str]) -> Self {
        Self(names.iter().map(|name| (*name).to_owned()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_test_is_answered_with_one_of_the_same_name() {
        let known = Known::of(&["core::props::holds", "trace::order"]);
        assert_eq!(known.check("core::props::holds"), Ok(()));
        assert_eq!(known.check("trace::order"), Ok(()));
        let error = known.check("core::lib::holds").unwrap_err();
        assert!(error.ends_with("is `core::props::holds` meant?"), "{error}");
        assert!(known.check("core::props::other").is_err());
    }
}
