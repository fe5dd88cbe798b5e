//! A command line that is not one: clap's page of an error as one line, with what to do.

use std::ffi::OsString;
use std::io::Write;

use clap::CommandFactory;
use clap::error::{ContextKind, ErrorKind};

use crate::args::Cli;
use crate::exit::Exit;
use crate::failure::one_line;

/// Prints what was asked for (help, version), or what is wrong.
pub(crate) fn answer(error: &clap::Error) -> Exit {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // Whoever closed the pipe has read enough.
            let _read = error.print();
            Exit::Ok
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _read = error.print();
            Exit::Usage
        }
        _ => {
            let page = error.render().to_string();
            let command = command(std::env::args_os().skip(1));
            let line = line(&page, &command, lacks_dashes(error));
            let _heard = writeln!(std::io::stderr(), "standpipe: {line}");
            Exit::Usage
        }
    }
}

/// The command that was meant, as far as it can be read.
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

/// A command given to `hold` without the `--` before it.
fn lacks_dashes(error: &clap::Error) -> bool {
    let is_hold =
        error.get(ContextKind::Usage).is_some_and(|usage| usage.to_string().contains(" hold "));
    let word = error.get(ContextKind::InvalidArg).map(ToString::to_string).unwrap_or_default();
    is_hold && error.kind() == ErrorKind::UnknownArgument && !word.starts_with('-')
}

/// What clap says up to its usage, and where to read more.
fn line(page: &str, command: &str, lacks_dashes: bool) -> String {
    let page = without_store(page);
    let page = page.as_str();
    let said = page.split_once("Usage:").map_or(page, |(said, _)| said);
    let said = said.split("\n\n").map(joined).filter(|part| !part.is_empty());
    let said: Vec<String> = said
        .map(|part| part.trim_start_matches("error: ").trim_start_matches("tip: ").to_owned())
        .filter(|part| !part.starts_with("For more information"))
        .collect();
    let dashes = if lacks_dashes { "; put the command after `--`" } else { "" };
    format!("{}{dashes}; see `{command} --help`", repeatable(&said.join("; ")))
}

/// A paragraph on one line.
fn joined(paragraph: &str) -> String {
    one_line(&paragraph.lines().map(str::trim).collect::<Vec<_>>().join(" "))
}

/// The same without a value of `--store` that may hold a password, whatever is wrong with it.
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

/// The same with words that can be said aloud: none of them longer than a line, and no password of
/// an address.
fn repeatable(text: &str) -> String {
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
    if word.chars().count() <= LONGEST_WORD {
        return word.to_owned();
    }
    let begin: String = word.chars().take(LONGEST_WORD / 2).collect();
    // What was opened in front of it is closed behind it.
    let quote = word.chars().next_back().filter(|last| word.starts_with(*last));
    let quote = quote.filter(|last| "'`\"".contains(*last)).map(String::from);
    format!("{begin}…{}", quote.unwrap_or_default())
}

/// Longer ones say nothing more.
const LONGEST_WORD: usize = 80;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_becomes_a_line() {
        let page = "error: unexpected argument '--fro' found\n\n  tip: a similar argument exists: \
                    '--for'\n\nUsage: standpipe pause [OPTIONS] --for <TIME> <POOL>\n\nFor more \
                    information, try '--help'.\n";
        assert_eq!(
            line(page, "standpipe hold", false),
            "unexpected argument '--fro' found; a similar argument exists: '--for'; \
             see `standpipe hold --help`"
        );
    }

    #[test]
    fn long_words_and_passwords_are_not_repeated() {
        let long = repeatable(&format!("invalid value '{}' for", "a".repeat(10_000)));
        assert!(long.chars().count() < 100, "{long}");
        assert!(long.ends_with("…' for"), "{long}");
        let secret = repeatable("invalid value 'redsi://me:hunter2@host:1' for '--store <URL>'");
        assert_eq!(secret, "invalid value 'redsi://***@host:1' for '--store <URL>'");
        for value in ["me:hunter2@host", "redis://me:hunter 2@host:x", "a'hunter2@b"] {
            let page =
                format!("error: invalid value '{value}' for '--store <URL>': no\n\nUsage: x");
            let said = line(&page, "standpipe", false);
            assert!(!said.contains("hunter") && said.contains("'***' for '--store"), "{said}");
        }
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
    fn what_is_missing_is_on_the_line() {
        let page = "error: the following required arguments were not provided:\n  <POOL>\n\n\
                    Usage: standpipe hold <POOL>\n";
        assert_eq!(
            line(page, "standpipe hold", false),
            "the following required arguments were not provided: <POOL>; \
             see `standpipe hold --help`"
        );
    }
}
