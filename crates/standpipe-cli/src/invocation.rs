//! How this program was started, so that it can start itself again in the background.
//!
//! In the Python package the process is the interpreter: its own arguments say nothing, and the
//! program to start again is `python -m standpipe`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::OnceLock;

/// The command line of this process, set once.
static INVOCATION: OnceLock<Invocation> = OnceLock::new();

/// The arguments of a command line, and the program that runs it.
#[derive(Clone, Debug)]
pub struct Invocation {
    /// The program and the arguments that come before those of `standpipe`.
    program: Option<Vec<OsString>>,
    /// The arguments without the program.
    words: Vec<OsString>,
}

impl Invocation {
    /// Returns how the operating system started this process.
    #[must_use]
    pub fn of_process() -> Self {
        Self { program: None, words: std::env::args_os().skip(1).collect() }
    }

    /// Creates the command line of a program that includes this one. `program` starts it again, for
    /// example `python -m standpipe`.
    #[must_use]
    pub fn within(program: Vec<OsString>, words: Vec<OsString>) -> Self {
        Self { program: Some(program).filter(|words| !words.is_empty()), words }
    }

    /// Returns the arguments with a name of the program before them, as clap takes them.
    pub(crate) fn arguments(&self) -> Vec<OsString> {
        let mut all = vec![OsString::from("standpipe")];
        all.extend(self.words.iter().cloned());
        all
    }

    /// Makes it the command line of this process.
    pub(crate) fn set(self) {
        // A second command line in one process differs in its words only.
        let _first = INVOCATION.set(self);
    }
}

/// Returns the arguments of this process without the program.
pub(crate) fn words() -> Vec<OsString> {
    INVOCATION.get().map(|invocation| invocation.words.clone()).unwrap_or_default()
}

/// Returns the program of this process and the arguments that come before those of `standpipe`.
pub(crate) fn program() -> std::io::Result<(PathBuf, Vec<OsString>)> {
    let stated = INVOCATION.get().and_then(|invocation| invocation.program.clone());
    match stated {
        Some(mut words) => Ok((words.remove(0).into(), words)),
        None => Ok((std::env::current_exe()?, Vec::new())),
    }
}
