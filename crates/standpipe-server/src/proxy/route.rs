//! The pool of a call, from its provider and model.
//!
//! A pool of the file whose `models` match comes first. Without one, models that share a limit at
//! their provider share a pool: `anthropic/sonnet`, `openai/gpt-4o`, `github/core`.

use std::sync::Arc;

use axum::http::{HeaderMap, StatusCode};
use standpipe::config::{KeyPools, PoolSettings, pattern};
use standpipe::escape::plain_io;
use standpipe::{Pool, PoolName, Request, Settings};

use super::estimate::Facts;
use super::format::Format;
use super::identify::Identified;
use crate::api::lookup;
use crate::http::problem::Problem;
use crate::state::AppState;

/// The classes of Anthropic's models. All models of a class share its limits.
const CLAUDE: [&str; 3] = ["opus", "sonnet", "haiku"];

/// The account of a call whose provider has separate pools for each key: `key-1`, `key-2`.
pub(crate) fn account(
    state: &AppState,
    identified: &Identified,
    headers: &HeaderMap,
) -> Result<Option<String>, Problem> {
    let upstream = &identified.upstream;
    if upstream.keys == KeyPools::Shared || upstream.has_key() {
        return Ok(None);
    }
    // Each machine numbers the keys that it sees, so numbers mean nothing to another one.
    if state.tap().is_remote()? {
        let detail =
            format!("[provider.{}] keys = \"separate\" needs a local store", upstream.name);
        let hint = "name a [provider] for each key instead, each with its own key_file";
        return Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", detail, hint));
    }
    let query = identified.path.split_once('?').map_or("", |(_, query)| query);
    let number = state.key_numbers.number(headers, query).map_err(|error| {
        tracing::error!(error = plain_io(&error), "API keys cannot be distinguished");
        Problem::internal("API keys cannot be distinguished")
    })?;
    Ok(number.map(|number| format!("key-{number}")))
}

/// Finds the pool of a call. A pool that does not exist is created only by a valid call.
pub(crate) async fn find(
    state: &Arc<AppState>,
    identified: &Identified,
    format: Format,
    facts: &Facts,
    account: Option<&str>,
) -> Result<Pool, Problem> {
    let tap = state.tap();
    let provider = identified.upstream.name.as_str();
    let name = match identified.configured_pool() {
        Some(configured) => configured.clone(),
        None => pool_name(tap.settings(), provider, format, facts, &identified.path, account)?,
    };
    if state.known_pools().contains(name.as_str()) {
        return Ok(tap.pool(name.as_str())?);
    }
    let shared = Arc::clone(state);
    let agent = identified.agent.clone();
    let find = move |tap: &standpipe::Standpipe| {
        let (pool, is_new) = lookup::to_reserve(&shared, tap, &name, false)?;
        if is_new {
            pool.check(&Request::by(agent), &[]).blocking()?;
        }
        Ok(pool)
    };
    state.on_store(find).await
}

pub(super) fn pool_name(
    settings: &Settings,
    provider: &str,
    format: Format,
    facts: &Facts,
    path: &str,
    account: Option<&str>,
) -> Result<PoolName, Problem> {
    let model = facts.model.as_deref();
    let configured = |model| configured(settings, provider, model, account);
    if let Some(configured) = model.and_then(configured) {
        return Ok(configured);
    }
    let scope = match (format, model) {
        (Format::GitHubGraphQl, _) => "graphql".to_owned(),
        (Format::GitHub, _) => resource(path).to_owned(),
        (_, Some(model)) => class(provider, model),
        (_, None) => "api".to_owned(),
    };
    match account {
        Some(account) => lookup::name(&format!("{provider}/{scope}/{account}")),
        None => lookup::name(&format!("{provider}/{scope}")),
    }
}

/// The pool of the file whose `models` match best: one of the key's own account, then the longest
/// pattern.
fn configured(
    settings: &Settings,
    provider: &str,
    model: &str,
    account: Option<&str>,
) -> Option<PoolName> {
    let of_provider = settings.pools.iter().filter(|(name, pool)| match &pool.provider {
        Some(own) => own == provider,
        None => name.as_str().split('/').next() == Some(provider),
    });
    // Without separate keys the account of a pool is only a note.
    let is_own = |pool: &PoolSettings| account.is_none() || pool.account.as_deref() == account;
    let usable = of_provider.filter(|(_, pool)| is_own(pool) || pool.account.is_none());
    let patterns = usable.flat_map(|(name, pool)| {
        pool.models.iter().map(move |pattern| (is_own(pool), pattern, name))
    });
    let matching = patterns.filter(|(_, pattern, _)| pattern::matches(pattern, model));
    let best = matching.max_by_key(|(is_own, pattern, _)| (*is_own, pattern.len()));
    best.map(|(_, _, name)| name.clone())
}

/// The models that share a limit, as the scope of a pool.
fn class(provider: &str, model: &str) -> String {
    if provider == "anthropic"
        && let Some(class) = CLAUDE.iter().find(|class| model.contains(**class))
    {
        return (*class).to_owned();
    }
    // A fine-tuned model counts as its base: `ft:gpt-4o-2024-08-06:org::id`.
    let base = model.strip_prefix("ft:").and_then(|rest| rest.split(':').next()).unwrap_or(model);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._:@-".contains(c);
    let plain = |c: char| if is_plain(c) { c } else { '-' };
    without_date(base).chars().take(128).map(plain).collect()
}

/// A model without the date of its version: `gpt-4o-2024-08-06`, `claude-3-20240229`.
fn without_date(model: &str) -> &str {
    let is_date = |text: &str| {
        let digits = text.bytes().filter(u8::is_ascii_digit).count();
        digits == 8 && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
    };
    for length in [10, 8] {
        if let Some((name, date)) =
            model.len().checked_sub(length).and_then(|at| model.split_at_checked(at))
            && is_date(date)
            && name.len() > 1
            && name.ends_with('-')
        {
            return &name[..name.len() - 1];
        }
    }
    model
}

/// The resource that GitHub counts a path under.
fn resource(path: &str) -> &'static str {
    match path.split('?').next().unwrap_or_default() {
        "/search/code" => "code_search",
        search if search.starts_with("/search/") => "search",
        _ => "core",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_that_share_a_limit_share_a_pool() {
        let named = |provider, model: &str| {
            let facts = Facts { model: Some(model.to_owned()), ..Facts::default() };
            let settings = Settings::default();
            pool_name(&settings, provider, Format::OpenAiChat, &facts, "/", None)
                .unwrap()
                .to_string()
        };
        assert_eq!(named("anthropic", "claude-sonnet-4-5-20250929"), "anthropic/sonnet");
        assert_eq!(named("anthropic", "claude-3-5-haiku-latest"), "anthropic/haiku");
        assert_eq!(named("openai", "gpt-4o-2024-08-06"), "openai/gpt-4o");
        assert_eq!(named("openai", "ft:gpt-4o-2024-08-06:acme::abc"), "openai/gpt-4o");
        assert_eq!(named("openai", "gpt-4o-mini"), "openai/gpt-4o-mini");
        assert_eq!(named("openrouter", "qwen/qwen3:free"), "openrouter/qwen-qwen3:free");
        assert_eq!(named("openai", "2024-08-06"), "openai/2024-08-06");
        assert_eq!(named("openai", "模型"), "openai/--");
    }

    #[test]
    fn github_counts_searches_separately() {
        assert_eq!(resource("/search/code?q=x"), "code_search");
        assert_eq!(resource("/search/issues"), "search");
        assert_eq!(resource("/repos/a/b"), "core");
    }
}
