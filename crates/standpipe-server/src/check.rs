//! Checks of the configuration that need this machine: files, variables, and what is built in.
//!
//! `up`, a reload, `config check` and `doctor` share them, so that what one accepts the others do.
//! No message contains a token or a key.

use standpipe::config::{ConfigError, Problem, ProviderSettings, TextError, nearest};
use standpipe::observe::format_ms;
use standpipe::{PoolName, Settings, Span};

use crate::daemon::{Options, address};
use crate::failure::Failure;
use crate::proxy::{BUILT_IN, authority};
use crate::token::Token;

/// What a daemon makes of a configuration.
#[derive(Clone, Debug, Default)]
pub struct Checked {
    /// Why it cannot use the configuration.
    pub errors: Vec<Problem>,
    /// What will fail although it can.
    pub warnings: Vec<Problem>,
    /// There is no file with the token. The file may be where the daemon runs, and not here.
    missing_token: Option<Problem>,
}

/// Checks a configuration for a daemon with these options.
#[must_use]
pub fn check(options: &Options, settings: &Settings) -> Checked {
    let mut checked = read(options, settings).1;
    checked.warnings.extend(checked.missing_token.take());
    checked
}

/// Returns the token of a configuration that a daemon can use, and the warnings.
pub(crate) fn usable(
    options: &Options,
    settings: &Settings,
) -> Result<(Option<Token>, Vec<Problem>), Failure> {
    let (token, Checked { mut errors, warnings, missing_token }) = read(options, settings);
    errors.extend(missing_token);
    if !errors.is_empty() {
        return Err(ConfigError { problems: errors }.into());
    }
    Ok((token, warnings))
}

fn read(options: &Options, settings: &Settings) -> (Option<Token>, Checked) {
    let mut checked = Checked::default();
    let token = token(settings, &mut checked);
    if settings.server.token_file.is_none() {
        checked.errors.extend(without_token(options, settings));
    }
    checked.warnings.extend(store(options, settings));
    checked.warnings.extend(settings.pools.keys().filter_map(|pool| shortened(settings, pool)));
    for (name, provider) in &settings.providers {
        checked.errors.extend(upstream(settings, name, provider));
        checked.warnings.extend(without_pool(settings, name, provider));
        checked.warnings.extend(key(settings, name, provider));
        checked.warnings.extend(ca(settings, name, provider));
        checked.warnings.extend(unprotected_key(settings, name, provider));
    }
    (token, checked)
}

/// A time to live that is stated in vain.
fn shortened(settings: &Settings, pool: &PoolName) -> Option<Problem> {
    let stated = settings.pools.get(pool)?;
    let longest = stated.longest_lease().filter(|longest| stated.lease_ttl > *longest)?;
    let of = |span: Span| format_ms(span.0 / 1_000);
    let what = format!(
        "`lease_ttl` of {} is longer than `longest_lease`: leases end after {}",
        of(stated.lease_ttl),
        of(longest)
    );
    let remedy = "lower lease_ttl, or raise longest_lease".to_owned();
    let problem = settings.problem_at(&["pool", pool.as_str(), "lease_ttl"], what, remedy);
    // No file states the default.
    Some(problem).filter(|problem| problem.line.is_some())
}

/// The token that callers must send.
fn token(settings: &Settings, checked: &mut Checked) -> Option<Token> {
    let file = settings.server.token_file.as_deref()?;
    let at = |(what, remedy): (String, String)| {
        settings.problem_at(&["server", "token_file"], what, remedy)
    };
    checked.warnings.extend(Token::warning(file).map(at));
    let refuse = |wrong| match file.exists() {
        true => checked.errors.push(at(wrong)),
        false => checked.missing_token = Some(at(wrong)),
    };
    Token::read(file).map_err(refuse).ok()
}

/// An address that other machines can reach needs a token.
fn without_token(options: &Options, settings: &Settings) -> Option<Problem> {
    let wanted = address(options, settings);
    if wanted.ip().is_loopback() {
        return None;
    }
    let what = format!("{wanted} is reachable from other machines, but no token is configured");
    let remedy = "create one (openssl rand -hex 32 > token; chmod 600 token) and set it in \
                  standpipe.toml: [server] token_file = \"token\"; or listen on 127.0.0.1";
    match options.listen {
        // The file states nothing wrong.
        Some(_) => Some(Problem { file: None, line: None, what, remedy: remedy.to_owned() }),
        None => Some(settings.problem_at(&["listen"], what, remedy.to_owned())),
    }
}

/// What logs in to the store is missing. Other processes may be elsewhere, and have it.
fn store(options: &Options, settings: &Settings) -> Vec<Problem> {
    let Some(mut store) = settings.store.clone() else { return Vec::new() };
    if let Some(url) = &options.store {
        store = store.at(url.clone());
    }
    if !store.url.is_network() {
        return Vec::new();
    }
    let env = |name: &str| std::env::var(name).ok();
    let unreadable = [store.read_password(&env).err(), store.read_authority().err()];
    let problem = |(key, TextError { what, remedy })| {
        let remedy = format!("{remedy}; without it every call fails with exit code 78");
        settings.problem_at(&["store", key], what, remedy)
    };
    unreadable.into_iter().flatten().map(problem).collect()
}

/// The proxy would not know where to send the calls of this provider.
fn upstream(settings: &Settings, name: &str, provider: &ProviderSettings) -> Option<Problem> {
    let mut built_in = BUILT_IN.iter().map(|(known, _)| *known);
    if provider.upstream.is_some() || built_in.clone().any(|known| known == name) {
        return None;
    }
    let remedy = match nearest(name, built_in.by_ref()) {
        Some(meant) => {
            format!("did you mean [provider.{meant}]? else add upstream = \"https://…\"")
        }
        None => "add upstream = \"https://…\", the URL of its API".to_owned(),
    };
    let what = format!("the provider `{name}` has no `upstream`, and is not a known one");
    Some(settings.problem_at(&["provider", name], what, remedy))
}

/// The proxy would refuse the calls of this provider: no pool has limits for them.
fn without_pool(settings: &Settings, name: &str, provider: &ProviderSettings) -> Option<Problem> {
    let mut calls = provider.calls.iter();
    let has_pools =
        !provider.calls.is_empty() && calls.all(|calls| !calls.counted || calls.pool.is_some());
    if provider.upstream.is_none() || has_pools || !settings.is_unlimited(name) {
        return None;
    }
    let what = format!("no pool has limits for the calls of [provider.{name}]");
    let remedy = format!(
        "add [pool.\"{name}/api\"] with a limit such as requests = \"60/min\"; without it they are \
         refused"
    );
    Some(settings.problem_at(&["provider", name], what, remedy))
}

/// The key that the daemon adds is missing. Another process may have it.
fn key(settings: &Settings, name: &str, provider: &ProviderSettings) -> Option<Problem> {
    if let Some(variable) = &provider.key_env {
        if std::env::var_os(variable).is_some_and(|value| !value.is_empty()) {
            return None;
        }
        let what =
            format!("${variable}, which key_env of [provider.{name}] names, is not set here");
        let remedy = "set it where the daemon is started, which may be elsewhere; without it calls \
                      through the proxy get 500";
        return Some(settings.problem_at(&["provider", name, "key_env"], what, remedy.to_owned()));
    }
    let file = provider.key_file.as_deref()?;
    let error = std::fs::File::open(file).err()?;
    let why = standpipe::escape::plain_io(&error);
    let what = format!("key_file {} cannot be read: {why}", file.display());
    let remedy = "create the file; without it calls through the proxy get 500".to_owned();
    Some(settings.problem_at(&["provider", name, "key_file"], what, remedy))
}

/// The authority of a provider's certificate is missing.
fn ca(settings: &Settings, name: &str, provider: &ProviderSettings) -> Option<Problem> {
    let what = authority(provider.ca.as_deref()?).err()?;
    let remedy = "name the PEM file of the authority that signed the provider's certificate; \
                  without it calls through the proxy get 500"
        .to_owned();
    Some(settings.problem_at(&["provider", name, "ca"], what, remedy))
}

/// Whoever can reach the port could use a key that the daemon adds, so the proxy refuses them.
fn unprotected_key(
    settings: &Settings,
    name: &str,
    provider: &ProviderSettings,
) -> Option<Problem> {
    let key = match (&provider.key_file, &provider.key_env) {
        (Some(_), _) => "key_file",
        (None, Some(_)) => "key_env",
        (None, None) => return None,
    };
    if settings.server.token_file.is_some() {
        return None;
    }
    let what = format!(
        "the daemon adds a key for `{name}`, but no token protects it: callers over TCP, such as \
         those of `standpipe run`, get 403, and only the Unix socket works"
    );
    let remedy = format!("set [server] token_file, or remove {key} and let clients send their key");
    Some(settings.problem_at(&["provider", name, key], what, remedy))
}
