//! Words that other programs use for commands and options of this one.
//!
//! They are suggested, never accepted: one thing has one name. `remedy` has other suggestions.

use std::ffi::OsString;

use clap::CommandFactory;
use clap::error::{ContextKind, ErrorKind};

use super::remedy;
use crate::args::Cli;

/// The word, and the command that it means.
const COMMANDS: [(&str, &str); 14] = [
    ("stop", "down"),
    ("start", "up"),
    ("serve", "up"),
    ("daemon", "up"),
    ("list", "status"),
    ("ls", "status"),
    ("ps", "status"),
    ("pools", "status"),
    ("watch", "top"),
    ("logs", "events"),
    ("log", "events"),
    ("exec", "run"),
    ("unpause", "resume"),
    ("version", "--version"),
];

/// The word, and the option that it means where a command has it.
const OPTIONS: [(&str, &str); 6] = [
    ("--agent", "--as"),
    ("--name", "--as"),
    ("--wait", "--timeout"),
    ("--max-wait", "--timeout"),
    ("--rate", "--limit"),
    ("--units", "--cost"),
];

/// Returns the command that a word means.
pub(super) fn command(word: &str) -> Option<&'static str> {
    COMMANDS.iter().find(|(other, _)| *other == word).map(|(_, meant)| *meant)
}

/// Returns the hint for an option that means another one of a command.
pub(super) fn option(command: &str, word: &str) -> Option<String> {
    match (command, word) {
        ("standpipe status", "--watch" | "--follow" | "-w" | "-f") => {
            return Some("`standpipe top` shows the same live".to_owned());
        }
        ("standpipe up", "--verbose" | "-v") => {
            return Some("write --log-level debug".to_owned());
        }
        ("standpipe up", "-d" | "--daemon" | "--background") => {
            return Some("did you mean `--detach`?".to_owned());
        }
        ("standpipe down", "--force" | "--now" | "-f") => {
            let hint = "leave it out, a daemon that has not ended after 15 s is named with its pid";
            return Some(hint.to_owned());
        }
        (_, "--verbose" | "-v") => {
            return Some("`standpipe events` shows what happened, and why calls waited".to_owned());
        }
        _ => {}
    }
    let (_, meant) = OPTIONS.iter().find(|(other, _)| *other == word)?;
    has(command, meant.strip_prefix("--")?).then(|| format!("did you mean `{meant}`?"))
}

/// Returns the option whose name was written with one dash: `-limit`.
pub(super) fn long_option_with_one_dash(
    error: &clap::Error,
    command: &str,
    words: &[OsString],
) -> Option<String> {
    let argument = error.get(ContextKind::InvalidArg)?.to_string();
    let letter = argument.strip_prefix('-').filter(|rest| rest.chars().count() == 1)?;
    let ours = words.split(|word| word == "--").next()?.iter();
    let mut names = ours.filter_map(|word| word.to_str()?.strip_prefix('-')?.split('=').next());
    let name = names.find(|name| name.contains(letter) && has(command, name))?;
    (error.kind() == ErrorKind::UnknownArgument).then(|| name.to_owned())
}

/// Whether a command has a long option.
fn has(command: &str, name: &str) -> bool {
    let top = Cli::command();
    let known = remedy::find(&top, command).into_iter().flat_map(clap::Command::get_arguments);
    known.chain(top.get_arguments()).any(|option| option.get_long() == Some(name))
}
