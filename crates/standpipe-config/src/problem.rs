//! The problems of a configuration file, each with its position and its remedy.

use std::fmt;
use std::path::PathBuf;

/// All problems of the settings, in the order of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// At least one.
    pub problems: Vec<Problem>,
}

/// One problem. `Display` writes `FILE:LINE: what; remedy`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file, if there is one.
    pub file: Option<PathBuf>,
    /// The line, counted from 1.
    pub line: Option<usize>,
    /// What is wrong.
    pub what: String,
    /// What to do about it.
    pub remedy: String,
}

impl From<Problem> for ConfigError {
    fn from(problem: Problem) -> Self {
        Self { problems: vec![problem] }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.problems.iter().enumerate() {
            if at > 0 {
                f.write_str("\n")?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => write!(f, "{}:{line}: ", file.display())?,
            (Some(file), None) => write!(f, "{}: ", file.display())?,
            (None, Some(line)) => write!(f, "line {line}: ")?,
            (None, None) => {}
        }
        write!(f, "{}; {}", self.what, self.remedy)
    }
}

impl std::error::Error for ConfigError {}

impl std::error::Error for Problem {}
