//! Invalid command lines: clap's error as an error and a hint of this program.
//!
//! `usage/describe.rs` has what is wrong, `usage/remedy.rs` what to write instead,
//! `usage/synonyms.rs` the words of other programs. Guarantee: no password of a store URL is
//! repeated.

mod describe;
mod remedy;
mod synonyms;

use std::ffi::OsString;

use clap::CommandFactory;
use clap::error::{ContextKind, ErrorKind};
use standpipe::config::nearest;

use self::describe::Described;
use crate::args::Cli;
use crate::exit::Exit;
use crate::failure::{Failure, Message};
use crate::printer::Printer;

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
            let words = crate::invocation::words();
            let message = message(error, &words);
            // The options of this command line are not known, so the word itself counts.
            let json = words.iter().take_while(|word| *word != "--").any(|word| word == "--json");
            Printer::of_usage(json).error(Failure::usage(message.what(), message.hint()));
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
    let synonym = synonyms::command(&word).filter(|_| below == "standpipe");
    let synonym = synonym.map(|meant| format!("standpipe {meant}"));
    let meant = synonym.or(nested).or_else(|| near.map(|near| format!("{below} {near}")));
    let hint = match meant {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("`{below} --help` lists the commands"),
    };
    Message::new(&format!("`{below}` has no command `{word}`"), &hint)
}

/// What is wrong with the words of a command line, and what to do about it.
fn message(error: &clap::Error, words: &[OsString]) -> Message {
    let command = command(words.iter().cloned());
    if let Some(word) = error.get(ContextKind::InvalidSubcommand) {
        return unknown_command(&word.to_string(), &command);
    }
    if let Some(message) = swallowed_separator(error, &command, words) {
        return message;
    }
    if let Some(word) = synonyms::long_option_with_one_dash(error, &command, words) {
        let what = format!("unknown option `-{word}`");
        return Message::new(&what, &format!("did you mean `--{word}`?"));
    }
    let Described { what, hint } = describe::of(error);
    let remedy = remedy::of(error, &command, words);
    let hint = remedy::of_lease(error, &command).or(hint).or(remedy);
    let hint = hint.unwrap_or_else(|| format!("see `{command} --help`"));
    Message::new(&what, &hint)
}

/// The message for an option that took the `--` before the command as its value.
fn swallowed_separator(error: &clap::Error, command: &str, words: &[OsString]) -> Option<Message> {
    if !matches!(error.kind(), ErrorKind::UnknownArgument | ErrorKind::ValueValidation) {
        return None;
    }
    let end = words.iter().position(|word| word == "--")?;
    let option = words.get(end.checked_sub(1)?)?.to_str()?;
    let top = Cli::command();
    let known = remedy::find(&top, command)?;
    let mut options = known.get_arguments().chain(top.get_arguments());
    let name = option.strip_prefix("--")?;
    let taken = options.find(|own| own.get_long() == Some(name))?;
    let value = taken.get_value_names().filter(|_| taken.is_allow_hyphen_values_set())?.first()?;
    let example = match value.as_str() {
        "TIME" => "30s",
        "N" => "1000",
        other => other,
    };
    Some(Message::new(&format!("{option} needs a value"), &format!("write {option} {example}")))
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
    use clap::Parser;

    use super::*;
    use crate::show::style::Style;

    const PLAIN: Style = Style { colour: false, unicode: true, width: 80 };

    /// The lines that a command line leads to.
    fn printed(line: &str) -> Vec<String> {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let all = std::iter::once(OsString::from("standpipe")).chain(words.iter().cloned());
        let error = Cli::try_parse_from(all).unwrap_err();
        message(&error, &words).lines(PLAIN).collect()
    }

    /// Checks the beginnings of both lines that command lines lead to.
    #[track_caller]
    fn assert_printed(cases: &[(&str, &str, &str)]) {
        let mut wrong = Vec::new();
        for (line, what, hint) in cases {
            let lines = printed(line);
            let (error, hint) = (format!("error: {what}"), format!("hint: {hint}"));
            if !lines[0].starts_with(&error) || !lines[1].starts_with(&hint) {
                wrong.push(format!("{line}: {lines:?}"));
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    #[test]
    fn no_sentence_of_the_parser_is_printed() {
        assert_printed(&[
            ("pause my/a --fro 5s", "unknown option `--fro`", "did you mean `--for`?"),
            ("status a", "invalid value `a` for POOL: not a valid pool name", "a pool is named"),
            ("status a/b c", "unexpected argument `c`", "see `standpipe status --help`"),
            ("hold", "POOL and COMMAND are missing", "for example: standpipe hold my/slots"),
            ("commit", "LEASE is missing", "for example: standpipe commit \"$lease\""),
            ("observe", "POOL and --header are missing", "for example: standpipe observe github/"),
            ("status --json --json", "--json is given twice", "give it once"),
            ("status --json=1", "--json takes no value", "write --json alone"),
            ("status --config=", "--config needs a value", "write --config FILE"),
            (
                "commit x --progress --status 200",
                "--progress cannot be combined with --status",
                "leave one of them out",
            ),
            ("commit x --headers y", "invalid value `y` for --headers", "write `-` to read"),
            ("observe a/b y", "unexpected argument `y`", "write `-` to read the response"),
            (
                "completions tcsh",
                "invalid value `tcsh` for SHELL",
                "use one of: bash, elvish, fish, powershell, zsh",
            ),
            (
                "hold a/b --busy-exit 999 -- x",
                "invalid value `999` for --busy-exit: not an exit code",
                "write a whole number from 0 to 255",
            ),
            (
                "commit x --status 42",
                "invalid value `42` for --status: not an HTTP status",
                "write a whole number from 100 to 599, for example 429",
            ),
            (
                "hold a/b --throttled-match ( -- x",
                "invalid value `(` for --throttled-match: not a valid regular expression",
                "check brackets and backslashes",
            ),
            (
                "reserve a/b --as a/b",
                "invalid value `a/b` for --as: not a valid agent name",
                "use 1 to 64 of the characters A-Z a-z 0-9 . _ @ -, for example blog-writer",
            ),
        ]);
    }

    #[test]
    fn no_sentence_about_a_value_is_the_parsers() {
        assert_printed(&[
            (
                "up --listen foo",
                "invalid value `foo` for --listen: not an address with a port",
                "write for example 127.0.0.1:8377",
            ),
            (
                "reserve a/b --limit requests=60/m",
                "invalid value `requests=60/m` for --limit: `m` is not a unit of time",
                "write 60/min or 60/ms",
            ),
            ("reserve a/b --timeout 5m", "invalid value `5m` for --timeout", "write 5min or 5ms"),
            (
                "reserve a/b --timeout 1h30m",
                "invalid value `1h30m` for --timeout: it has several units",
                "a duration has one unit, write 90min",
            ),
            (
                "reserve a/b --cost \"\"",
                "invalid value `\"\"` for --cost: it is not a cost",
                "write unit=amount",
            ),
            (
                "reserve a/b --limit requests=5/min,burst",
                "invalid value `requests=5/min,burst` for --limit: the option `burst` has no value",
                "write for example burst=10",
            ),
            (
                "top --daemon foo",
                "invalid value `foo` for --daemon: not the address of a daemon",
                "write http://127.0.0.1:8377 or",
            ),
        ]);
    }

    #[test]
    fn a_hint_works_when_it_is_followed() {
        assert_printed(&[
            // The value is named once.
            (
                "reserve a/b --timeout soon",
                "invalid value `soon` for --timeout: it is not a duration",
                "write for example 500ms",
            ),
            // What was given stays in the example.
            ("store move my/x", "--to is missing", "for example: standpipe store move my/x --to"),
            ("store move", "--to is missing", "for example: standpipe store move --to file:/"),
            ("observe my/x", "--header is missing", "give --header, --status, or `-` to read"),
            // An option that would take the `--` of the command.
            ("hold my/s --timeout -- true", "--timeout needs a value", "write --timeout 30s"),
            ("hold my/s --bytes -- true", "--bytes needs a value", "write --bytes 1000"),
            // The path of a command is not a pool.
            (
                "hold ./build.sh --limit parallel=2 -- make all",
                "invalid value `./build.sh` for POOL: it is a path",
                "name the pool first, for example: standpipe hold my/slots -- make all",
            ),
            (
                "hold ../../etc",
                "invalid value `../../etc` for POOL: it is a path",
                "name the pool first, for example: standpipe hold my/slots -- ../../etc",
            ),
            ("hold a/../b -- x", "invalid value `a/../b` for POOL: it is a path", "name the pool"),
            ("status /x/y", "invalid value `/x/y` for POOL: it is a path", "a pool is named"),
            ("hold a/b --also ./c -- x", "invalid value `./c` for --also: it is a path", ""),
            // The words of other programs.
            ("status --watch", "unknown option `--watch`", "`standpipe top` shows the same live"),
            ("hold a/b --agent x -- y", "unknown option `--agent`", "did you mean `--as`?"),
            ("hold a/b --name x -- y", "unknown option `--name`", "did you mean `--as`?"),
            ("pause my/tt 5min", "unexpected argument `5min`", "write --for 5min"),
            ("commit x y", "unexpected argument `y`", "run it once for each lease"),
            (
                "cancel x --used requests=1",
                "unknown option `--used`",
                "a cancelled call used nothing",
            ),
            ("hold a/b --wait 5s -- y", "unknown option `--wait`", "did you mean `--timeout`?"),
            ("status --verbose", "unknown option `--verbose`", "`standpipe events` shows what"),
            ("up --verbose", "unknown option `--verbose`", "write --log-level debug"),
            (
                "hold a/b -limit parallel=2 -- y",
                "unknown option `-limit`",
                "did you mean `--limit`?",
            ),
        ]);
    }

    #[test]
    fn a_word_in_the_wrong_shape_has_the_right_one_in_the_hint() {
        let throttle = "throttle lease1_UJONRQAc5gJI8HLgAAAAAAAAAAJteS9yYXRl";
        assert_printed(&[
            ("events my/x", "unexpected argument `my/x`", "write --pool my/x"),
            (
                "status --pool my/x",
                "unknown option `--pool`",
                "leave --pool out, write: standpipe status my/x",
            ),
            (
                "reserve my/x -- make all",
                "unexpected argument `make`",
                "`reserve` runs no command, write: standpipe hold my/x -- make",
            ),
            ("reserve a/b c/d", "unexpected argument `c/d`", "write --also c/d"),
            ("hold a/b c/d -- true", "unexpected argument `c/d`", "write --also c/d"),
            (
                "hold a/b --parallel 5 -- x",
                "unknown option `--parallel`",
                "write --limit parallel=5",
            ),
            (
                "reserve a/b --requests=9/s",
                "unknown option `--requests`",
                "write --limit requests=9/s",
            ),
            ("up -d", "unknown option `-d`", "did you mean `--detach`?"),
            (
                throttle,
                "invalid value `lease1_",
                "name its pool too: standpipe throttle my/rate --lease lease1_",
            ),
            ("down --force", "unknown option `--force`", "leave it out"),
        ]);
    }

    #[test]
    fn long_words_and_passwords_are_not_repeated() {
        let long = printed(&format!("status {}", "a".repeat(10_000)));
        assert!(long[0].chars().count() < 120 && long[0].contains("…`"), "{long:?}");
        let secret = redacted("invalid value 'redsi://me:hunter2@host:1' for '--store <URL>'");
        assert_eq!(secret, "invalid value 'redsi://***@host:1' for '--store <URL>'");
        for value in ["me:hunter2@host", "redis://me:hunter@2@host:x", "a'hunter2@b"] {
            let text = printed(&format!("status --store {value}")).concat();
            assert!(!text.contains("hunter") && text.contains("`***` for --store"), "{text}");
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
            ("stop", "standpipe", "standpipe down"),
            ("start", "standpipe", "standpipe up"),
            ("serve", "standpipe", "standpipe up"),
            ("list", "standpipe", "standpipe status"),
            ("pools", "standpipe", "standpipe status"),
            ("logs", "standpipe", "standpipe events"),
            ("version", "standpipe", "standpipe --version"),
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
}
