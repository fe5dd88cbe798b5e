//! `config init`: writes a commented configuration file.
//!
//! Guarantee: nothing that works before stops working. A file makes pools that it does not describe
//! an error, so the file describes those in use, or leaves pools open while there are none. An
//! existing file is added to, or kept under another name (`init/target.rs`).

mod target;

use std::collections::BTreeSet;
use std::path::Path;

use clap::ValueEnum;
use serde_json::json;
use standpipe::{Limit, PoolName, Settings, Standpipe};

use crate::args::{Init, Provider};
use crate::commands::CommandResult;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::printer::Printer;
use crate::show::amount::counted;

/// The pool of the example, which is replaced by those in use.
const EXAMPLE_POOL: &str = "\
[pool.\"example/api\"]
requests = \"60/min\"                 # in any minute
parallel = 5                        # at most five calls in flight
";
const CLOSED: &str = "\
# A call on a pool that is not in this file is an error, so that a misspelled name is noticed.
# `true` allows other pools.
#open_pools = false
";
/// While the file describes no pool, every pool must be allowed.
const OPEN: &str = "\
# Calls on pools that are not in this file are allowed. Without this line they are an error, so that
# a misspelled name is noticed. Remove it when the pools that you use are below.
open_pools = true
";
const HEAD: &str = include_str!("providers/head.toml");
const AGENTS: &str = include_str!("providers/agents.toml");

pub(super) fn run(args: &Init, context: &Context, printer: &Printer) -> CommandResult {
    let file = match &args.file {
        Some(file) => file.clone(),
        None => context
            .default_config_file()
            .ok_or_else(|| Failure::usage("$HOME is not set", "name the file: config init FILE"))?,
    };
    target::check(&file)?;
    let old = match args.providers.is_empty() || args.force {
        true => None,
        false => target::existing(&file)?,
    };
    let (text, backup) = match &old {
        Some(old) => match added_to(old, &file, &args.providers)? {
            Some(text) => (text, None),
            None => return nothing_to_add(&file, &args.providers, printer),
        },
        None => {
            let backup = if args.force { target::keep(&file)? } else { None };
            (new_file(&args.providers, &in_use(context)), backup)
        }
    };
    target::write(&file, &text, args.force || old.is_some())?;
    let written = Written { text: &text, old: old.as_deref(), backup: backup.as_deref() };
    report(&file, &written, &args.providers, printer)
}

/// A file that was written, and what was there before.
struct Written<'a> {
    text: &'a str,
    old: Option<&'a str>,
    backup: Option<&'a Path>,
}

/// States what was written, and what changes for pools that are not in the file.
fn report(
    file: &Path,
    &Written { text, old, backup }: &Written<'_>,
    providers: &[Provider],
    printer: &Printer,
) -> CommandResult {
    let name = file.display().to_string();
    if !printer.json {
        printer.line(&name)?;
    }
    let parsed = |text: &str| Settings::parse(text, None, 0).unwrap_or_default();
    let settings = parsed(text);
    let count = settings.pools.len();
    let before = old.map(parsed);
    let wrote = match &before {
        Some(before) if count == before.pools.len() => {
            let known = names(providers);
            format!("added a commented section for {known}; Standpipe learns its limits")
        }
        Some(before) => format!("{} added", counted(count - before.pools.len(), "pool")),
        None if count == 0 => "written".to_owned(),
        None => format!("written with {}", counted(count, "pool")),
    };
    let kept = backup.map(|backup| {
        format!("; the old file, with what was not carried over, is {}", backup.display())
    });
    printer.done(
        &format!("{wrote}{}; change it, then `standpipe config check`", kept.unwrap_or_default()),
        json!({ "file": name, "written": true, "pools": count, "backup": backup }),
    )?;
    let was_open = before.is_none_or(|before| before.has_open_pools());
    if was_open && !settings.has_open_pools() {
        printer.note(
            "calls on pools that are not in the file are errors from now on; `open_pools = true` \
             at its top allows them",
        );
    }
    Ok(Exit::Ok)
}

/// The providers as the command line names them: `openai, github`.
fn names(providers: &[Provider]) -> String {
    let name = |provider: Provider| provider.to_possible_value().map(|v| v.get_name().to_owned());
    sorted(providers).into_iter().filter_map(name).collect::<Vec<_>>().join(", ")
}

fn nothing_to_add(file: &Path, providers: &[Provider], printer: &Printer) -> CommandResult {
    let name = file.display().to_string();
    if !printer.json {
        printer.line(&name)?;
    }
    let known = names(providers);
    let said = format!("nothing to add: the file has what is known about {known} already");
    printer.done(&said, json!({ "file": name, "written": false }))?;
    Ok(Exit::Ok)
}

/// The pools that were used, and their limits. A store that cannot be read has none.
fn in_use(context: &Context) -> Vec<(PoolName, Vec<Limit>)> {
    let read = |tap: &Standpipe| -> Result<Vec<_>, standpipe::Error> {
        let mut pools = Vec::new();
        for name in tap.pools().blocking()? {
            let pool = tap.existing_pool(&name);
            // A pool that a file describes may never have been used.
            if !pool.status().blocking()?.agents.is_empty() {
                let config = pool.config().blocking()?;
                pools.push((name, config.map(|config| config.limits).unwrap_or_default()));
            }
        }
        Ok(pools)
    };
    let pools = context.open().ok().and_then(|tap| read(&tap).ok()).unwrap_or_default();
    // A pool with neither limits nor a provider to learn them from has never been used.
    pools
        .into_iter()
        .filter(|(name, limits)| !Settings::limit_lines(name, limits).is_empty())
        .collect()
}

fn new_file(providers: &[Provider], pools: &[(PoolName, Vec<Limit>)]) -> String {
    match providers {
        [] => example_with(pools),
        providers => of_providers(providers, pools),
    }
}

/// An existing file with what is known about providers, or nothing if it has all of it.
fn added_to(old: &str, file: &Path, providers: &[Provider]) -> Result<Option<String>, Failure> {
    let known = Settings::parse(old, Some(file), 0)?;
    let described: BTreeSet<&str> = known.pools.keys().map(PoolName::as_str).collect();
    let mut text = old.trim_end().to_owned();
    let before = text.len();
    for provider in sorted(providers) {
        for block in blocks(page(provider)) {
            let pool = pool_of(block);
            let is_new = match pool {
                Some(pool) => !described.contains(pool),
                None => !old.contains(block.trim()),
            };
            if is_new {
                text.push_str(if text.is_empty() { "" } else { "\n\n" });
                text.push_str(block.trim_end());
            }
        }
    }
    Ok((text.len() > before).then(|| text + "\n"))
}

/// The parts of a provider's page: each table with the comment before it.
fn blocks(page: &str) -> impl Iterator<Item = &str> {
    page.split("\n\n").filter(|block| !block.trim().is_empty())
}

/// The pool that a part of a page describes.
fn pool_of(block: &str) -> Option<&str> {
    let name = block.lines().find_map(|line| line.strip_prefix("[pool.\""))?;
    name.strip_suffix("\"]")
}

fn page(provider: Provider) -> &'static str {
    match provider {
        Provider::Anthropic => include_str!("providers/anthropic.toml"),
        Provider::Openai => include_str!("providers/openai.toml"),
        Provider::Github => include_str!("providers/github.toml"),
    }
}

/// Each provider once, in a fixed order.
fn sorted(providers: &[Provider]) -> Vec<Provider> {
    let mut providers = providers.to_vec();
    providers.sort_unstable();
    providers.dedup();
    providers
}

/// The example with the pools in use in the place of its own.
fn example_with(pools: &[(PoolName, Vec<Limit>)]) -> String {
    let example = Settings::example();
    if pools.is_empty() {
        let commented: String = EXAMPLE_POOL.lines().map(|line| format!("#{line}\n")).collect();
        return example.replace(EXAMPLE_POOL, &commented).replace(CLOSED, OPEN);
    }
    example.replace(EXAMPLE_POOL, tables(pools).trim_start())
}

/// The file for some providers, and the pools in use that it does not describe.
fn of_providers(providers: &[Provider], pools: &[(PoolName, Vec<Limit>)]) -> String {
    let each: Vec<&str> = sorted(providers).into_iter().map(page).collect();
    let described = |name: &PoolName| {
        let table = format!("[pool.\"{name}\"]");
        each.iter().any(|text| text.lines().any(|line| line == table))
    };
    let others: Vec<_> = pools.iter().filter(|(name, _)| !described(name)).cloned().collect();
    let has_pools = !others.is_empty() || each.iter().any(|text| text.contains("\n[pool."));
    let mut parts = vec![HEAD.to_owned()];
    parts.extend((!has_pools).then(|| OPEN.to_owned()));
    parts.extend(each.iter().map(|text| (*text).to_owned()));
    if !others.is_empty() {
        let tables = tables(&others);
        parts.push(format!("# In use when this file was written.\n{}", tables.trim_start()));
    }
    parts.push(AGENTS.to_owned());
    parts.join("\n")
}

/// The tables of pools. One without limits learns them from the provider.
fn tables(pools: &[(PoolName, Vec<Limit>)]) -> String {
    let table = |(name, limits): &(PoolName, Vec<Limit>)| {
        format!("\n[pool.\"{name}\"]\n{}\n", Settings::limit_lines(name, limits).join("\n"))
    };
    pools.iter().map(table).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use standpipe::policy::Resets;
    use standpipe::{Rule, Span, Unit};

    fn parsed(text: &str) -> Settings {
        Settings::parse(text, None, 0).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    #[test]
    fn every_file_is_valid() {
        let [anthropic, openai, github] = [Provider::Anthropic, Provider::Openai, Provider::Github];
        let pools = |providers: &[Provider]| parsed(&of_providers(providers, &[])).pools.len();
        assert_eq!((pools(&[anthropic]), pools(&[github])), (3, 3));
        assert_eq!(pools(&[github, anthropic, github]), 6);
        // Each model of OpenAI has its own limits, so none is described.
        assert_eq!(pools(&[openai]), 0);
        let open = parsed(&of_providers(&[openai], &[]));
        assert!(open.has_open_pools());
        assert!(!parsed(&of_providers(&[openai, github], &[])).has_open_pools());
        let empty = parsed(&example_with(&[]));
        assert!(empty.has_open_pools() && empty.pools.is_empty());
    }

    #[test]
    fn a_provider_is_added_to_a_file_without_a_change_of_its_text() {
        let add = |old: &str, providers: &[Provider]| {
            added_to(old, Path::new("standpipe.toml"), providers).unwrap()
        };
        let own = "# mine\nlisten = \"127.0.0.1:9\"\n\n[pool.\"anthropic/opus\"]\nparallel = 2\n";
        let both = [Provider::Github, Provider::Anthropic];
        let text = add(own, &both).unwrap();
        assert!(text.starts_with(own.trim_end()), "{text}");
        let settings = parsed(&text);
        assert_eq!(settings.pools.len(), 6);
        let opus = &settings.pools[&"anthropic/opus".parse::<PoolName>().unwrap()];
        assert!(opus.models.is_empty(), "what is described stays as it is");
        assert_eq!(add(&text, &both), None, "it has all of it");
        let commented = add(&text, &[Provider::Openai]).unwrap();
        assert_eq!(parsed(&commented).pools.len(), 6);
        assert_eq!(add(&commented, &[Provider::Openai]), None);
        let broken = added_to("requests =", Path::new("standpipe.toml"), &both);
        assert!(broken.is_err(), "an invalid file is not added to");
    }

    #[test]
    fn the_pools_in_use_keep_their_limits() {
        let minute = Span::secs(60);
        let window = |unit: Unit, amount, period| Rule::Window { unit, amount, period };
        let burst = Rule::Bucket { unit: Unit::Tokens, amount: 900, period: minute, burst: 50 };
        let rules = [
            window(Unit::Requests, 60, minute),
            window(Unit::Requests, 1_500, Span::secs(3_600)),
            burst,
            window(Unit::Usd, 20_000_000, Span::secs(86_400)),
            Rule::Parallel { amount: 5 },
        ];
        let mut limits: Vec<Limit> = rules.into_iter().map(Limit::new).collect();
        limits[1].resets = Resets::Provider;
        limits[2].pace = Some(Span::millis(250));
        let name = "my/api".parse::<PoolName>().unwrap();
        let pools = [(name.clone(), limits.clone()), ("anthropic/x".parse().unwrap(), vec![])];
        for text in [example_with(&pools), of_providers(&[Provider::Github], &pools)] {
            let settings = parsed(&text);
            let mut written = settings.pool_config(&name).unwrap().limits;
            written.sort_by_key(|limit| limits.iter().position(|own| own == limit));
            assert_eq!(written, limits);
            assert!(!settings.has_open_pools());
        }
    }
}
