//! `[provider.NAME]` and `[server]`: how providers are reached, and how the daemon is.
//!
//! Keys are named by file or variable, never written down here, and no message repeats what was.

use std::path::PathBuf;

use super::reader::{Item, Reader};
use super::text::quoted;

/// How a provider is reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProviderSettings {
    /// Where its API is, without user or password.
    pub upstream: Option<String>,
    /// The file that holds the key.
    pub key_file: Option<PathBuf>,
    /// The environment variable that holds the key.
    pub key_env: Option<String>,
    /// A certificate authority of its own.
    pub ca: Option<PathBuf>,
}

/// How the daemon is reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerSettings {
    /// The file that holds the token clients have to show.
    pub token_file: Option<PathBuf>,
    /// A Unix socket beside the address.
    pub socket: Option<PathBuf>,
}

/// The keys of `[provider.NAME]`.
pub(super) const KEYS: [&str; 4] = ["upstream", "key_file", "key_env", "ca"];
/// The keys of `[server]`.
pub(super) const SERVER_KEYS: [&str; 2] = ["token_file", "socket"];

/// The name of a provider, as a value.
pub(super) fn name(reader: &mut Reader<'_>, item: &Item<'_>) -> Option<String> {
    let text = reader.text(item)?;
    match check_name(text) {
        Ok(()) => Some(text.to_owned()),
        Err(remedy) => {
            let what = format!("{} is not the name of a provider", quoted(text));
            reader.wrong_at(item, what, remedy);
            None
        }
    }
}

/// Why a text is not the name of a provider, as a remedy.
pub(super) fn check_name(name: &str) -> Result<(), &'static str> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"._:@-".contains(&b);
    if !(1..=64).contains(&name.len()) || !name.bytes().all(plain) {
        return Err("use 1 to 64 of A-Z a-z 0-9 . _ : @ -");
    }
    let version = name.strip_prefix('v').is_some_and(|number| {
        !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit())
    });
    let taken = ["ui", "as", "metrics", "healthz", "readyz", "openapi.json"];
    if version || taken.contains(&name) {
        return Err("the daemon serves something else under that name; choose another");
    }
    Ok(())
}

/// One provider's table.
pub(super) fn read(reader: &mut Reader<'_>, item: &Item<'_>) -> ProviderSettings {
    let mut provider = ProviderSettings::default();
    for entry in reader.entries(item) {
        match entry.key {
            "upstream" => provider.upstream = upstream(reader, &entry),
            "key_file" => provider.key_file = reader.path(&entry),
            "key_env" => provider.key_env = variable(reader, &entry),
            "ca" => provider.ca = reader.path(&entry),
            _ => reader.unknown(&entry, &KEYS, "in a provider"),
        }
    }
    if provider.key_file.is_some() && provider.key_env.is_some() {
        reader.wrong_at(item, "has key_file and key_env", "keep one of them");
    }
    provider
}

/// The server's table.
pub(super) fn read_server(reader: &mut Reader<'_>, item: &Item<'_>) -> ServerSettings {
    let mut server = ServerSettings::default();
    for entry in reader.entries(item) {
        match entry.key {
            "token_file" => server.token_file = reader.path(&entry),
            "socket" => server.socket = reader.path(&entry),
            _ => reader.unknown(&entry, &SERVER_KEYS, "in [server]"),
        }
    }
    server
}

fn upstream(reader: &mut Reader<'_>, item: &Item<'_>) -> Option<String> {
    let text = reader.text(item)?;
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let Some(rest) = rest else {
        let remedy = "write a URL, for example \"https://api.example.com\"";
        reader.wrong_at(item, "is not a URL of http or https", remedy);
        return None;
    };
    let plain = rest.bytes().all(|b| b.is_ascii_graphic()) && text.len() <= 2_048;
    let has_host = !rest.is_empty() && !rest.starts_with(['/', ':']);
    if !plain || !has_host || rest.contains(['@', '?', '#']) {
        let what = "has no host, or a user, query or odd characters";
        reader.wrong_at(item, what, "write scheme, host and path only; a key goes in key_file");
        return None;
    }
    Some(text.to_owned())
}

/// The name of an environment variable. What is not one may well be the key itself.
pub(super) fn variable(reader: &mut Reader<'_>, item: &Item<'_>) -> Option<String> {
    let text = reader.text(item)?;
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    let starts_well = text.bytes().next().is_some_and(|b| !b.is_ascii_digit());
    if !starts_well || text.len() > 128 || !text.bytes().all(plain) {
        let remedy = "write the variable's name, for example \"MY_API_KEY\", not the key itself";
        reader.wrong_at(item, "is not the name of an environment variable", remedy);
        return None;
    }
    Some(text.to_owned())
}
