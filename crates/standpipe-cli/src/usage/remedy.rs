//! Remedies for mistakes that clap cannot know: flags of another command, a command without `--`.

use std::ffi::OsString;

use clap::CommandFactory;
use clap::error::{ContextKind, ErrorKind};
use standpipe::config::nearest;
use standpipe::{LeaseId, PoolName, Unit};

use super::{cut, synonyms};
use crate::args::{Cli, parse};

/// Returns what to write instead. `command` is as far as `words` name one.
pub(super) fn of(error: &clap::Error, command: &str, words: &[OsString]) -> Option<String> {
    let argument = error.get(ContextKind::InvalidArg).map(ToString::to_string).unwrap_or_default();
    let is_unknown = error.kind() == ErrorKind::UnknownArgument;
    if is_unknown {
        let meant = synonyms::option(command, &argument);
        if let Some(meant) = meant.or_else(|| shape(command, &argument, words)) {
            return Some(meant);
        }
    }
    match (command, argument.as_str()) {
        ("standpipe hold", "<POOL>" | "[POOL]") if error.kind() == ErrorKind::ValueValidation => {
            let path = error.get(ContextKind::InvalidValue).map(ToString::to_string);
            Some(pool_before(words, &path.unwrap_or_default()))
        }
        (_, "<POOL>" | "[POOL]") if error.kind() == ErrorKind::ValueValidation => {
            Some("a pool is named `provider/scope`, for example my/slots".to_owned())
        }
        ("standpipe hold" | "standpipe run", word) if is_unknown && !word.starts_with('-') => {
            Some("put the command after `--`".to_owned())
        }
        ("standpipe run", "--limit" | "--limits") if is_unknown => Some(
            "limits for `run` belong in standpipe.toml, `standpipe config init` writes one"
                .to_owned(),
        ),
        ("standpipe up", "--port" | "-p") if is_unknown => {
            let port = port(words).unwrap_or(standpipe::Settings::LISTEN.port());
            Some(format!("write --listen 127.0.0.1:{port}"))
        }
        ("standpipe pause", word) if is_unknown && parse::length(word).is_ok() => {
            Some(format!("write --for {word}"))
        }
        ("standpipe commit" | "standpipe cancel", word) if is_unknown && !word.starts_with('-') => {
            Some("run it once for each lease, nothing was changed".to_owned())
        }
        ("standpipe cancel", word) if is_unknown && has("standpipe commit", word) => Some(
            "a cancelled call used nothing, `standpipe commit` settles one that was sent"
                .to_owned(),
        ),
        ("standpipe pause", _) if error.kind() == ErrorKind::MissingRequiredArgument => {
            let pool = pool(words).unwrap_or_else(|| "POOL".to_owned());
            Some(format!("for example: standpipe pause {pool} --for 5min"))
        }
        ("standpipe hold", _) if error.kind() == ErrorKind::MissingRequiredArgument => {
            let pool = pool(words).unwrap_or_else(|| "my/slots".to_owned());
            Some(format!("for example: standpipe hold {pool} --limit parallel=2 -- ./build.sh"))
        }
        ("standpipe run", _) if error.kind() == ErrorKind::MissingRequiredArgument => {
            Some("for example: standpipe run -- python3 my_agent.py".to_owned())
        }
        ("standpipe observe", _)
            if error.kind() == ErrorKind::MissingRequiredArgument && pool(words).is_some() =>
        {
            Some("give --header, --status, or `-` to read a response from stdin".to_owned())
        }
        _ if error.kind() == ErrorKind::MissingRequiredArgument => {
            Some(format!("for example: {}", example(command, pool(words).as_deref())?))
        }
        _ => {
            let meant = similar_option(command, &argument)?;
            Some(format!("did you mean `{meant}`?"))
        }
    }
}

/// The remedy for a word in the wrong shape: a pool with or without an option, a limit as one.
fn shape(command: &str, word: &str, words: &[OsString]) -> Option<String> {
    let has_command = words.iter().any(|word| word == "--");
    let option = word.strip_prefix("--");
    match command {
        "standpipe events" if is_pool(word) => Some(format!("write --pool {word}")),
        "standpipe reserve" | "standpipe hold"
            if is_pool(word) && (has_command || command == "standpipe reserve") =>
        {
            Some(format!("write --also {word}"))
        }
        "standpipe reserve" if has_command && option.is_none() => {
            let pool = pool(words).unwrap_or_else(|| "POOL".to_owned());
            Some(format!("`reserve` runs no command, write: standpipe hold {pool} -- {word}"))
        }
        "standpipe reserve" | "standpipe hold" => {
            let is_own = |unit: &&str| matches!(Unit::named(unit), None | Some(Unit::Other(_)));
            let unit = option.filter(|unit| *unit == "parallel" || !is_own(unit))?;
            let example = if unit == "parallel" { "5" } else { "60/min" };
            let value = value_of(word, words).unwrap_or_else(|| example.to_owned());
            Some(format!("write --limit {unit}={value}"))
        }
        _ if word == "--pool" && takes_pool(command) => {
            let pool = value_of(word, words).unwrap_or_else(|| "POOL".to_owned());
            Some(format!("leave --pool out, write: {command} {pool}"))
        }
        _ => None,
    }
}

/// The value of an option that is not known, after a space or `=`.
fn value_of(option: &str, words: &[OsString]) -> Option<String> {
    let mut words = words.iter().filter_map(|word| word.to_str());
    let own = words.find(|word| word.split('=').next() == Some(option))?;
    let value = own.split_once('=').map(|(_, value)| value).or_else(|| words.next())?;
    (!value.starts_with('-')).then(|| cut(value))
}

/// Whether a command takes a pool without an option.
fn takes_pool(command: &str) -> bool {
    let top = Cli::command();
    let known = find(&top, command).into_iter().flat_map(clap::Command::get_positionals);
    known.into_iter().any(|argument| argument.get_id() == "pool")
}

/// The remedy for a lease in the place of a pool.
pub(super) fn of_lease(error: &clap::Error, command: &str) -> Option<String> {
    let lease: LeaseId = error.get(ContextKind::InvalidValue)?.to_string().parse().ok()?;
    Some(match command {
        "standpipe throttle" | "standpipe observe" => {
            format!("name its pool too: {command} {} --lease {lease}", lease.pool())
        }
        _ => format!("name its pool, `{}`", lease.pool()),
    })
}

/// Whether another command has an option.
fn has(command: &str, option: &str) -> bool {
    let top = Cli::command();
    let known = find(&top, command).into_iter().flat_map(clap::Command::get_arguments);
    known.filter_map(clap::Arg::get_long).any(|long| option.strip_prefix("--") == Some(long))
}

/// `hold` with a pool before a command whose path was given in its place.
fn pool_before(words: &[OsString], path: &str) -> String {
    let given = words.split(|word| word == "--").nth(1).unwrap_or_default();
    let given: Vec<String> = given.iter().map(|word| cut(&word.to_string_lossy())).collect();
    let command = if given.is_empty() { cut(path) } else { given.join(" ") };
    format!("name the pool first, for example: standpipe hold my/slots -- {command}")
}

/// The option of a command that a word may be a misspelling of. clap sees no swapped letters.
fn similar_option(command: &str, word: &str) -> Option<String> {
    let top = Cli::command();
    let known = find(&top, command)?;
    let options = known.get_arguments().chain(top.get_arguments());
    let options: Vec<String> =
        options.filter_map(clap::Arg::get_long).map(|name| format!("--{name}")).collect();
    let near = nearest(word, options.iter().map(String::as_str));
    near.filter(|_| word.starts_with("--")).map(ToOwned::to_owned)
}

/// The command of a name such as `standpipe config check`.
pub(super) fn find<'a>(top: &'a clap::Command, command: &str) -> Option<&'a clap::Command> {
    command.split(' ').skip(1).try_fold(top, |known, name| known.find_subcommand(name))
}

/// The first example on the help page of a command that begins with its name. If a pool was given,
/// it is the first one with a pool, and has the given one.
fn example(command: &str, given: Option<&str>) -> Option<String> {
    let top = Cli::command();
    let page = find(&top, command)?.get_before_help()?.to_string();
    let lines = page.lines().map(|line| line.split(" #").next().unwrap_or(line).trim());
    let mut lines = lines.filter(|line| line.starts_with(command));
    let with_pool = |line: &str| {
        let own = line.split(' ').find(|word| is_pool(word))?;
        Some(line.replacen(own, given?, 1))
    };
    let first = lines.clone().next().map(ToOwned::to_owned);
    lines.find_map(with_pool).or(first)
}

/// Whether a word of a command line is the name of a pool, and not the URL of a store.
fn is_pool(word: &str) -> bool {
    !word.contains(":/") && word.parse::<PoolName>().is_ok()
}

/// The first argument that is a port, alone or after `=`.
fn port(words: &[OsString]) -> Option<u16> {
    let values = words.iter().filter_map(|word| word.to_str()?.rsplit('=').next());
    values.into_iter().find_map(|value| value.parse().ok())
}

/// The first argument that is the name of a pool, and not a store or a file.
fn pool(words: &[OsString]) -> Option<String> {
    let ours = words.split(|word| word == "--").next().unwrap_or_default();
    let is_option = |word: &OsString| word.to_str().is_some_and(|word| word.starts_with("--"));
    let pairs = ours.windows(2).filter(|pair| !is_option(&pair[0]) && !is_option(&pair[1]));
    let mut values = pairs.filter_map(|pair| pair[1].to_str());
    values.find(|word| is_pool(word)).map(ToOwned::to_owned)
}
