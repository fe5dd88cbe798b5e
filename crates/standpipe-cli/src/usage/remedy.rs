//! Remedies for mistakes that clap cannot know: flags of another command, a command without `--`.

use std::ffi::OsString;

use clap::error::{ContextKind, ErrorKind};
use standpipe::PoolName;

/// Returns what to write instead. `command` is as far as `words` name one.
pub(super) fn of(error: &clap::Error, command: &str, words: &[OsString]) -> Option<String> {
    let argument = error.get(ContextKind::InvalidArg).map(ToString::to_string).unwrap_or_default();
    let is_unknown = error.kind() == ErrorKind::UnknownArgument;
    match (command, argument.as_str()) {
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
        _ => {
            let suggested = [ContextKind::SuggestedArg, ContextKind::SuggestedValue];
            let meant = suggested.into_iter().find_map(|kind| error.get(kind))?;
            Some(format!("did you mean `{meant}`?"))
        }
    }
}

/// The first argument that is a port, alone or after `=`.
fn port(words: &[OsString]) -> Option<u16> {
    let values = words.iter().filter_map(|word| word.to_str()?.rsplit('=').next());
    values.into_iter().find_map(|value| value.parse().ok())
}

/// The first argument that is the name of a pool, and not a store or a file.
fn pool(words: &[OsString]) -> Option<String> {
    let ours = words.split(|word| word == "--").next().unwrap_or_default();
    let pairs = ours.windows(2).filter(|pair| pair[0] != "--store" && pair[0] != "--config");
    let mut values = pairs.filter_map(|pair| pair[1].to_str());
    values.find(|word| word.parse::<PoolName>().is_ok()).map(ToOwned::to_owned)
}
