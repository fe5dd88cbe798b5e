//! `config init`: writes a commented configuration file.
//!
//! Guarantee: nothing that works before stops working. A file makes pools that it does not describe
//! an error, so the file describes those in use, or leaves pools open while there are none.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use serde_json::json;
use standpipe::{Limit, PoolName, Settings, Standpipe};

use crate::args::{Init, Provider};
use crate::commands::CommandResult;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::printer::Printer;

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
    let pools = in_use(context);
    let text = match args.providers.as_slice() {
        [] => example_with(&pools),
        providers => of_providers(providers, &pools),
    };
    let backup = keep(&file, args.force).map_err(|error| cannot(&file, &error))?;
    write(&file, &text, args.force).map_err(|error| cannot(&file, &error))?;
    let name = file.display().to_string();
    if !printer.json {
        printer.line(&name)?;
    }
    let count = Settings::parse(&text, None, 0).map_or(0, |settings| settings.pools.len());
    let described = match count {
        0 => String::new(),
        1 => " with 1 pool".to_owned(),
        many => format!(" with {many} pools"),
    };
    let kept = backup.as_ref().map(|backup| format!("; the old file is {}", backup.display()));
    printer.done(
        &format!(
            "written{described}{}; change it, then `standpipe config check`",
            kept.unwrap_or_default()
        ),
        json!({ "file": name, "written": true, "pools": count, "backup": backup }),
    )?;
    Ok(Exit::Ok)
}

/// The pools of the store and their limits. A store that cannot be read has none in use.
fn in_use(context: &Context) -> Vec<(PoolName, Vec<Limit>)> {
    let read = |tap: &Standpipe| -> Result<Vec<_>, standpipe::Error> {
        let names = tap.pools().blocking()?.into_iter();
        let pools = names.map(|name| {
            let config = tap.existing_pool(&name).config().blocking()?;
            Ok((name, config.map(|config| config.limits).unwrap_or_default()))
        });
        pools.collect()
    };
    let pools = context.open().ok().and_then(|tap| read(&tap).ok()).unwrap_or_default();
    // A pool with neither limits nor a provider to learn them from has never been used.
    pools
        .into_iter()
        .filter(|(name, limits)| !Settings::limit_lines(name, limits).is_empty())
        .collect()
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
    let mut providers = providers.to_vec();
    providers.sort_unstable();
    providers.dedup();
    let each = providers.into_iter().map(|provider| match provider {
        Provider::Anthropic => include_str!("providers/anthropic.toml"),
        Provider::Openai => include_str!("providers/openai.toml"),
        Provider::Github => include_str!("providers/github.toml"),
    });
    let each: Vec<&str> = each.collect();
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

/// Keeps an existing file that is to be replaced, beside it. Returns its new name.
fn keep(file: &Path, force: bool) -> io::Result<Option<PathBuf>> {
    if !force || !file.exists() {
        return Ok(None);
    }
    let mut name = file.as_os_str().to_owned();
    name.push(".bak");
    let backup = PathBuf::from(name);
    fs::copy(file, &backup)?;
    Ok(Some(backup))
}

/// Writes the file. An existing file is replaced only with `force`.
fn write(file: &Path, text: &str, force: bool) -> io::Result<()> {
    if let Some(directory) = file.parent().filter(|parent| *parent != Path::new("")) {
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    }
    let mut options = OpenOptions::new();
    options.write(true).truncate(force).create(force).create_new(!force);
    options.open(file)?.write_all(text.as_bytes())
}

fn cannot(file: &Path, error: &io::Error) -> Failure {
    let name = file.display();
    if error.kind() == io::ErrorKind::AlreadyExists {
        let what = format!("{name} already exists");
        let hint = "--force replaces it, and keeps it as a .bak file";
        return Failure::new(Exit::Config, "config", &what, hint);
    }
    Failure::new(
        Exit::Config,
        "config",
        &format!("cannot write {name}: {error}"),
        "name the file: config init FILE",
    )
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
        assert!(open.open_pools && !parsed(&of_providers(&[openai, github], &[])).open_pools);
        let empty = parsed(&example_with(&[]));
        assert!(empty.open_pools && empty.pools.is_empty());
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
            assert!(!settings.open_pools);
        }
    }
}
