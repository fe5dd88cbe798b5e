//! What can go wrong, as people and programs are told: one line that says what is wrong and what to
//! do, a code, and with `--json` a problem object.

use std::io;

use serde_json::{Map, Value, json};
use standpipe::escape;

use crate::exit::Exit;

/// Why a command did not do what it was asked.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The code to end with.
    pub(crate) exit: Exit,
    /// For people, one line per thing that is wrong; none when there is nobody to tell.
    pub(crate) lines: Vec<String>,
    /// For programs.
    pub(crate) problem: Map<String, Value>,
}

impl Failure {
    /// Something is wrong, and this is what to do about it.
    pub(crate) fn new(exit: Exit, kind: &str, what: &str, remedy: &str) -> Self {
        let line = if remedy.is_empty() { what.to_owned() } else { format!("{what}; {remedy}") };
        let mut problem = Map::new();
        problem.insert("type".to_owned(), json!(kind));
        problem.insert("title".to_owned(), json!(title(exit)));
        problem.insert("detail".to_owned(), json!(what));
        problem.insert("hint".to_owned(), json!(remedy));
        Self { exit, lines: vec![one_line(&line)], problem }
    }

    /// The command line cannot be read as it stands.
    pub(crate) fn usage(what: &str, remedy: &str) -> Self {
        Self::new(Exit::Usage, "usage", what, remedy)
    }

    /// The operating system refused something.
    pub(crate) fn system(what: &str, error: &io::Error) -> Self {
        Self::new(Exit::Internal, "internal", &format!("{what}: {error}"), "")
    }

    /// The same, with more to say to programs.
    pub(crate) fn with(mut self, key: &str, value: Value) -> Self {
        self.problem.insert(key.to_owned(), value);
        self
    }

    /// The same, with one more sentence for people.
    pub(crate) fn saying(mut self, sentence: &str) -> Self {
        self.lines.push(one_line(sentence));
        self
    }

    /// The same, ending with another code.
    pub(crate) fn ending_with(mut self, exit: Exit) -> Self {
        self.exit = exit;
        self
    }
}

impl From<io::Error> for Failure {
    /// Output could not be written. Whoever closed the pipe has read enough: no word about it, and
    /// the code of a program that a closed pipe ended.
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self { exit: Exit::Code(141), lines: Vec::new(), problem: Map::new() };
        }
        let what = format!("cannot write the output: {error}");
        Self::new(Exit::Output, "output", &what, "see where standard output goes")
    }
}

const fn title(exit: Exit) -> &'static str {
    match exit {
        Exit::Ok => "ok",
        Exit::Usage => "the command cannot be read",
        Exit::NeverFits => "can never fit",
        Exit::NoLease => "no such lease",
        Exit::Store => "the store cannot be reached",
        Exit::Internal => "something failed here",
        Exit::Output => "the output cannot be written",
        Exit::NotInTime => "not in time",
        Exit::Stopped => "the provider said stop",
        Exit::Config => "the configuration cannot be used",
        Exit::Code(_) => "the command cannot be run",
    }
}

/// Whatever a message holds, it stays on its line and out of the terminal's hands.
pub(crate) fn one_line(text: &str) -> String {
    escape::text(text.trim()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_one_line_with_what_to_do() {
        let failure = Failure::usage("`a\nb` is no\x1b[31m pool", "name it `provider/scope`");
        assert_eq!(failure.lines, [r"`a\nb` is no\u{1b}[31m pool; name it `provider/scope`"]);
        assert_eq!(failure.problem["type"], "usage");
    }

    #[test]
    fn a_closed_pipe_is_nothing_to_talk_about() {
        let failure = Failure::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert!(failure.lines.is_empty());
    }
}
