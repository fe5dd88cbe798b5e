//! `config init`: writes a commented configuration file.
//!
//! Guarantee: nothing that works before stops working. A file makes pools that it does not describe
//! an error, so the file describes those in use, or leaves pools open while there are none.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

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
const CLOSED: &str = "#open_pools = false";

pub(super) fn run(args: &Init, context: &Context, printer: &Printer) -> CommandResult {
    let file = match &args.file {
        Some(file) => file.clone(),
        None => context
            .default_config_file()
            .ok_or_else(|| Failure::usage("$HOME is not set", "name the file: config init FILE"))?,
    };
    let pools = in_use(context);
    let text = match args.provider {
        Some(provider) => of_provider(provider, &pools),
        None => example_with(&pools),
    };
    write(&file, &text, args.force).map_err(|error| cannot(&file, &error))?;
    let name = file.display().to_string();
    if !printer.json {
        printer.line(&name)?;
    }
    let described = match pools.len() {
        0 => String::new(),
        1 => ", with the pool in use".to_owned(),
        many => format!(", with the {many} pools in use"),
    };
    printer.done(
        &format!("written{described}; change it, then `standpipe config check`"),
        json!({ "file": name, "written": true, "pools": pools.len() }),
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
        let open = "# Remove this line when the pools you use are below.\nopen_pools = true";
        return example.replace(EXAMPLE_POOL, &commented).replace(CLOSED, open);
    }
    example.replace(EXAMPLE_POOL, tables(pools).trim_start())
}

/// The file for a provider, and the pools in use that it does not describe.
fn of_provider(provider: Provider, pools: &[(PoolName, Vec<Limit>)]) -> String {
    let text = match provider {
        Provider::Anthropic => include_str!("providers/anthropic.toml"),
        Provider::Openai => include_str!("providers/openai.toml"),
        Provider::Github => include_str!("providers/github.toml"),
    };
    let described = |name: &PoolName| text.contains(&format!("[pool.\"{name}\"]"));
    let others: Vec<_> = pools.iter().filter(|(name, _)| !described(name)).cloned().collect();
    if others.is_empty() {
        return text.to_owned();
    }
    format!("{text}\n# In use when this file was written.\n{}", tables(&others).trim_start())
}

/// The tables of pools. One without limits learns them from the provider.
fn tables(pools: &[(PoolName, Vec<Limit>)]) -> String {
    let table = |(name, limits): &(PoolName, Vec<Limit>)| {
        format!("\n[pool.\"{name}\"]\n{}\n", Settings::limit_lines(name, limits).join("\n"))
    };
    pools.iter().map(table).collect()
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
        return Failure::new(Exit::Config, "config", &what, "--force replaces it");
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
        for provider in [Provider::Anthropic, Provider::Openai, Provider::Github] {
            assert!(parsed(&of_provider(provider, &[])).pools.len() > 1);
        }
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
        for text in [example_with(&pools), of_provider(Provider::Github, &pools)] {
            let settings = parsed(&text);
            let mut written = settings.pool_config(&name).unwrap().limits;
            written.sort_by_key(|limit| limits.iter().position(|own| own == limit));
            assert_eq!(written, limits);
            assert!(!settings.open_pools);
        }
    }
}
