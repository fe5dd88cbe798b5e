//! Names in the file: of pools, agents, workflows, providers and classes of tasks.

use std::collections::BTreeMap;
use std::fmt::Display;

use standpipe_core::AgentName;
use standpipe_store::{InvalidPoolName, PoolName};
use toml::Spanned;
use toml::de::DeValue;

use super::form::{Sectioned, form};
use super::shape::{AGENT_NAME, POOL_NAME, PROVIDER_NAME};
use super::text::short_text;
use super::{Shape, Value};
use crate::file::reader::Item;
use crate::parse::{TextError, quoted};
use crate::path::join;
use crate::settings::{AgentSettings, PoolSettings, ProviderSettings, WorkflowSettings};

/// Settings of which there are several tables, by name.
pub(crate) trait NamedTable: Sectioned {
    type Name: Ord + Display;
    /// A regular expression for the names, for the schema.
    const PATTERN: &'static str = AGENT_NAME;
    /// The keys that each table must have.
    const REQUIRED: &'static [&'static str] = &[];

    /// Parses the name of a table.
    fn name(item: &Item<'_>) -> Result<Self::Name, TextError>;

    /// Returns what is wrong with a value that has no names: it is one table, or none.
    fn unnamed(_all: &Item<'_>) -> Option<TextError> {
        None
    }
}

impl NamedTable for PoolSettings {
    type Name = PoolName;
    const PATTERN: &'static str = POOL_NAME;

    fn name(item: &Item<'_>) -> Result<PoolName, TextError> {
        pool(item)
    }

    fn unnamed(all: &Item<'_>) -> Option<TextError> {
        let name_in = |table: &DeValue<'_>| {
            let table = table.as_table()?;
            let name = ["name", "pool"].iter().find_map(|key| table.get(*key))?;
            name.get_ref().as_str().map(ToOwned::to_owned)
        };
        let (what, name) = match all.value {
            DeValue::String(name) => ("`pool` is a string", Some(name.to_string())),
            DeValue::Array(list) => {
                let tables = list.iter().map(Spanned::get_ref);
                ("`pool` is a list", tables.filter_map(name_in).next())
            }
            DeValue::Table(table) => {
                let has_names = table.iter().any(|(key, value)| {
                    value.get_ref().is_table() || key.get_ref().parse::<PoolName>().is_ok()
                });
                if table.is_empty() || has_names {
                    return None;
                }
                ("the pool has no name", name_in(all.value))
            }
            _ => return None,
        };
        let name = name.filter(|name| name.parse::<PoolName>().is_ok());
        let name = name.as_deref().unwrap_or("my/api");
        let remedy = format!("write [pool.\"{name}\"], and its limits below that line");
        Some(TextError::new(what, remedy))
    }
}

impl NamedTable for AgentSettings {
    type Name = AgentName;

    fn name(item: &Item<'_>) -> Result<AgentName, TextError> {
        agent(item.key, "an agent")
    }
}

impl NamedTable for WorkflowSettings {
    type Name = String;
    const REQUIRED: &'static [&'static str] = &["agents"];

    fn name(item: &Item<'_>) -> Result<String, TextError> {
        agent(item.key, "a workflow").map(|name| name.as_str().to_owned())
    }
}

impl NamedTable for ProviderSettings {
    type Name = String;
    const PATTERN: &'static str = PROVIDER_NAME;

    fn name(item: &Item<'_>) -> Result<String, TextError> {
        provider(item.key)
    }
}

/// Parses a key that is the name of a pool.
pub(super) fn pool(item: &Item<'_>) -> Result<PoolName, TextError> {
    let remedy = |error: InvalidPoolName| dotted(item).unwrap_or_else(|| error.to_string());
    item.key.parse().map_err(|error| invalid(item.key, "a pool", remedy(error)))
}

/// Returns the remedy for `[pool.anthropic.sonnet]`: a slash in quotes instead of the dot.
pub(super) fn dotted(item: &Item<'_>) -> Option<String> {
    let error = item.key.parse::<PoolName>().err()?;
    let table = item.value.as_table().filter(|_| error == InvalidPoolName::NoScope)?;
    let (scope, _) = table.iter().find(|(_, value)| value.get_ref().is_table())?;
    let meant = format!("{}/{}", item.key, scope.get_ref());
    meant.parse::<PoolName>().ok().map(|meant| format!("did you mean [pool.\"{meant}\"]?"))
}

fn agent(name: &str, of: &str) -> Result<AgentName, TextError> {
    let remedy = "use 1 to 64 of A-Z a-z 0-9 . _ @ -";
    AgentName::new(name).ok_or_else(|| invalid(name, of, remedy))
}

form!(
    /// The name of a provider.
    ProviderName: String, Shape::Text { what: "provider", pattern: PROVIDER_NAME },
    |reader, item| reader.parse_text(item, provider),
    |name| Value::from(name.as_str())
);

fn provider(name: &str) -> Result<String, TextError> {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"._:@-".contains(&b);
    if !(1..=64).contains(&name.len()) || !name.bytes().all(is_plain) {
        return Err(invalid(name, "a provider", "use 1 to 64 of A-Z a-z 0-9 . _ : @ -"));
    }
    // The daemon proxies a provider under its name, beside paths of its own.
    if crate::settings::is_reserved(name) {
        let remedy = "the daemon serves something else under that name; choose another";
        return Err(invalid(name, "a provider", remedy));
    }
    Ok(name.to_owned())
}

form!(
    /// A pool that is described in the file.
    ParentPool: PoolName, Shape::Text { what: "pool", pattern: POOL_NAME },
    |reader, item| reader.pool(item),
    |pool| Value::from(pool.as_str())
);

form!(
    /// A list of pools that are described in the file.
    Pools: Vec<PoolName>, Shape::set(Shape::Text { what: "pools", pattern: POOL_NAME }, 0),
    |reader, item| Some(reader.pools(item)),
    |pools| (!pools.is_empty()).then(|| Value::texts(pools))
);

form!(
    /// Lists of pools by class of task.
    Routes: BTreeMap<String, Vec<PoolName>>, Shape::Map(vec![("^.{1,128}$", Pools::shape())]),
    |reader, item| {
        let mut routes = BTreeMap::new();
        for entry in reader.entries(item) {
            if let Err(TextError { remedy, .. }) = short_text(entry.key) {
                let what = format!("{} is not a class of task", quoted(entry.key));
                reader.problem(entry.line, what, remedy);
            }
            if entry.value.as_array().is_some_and(|list| list.is_empty()) {
                reader.problem_at(&entry, "has no pool", "name at least one pool");
            }
            routes.insert(entry.key.to_owned(), reader.pools(&entry));
        }
        Some(routes)
    },
    |routes, scope| scope.map(|_| {
        let routes = routes.iter();
        let routes =
            routes.filter_map(|(class, to)| Some((join("", class), Pools::value(to, scope)?)));
        Value::Table(routes.collect())
    })
);

form!(
    /// A list of different agents.
    Chain: Vec<AgentName>, Shape::set(Shape::Text { what: "agents", pattern: AGENT_NAME }, 2),
    |reader, item| {
        let mut chain = Vec::new();
        for element in reader.list(item) {
            match reader.parse_text(&element, |name| agent(name, "an agent")) {
                Some(name) if chain.contains(&name) => {
                    let what = format!("`{name}` is in the chain twice");
                    reader.problem_at(&element, what, "name it once");
                }
                Some(name) => chain.push(name),
                None => {}
            }
        }
        Some(chain)
    },
    |agents| Value::texts(agents)
);

/// Returns the error of a text that is not the name of something.
fn invalid(name: &str, of: &str, remedy: impl Into<String>) -> TextError {
    TextError::new(format!("{} is not the name of {of}", quoted(name)), remedy)
}
