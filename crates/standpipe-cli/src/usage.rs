//! Invalid command lines: clap's error page, reduced to an error and a hint.
//!
//! Guarantee: no password of a store URL is repeated.

mod remedy;

use std::ffi::OsString;
use std::io::Write;

use clap::CommandFactory;
use clap::error::{ContextKind, ErrorKind};

use standpipe::config::nearest;

use crate::args::Cli;
use crate::exit::Exit;
use crate::failure::{Message, one_line, split_hint};
use crate::show::style::Style;

/// Prints the requested help or version, or the error.
pub(crate) fn report(error: &clap::Error) -> Exit {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // A closed pipe is no error.
            let _closed = error.print();
            Exit::Ok
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _closed = error.print();
            Exit::Usage
        }
        _ => {
            let page = error.render().to_string();
            let words = crate::invocation::words();
            let command = command(words.iter().cloned());
            let message = match error.get(ContextKind::InvalidSubcommand) {
                Some(word) => unknown_command(&word.to_string(), &command),
                None => message(&page, &command, remedy::of(error, &command, &words)),
            };
            for line in message.lines(Style::of_stderr()) {
                // A closed standard error cannot be reported anywhere.
                let _closed = writeln!(std::io::stderr(), "{line}");
            }
            Exit::Usage
        }
    }
}

/// Returns the command name, as far as the arguments name one.
fn command(words: impl Iterator<Item = OsString>) -> String {
    let mut known = Cli::command();
    let mut name = "standpipe".to_owned();
    for word in words.take_while(|word| word != "--") {
        let Some(below) = known.find_subcommand(&word).cloned() else { continue };
        name = format!("{name} {}", below.get_name());
        known = below;
    }
    name
}

/// The message for a word that is no command: the most similar one, or one of that name below
/// another, such as `store reset` for `reset`.
fn unknown_command(word: &str, below: &str) -> Message {
    let word = cut(word);
    let top = Cli::command();
    let within = below.split(' ').skip(1).try_fold(&top, |known, name| known.find_subcommand(name));
    let known = within.unwrap_or(&top);
    let nested = top.get_subcommands().find_map(|group| {
        let own = group.find_subcommand(&word)?;
        Some(format!("standpipe {} {}", group.get_name(), own.get_name()))
    });
    let names = known.get_subcommands().flat_map(clap::Command::get_name_and_visible_aliases);
    let near = nearest(&word, names);
    let meant = nested.or_else(|| near.map(|near| format!("{below} {near}")));
    let hint = match meant {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("`{below} --help` lists the commands"),
    };
    Message::new(&format!("`{below}` has no command `{word}`"), &hint)
}

/// Turns clap's page into an error and a hint: what is wrong, then what to do and where to read
/// more. A known remedy replaces clap's tips.
fn message(page: &str, command: &str, remedy: Option<String>) -> Message {
    let page = without_store(page);
    let page = page.as_str();
    let body = page.split_once("Usage:").map_or(page, |(body, _)| body);
    let parts = body.split("\n\n").map(joined).filter(|part| !part.is_empty());
    let parts: Vec<String> = parts
        .map(|part| part.trim_start_matches("error: ").trim_start_matches("tip: ").to_owned())
        .filter(|part| !part.starts_with("For more information"))
        .collect();
    let (what, tips) = parts.split_first().map_or(("", [].as_slice()), |(what, tips)| (what, tips));
    // The texts of value parsers end with what to do; clap appends the values that are possible.
    let (what, to_do) = split_hint(what);
    let (what, values) = match what.split_once(" [possible values: ") {
        Some((what, values)) => {
            (what, Some(format!("use one of: {}", values.trim_end_matches(']'))))
        }
        None => (what, None),
    };
    let to_do = Some(redacted(to_do)).filter(|to_do| !to_do.is_empty());
    // Further tips only repeat how to pass the same word as a value.
    let tip = remedy.or_else(|| tips.first().map(|tip| redacted(tip)));
    let more = format!("see `{command} --help`");
    let hint: Vec<String> = to_do.into_iter().chain(tip).chain(values).chain([more]).collect();
    Message::new(&redacted(what), &hint.join("; ").replace("?; ", "? "))
}

/// A paragraph on one line.
fn joined(paragraph: &str) -> String {
    one_line(&paragraph.lines().map(str::trim).collect::<Vec<_>>().join(" "))
}

/// Removes a value of `--store` that may contain a password, however malformed.
fn without_store(page: &str) -> String {
    let (begin, end) = ("invalid value '", "' for '--store <URL>'");
    match (page.find(begin), page.find(end)) {
        (Some(at), Some(upto))
            if page.get(at + begin.len()..upto).is_some_and(|value| value.contains(['@', '?'])) =>
        {
            format!("{}***{}", &page[..at + begin.len()], &page[upto..])
        }
        _ => page.to_owned(),
    }
}

/// Truncates long words and removes the credentials of URLs.
fn redacted(text: &str) -> String {
    let words = text.split(' ').map(|word| match word.split_once("://") {
        Some((scheme, rest)) if rest.contains('@') => {
            let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
            format!("{}://***@{}", cut(scheme), cut(host))
        }
        _ => cut(word),
    });
    words.collect::<Vec<_>>().join(" ")
}

fn cut(word: &str) -> String {
    if word.chars().count() <= MAX_WORD {
        return word.to_owned();
    }
    let begin: String = word.chars().take(MAX_WORD / 2).collect();
    // Close a quote that the word opens.
    let quote = word.chars().next_back().filter(|last| word.starts_with(*last));
    let quote = quote.filter(|last| "'`\"".contains(*last)).map(String::from);
    format!("{begin}…{}", quote.unwrap_or_default())
}

/// Longer words are truncated.
const MAX_WORD: usize = 80;

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Style = Style { colour: false, unicode: true, width: 80 };

    fn printed(page: &str, command: &str) -> Vec<String> {
        message(page, command, None).lines(PLAIN).collect()
    }

    #[test]
    fn a_page_becomes_an_error_and_a_hint() {
        let page = "error: unexpected argument '--fro' found\n\n  tip: a similar argument exists: \
                    '--for'\n\nUsage: standpipe pause [OPTIONS] --for <TIME> <POOL>\n\nFor more \
                    information, try '--help'.\n";
        assert_eq!(
            printed(page, "standpipe hold"),
            [
                "error: unexpected argument '--fro' found",
                "hint: a similar argument exists: '--for'; see `standpipe hold --help`",
            ]
        );
    }

    #[test]
    fn long_words_and_passwords_are_not_repeated() {
        let long = redacted(&format!("invalid value '{}' for", "a".repeat(10_000)));
        assert!(long.chars().count() < 100, "{long}");
        assert!(long.ends_with("…' for"), "{long}");
        let secret = redacted("invalid value 'redsi://me:hunter2@host:1' for '--store <URL>'");
        assert_eq!(secret, "invalid value 'redsi://***@host:1' for '--store <URL>'");
        for value in ["me:hunter2@host", "redis://me:hunter 2@host:x", "a'hunter2@b"] {
            let page =
                format!("error: invalid value '{value}' for '--store <URL>': no\n\nUsage: x");
            let text = printed(&page, "standpipe").concat();
            assert!(!text.contains("hunter") && text.contains("'***' for '--store"), "{text}");
        }
    }

    #[test]
    fn the_most_similar_command_is_suggested() {
        let hint = |word: &str, below: &str| {
            let lines: Vec<String> = unknown_command(word, below).lines(PLAIN).collect();
            assert_eq!(lines[0], format!("error: `{below}` has no command `{word}`"));
            lines[1].clone()
        };
        for (word, below, meant) in [
            ("hodl", "standpipe", "standpipe hold"),
            ("reset", "standpipe", "standpipe store reset"),
            ("init", "standpipe", "standpipe config init"),
            ("statsu", "standpipe", "standpipe status"),
            ("relase", "standpipe", "standpipe release"),
            ("chek", "standpipe config", "standpipe config check"),
        ] {
            assert_eq!(hint(word, below), format!("hint: did you mean `{meant}`?"), "{word}");
        }
        assert_eq!(hint("xyzzy", "standpipe"), "hint: `standpipe --help` lists the commands");
    }

    #[test]
    fn the_command_is_found_among_flags() {
        let of = |words: &str| command(words.split(' ').map(OsString::from));
        assert_eq!(of("--json release x"), "standpipe commit");
        assert_eq!(of("config chek"), "standpipe config");
        assert_eq!(of("config check -- show"), "standpipe config check");
        assert_eq!(of("nothing"), "standpipe");
    }

    #[test]
    fn what_to_do_is_in_the_hint() {
        let page =
            "error: invalid value '60/m' for '--limit': \"m\" is no unit; min or ms?\n\nUsage: x";
        assert_eq!(
            printed(page, "standpipe hold"),
            [
                "error: invalid value '60/m' for '--limit': \"m\" is no unit",
                "hint: min or ms? see `standpipe hold --help`",
            ]
        );
        let page = "error: invalid value 'x' for '--kind'\n  [possible values: a, b]\n\nUsage: x";
        assert_eq!(
            printed(page, "standpipe throttle"),
            [
                "error: invalid value 'x' for '--kind'",
                "hint: use one of: a, b; see `standpipe throttle --help`",
            ]
        );
    }

    #[test]
    fn missing_arguments_are_named() {
        let page = "error: the following required arguments were not provided:\n  <POOL>\n\n\
                    Usage: standpipe hold <POOL>\n";
        assert_eq!(
            printed(page, "standpipe hold"),
            [
                "error: the following required arguments were not provided: <POOL>",
                "hint: see `standpipe hold --help`",
            ]
        );
    }
}
