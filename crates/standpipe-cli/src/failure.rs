//! Why a command failed: error messages for people, a problem object for programs, an exit code.
//!
//! Guarantee: every message is printed as one line `error: …` and at most one line `hint: …`, with
//! control characters escaped. `show/problem.rs` converts the library's errors.

use std::io;

use serde_json::{Map, Value, json};
use standpipe::escape;

use crate::exit::Exit;
use crate::show::style::{Style, TextRole};

/// Why a command failed.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The exit code.
    pub(crate) exit: Exit,
    /// For people. Empty when there is nothing to print, as after a closed pipe.
    pub(crate) messages: Vec<Message>,
    /// For programs, with `--json`. Empty when the output contains it already.
    pub(crate) problem: Map<String, Value>,
}

/// One error: what is wrong, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    what: String,
    /// Empty when there is nothing to suggest.
    hint: String,
}

impl Message {
    pub(crate) fn new(what: &str, hint: &str) -> Self {
        Self { what: one_line(what), hint: one_line(hint) }
    }

    /// Splits a sentence of the library: what follows the first semicolon is the hint.
    pub(crate) fn parse(text: &str) -> Self {
        let (what, hint) = split_hint(text);
        Self::new(what, hint)
    }

    pub(crate) fn what(&self) -> &str {
        &self.what
    }

    /// Returns what to do; empty when there is nothing to suggest.
    pub(crate) fn hint(&self) -> &str {
        &self.hint
    }

    /// Returns the lines to print on standard error.
    pub(crate) fn lines(&self, style: Style) -> impl Iterator<Item = String> {
        let line = |role: TextRole, label: &str, text: &str| {
            Some(format!("{} {text}", style.paint(role, label))).filter(|_| !text.is_empty())
        };
        let hint = line(TextRole::Good, "hint:", &self.hint);
        line(TextRole::Error, "error:", &self.what).into_iter().chain(hint)
    }

    /// Returns both parts on one line, for a view that has only one.
    fn joined(&self) -> String {
        let Self { what, hint } = self;
        if hint.is_empty() { what.clone() } else { format!("{what}; {hint}") }
    }
}

impl Failure {
    /// Creates a failure with one message. `kind` is the `type` of the problem object.
    pub(crate) fn new(exit: Exit, kind: &str, what: &str, hint: &str) -> Self {
        let mut problem = Map::new();
        problem.insert("type".to_owned(), json!(kind));
        problem.insert("title".to_owned(), json!(title(kind, exit)));
        problem.insert("detail".to_owned(), json!(what));
        problem.insert("hint".to_owned(), json!(hint));
        Self { exit, messages: vec![Message::new(what, hint)], problem }
    }

    /// The command line is invalid.
    pub(crate) fn usage(what: &str, hint: &str) -> Self {
        Self::new(Exit::Usage, "usage", what, hint)
    }

    /// A system call failed.
    pub(crate) fn system(what: &str, error: &io::Error) -> Self {
        let what = format!("{what}: {}", escape::plain_io(error));
        Self::new(Exit::Internal, "internal", &what, "")
    }

    /// Ends with an exit code and prints nothing.
    pub(crate) fn silent(exit: Exit) -> Self {
        Self { exit, messages: Vec::new(), problem: Map::new() }
    }

    /// Returns what is wrong, without the hint.
    pub(crate) fn detail(&self) -> &str {
        self.messages.first().map_or("", |message| &message.what)
    }

    /// Replaces what is wrong, also for programs.
    pub(crate) fn with_detail(mut self, what: &str) -> Self {
        if let Some(message) = self.messages.first_mut() {
            message.what = one_line(what);
        }
        self.with("detail", json!(what))
    }

    /// Adds a field to the problem object.
    pub(crate) fn with(mut self, key: &str, value: Value) -> Self {
        self.problem.insert(key.to_owned(), value);
        self
    }

    /// Adds a sentence to the hint of the last message.
    pub(crate) fn with_hint(mut self, sentence: &str) -> Self {
        if let Some(last) = self.messages.last_mut() {
            let hint = if last.hint.is_empty() { "" } else { "; " };
            last.hint.push_str(hint);
            last.hint.push_str(&one_line(sentence));
        }
        self
    }

    /// Changes every hint, also for programs.
    pub(crate) fn map_hint(mut self, change: impl Fn(&str) -> String) -> Self {
        for message in &mut self.messages {
            message.hint = change(&message.hint);
        }
        if let Some(Value::String(hint)) = self.problem.get_mut("hint") {
            *hint = change(hint);
        }
        self
    }

    /// Replaces the exit code.
    pub(crate) const fn with_exit(mut self, exit: Exit) -> Self {
        self.exit = exit;
        self
    }

    /// Returns all messages on one line, for a view that has only one.
    pub(crate) fn joined(&self) -> String {
        self.messages.iter().map(Message::joined).collect::<Vec<_>>().join(" ")
    }
}

impl From<io::Error> for Failure {
    /// The output could not be written. A reader that closed the pipe is no error: nothing is
    /// printed, and the exit code is that of a program ended by SIGPIPE.
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::silent(Exit::Code(141));
        }
        let what = format!("cannot write the output: {}", escape::plain_io(&error));
        Self::new(Exit::Output, "output", &what, "send standard output to another file or disk")
    }
}

/// The type in a few words. A type without words of its own has those of the exit code.
fn title(kind: &str, exit: Exit) -> &'static str {
    match kind {
        "no_daemon" => "no daemon runs",
        "no_pool" => "no such pool",
        "no_limits" => "the pool has no limits",
        "no_lease" => "no such lease",
        "lease_gone" => "the lease has ended",
        "settled" => "the call has been settled",
        "in_use" => "the pool is in use",
        "queue_full" => "a queue is full",
        "daemon" => "the daemon cannot be used",
        "command" => "the command cannot be run",
        "memory" => "the store ends with this process",
        _ => title_of_exit(exit),
    }
}

const fn title_of_exit(exit: Exit) -> &'static str {
    match exit {
        Exit::Ok => "ok",
        Exit::Usage => "the command cannot be read",
        Exit::NeverFits => "can never fit",
        Exit::NoLease => "no such lease",
        Exit::Store => "the store cannot be reached",
        Exit::Internal => "something failed here",
        Exit::Output => "the output cannot be written",
        Exit::NotInTime => "not in time",
        Exit::Stopped => "stopped by the provider",
        Exit::Config => "the configuration cannot be used",
        Exit::Code(_) => "the command cannot be run",
    }
}

/// Splits `what; hint` at the first semicolon.
pub(crate) fn split_hint(text: &str) -> (&str, &str) {
    text.split_once("; ").unwrap_or((text, ""))
}

/// Escapes control characters, so that a message stays on its line and cannot drive the terminal.
pub(crate) fn one_line(text: &str) -> String {
    escape::text(text.trim()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Style = Style { colour: false, unicode: true, width: 80 };

    fn printed(failure: &Failure) -> Vec<String> {
        failure.messages.iter().flat_map(|message| message.lines(PLAIN)).collect()
    }

    #[test]
    fn a_failure_is_an_error_and_a_hint() {
        let failure = Failure::usage("`a\nb` is no\x1b[31m pool", "name it `provider/scope`");
        let lines = [r"error: `a\nb` is no\u{1b}[31m pool", "hint: name it `provider/scope`"];
        assert_eq!(printed(&failure), lines);
        assert_eq!(failure.joined(), r"`a\nb` is no\u{1b}[31m pool; name it `provider/scope`");
        assert_eq!(failure.problem["type"], "usage");
        let more = failure.with_hint("or\nelse");
        assert_eq!(printed(&more)[1], r"hint: name it `provider/scope`; or\nelse");
        assert_eq!(printed(&Failure::usage("it failed", "")), ["error: it failed"]);
        let parse = |style| Message::parse("a; b; c").lines(style).collect::<Vec<_>>();
        assert_eq!(parse(PLAIN), ["error: a", "hint: b; c"]);
        let painted = parse(Style { colour: true, ..PLAIN });
        assert_eq!(painted, ["\x1b[31merror:\x1b[0m a", "\x1b[32mhint:\x1b[0m b; c"]);
    }

    #[test]
    fn a_closed_pipe_prints_nothing() {
        let failure = Failure::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert!(failure.messages.is_empty());
    }
}
