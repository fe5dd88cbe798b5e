//! Settings: what `standpipe.toml` says, read, checked and with the defaults filled in.
//!
//! ```
//! use standpipe::config::Settings;
//!
//! let text = r#"
//!     [pool."anthropic/sonnet"]
//!     requests = "1000/min"
//!     paralel = 20
//! "#;
//! let error = Settings::parse(text, None, 0).unwrap_err();
//! let said = error.to_string();
//! assert_eq!(said, "line 4: unknown key `paralel` in a pool; did you mean `parallel`?");
//! ```
//!
//! In reading order: [`text`] and [`plain`] turn texts into values and back; `reader` walks the
//! parsed file and collects problems; `pool`, `limits`, `policy`, `agent`, `store`, `workflow` and
//! `provider` are one section each, `margin` is one key; `cross` checks what several sections say
//! together; `find` knows where the file is; `describe`, `schema` and `example` are for `standpipe
//! config`.
//!
//! Nothing here opens a store or talks to a pool, and nothing that is shown holds a password.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use standpipe_core::{AgentName, AgentRule, PoolConfig, Portion, Priority, Share, Source};
use standpipe_store::{InvalidPoolName, PoolName};
use toml::de::DeTable;

pub mod plain;
pub mod text;

mod agent;
mod cross;
mod describe;
mod example;
mod find;
mod limit_form;
mod limits;
mod margin;
mod nearest;
mod policy;
mod pool;
mod problem;
mod provider;
mod reader;
mod schema;
mod store;
mod syntax;
mod workflow;

pub use self::agent::{AgentSettings, Shares};
pub use self::nearest::nearest;
pub use self::policy::{LongestLease, StoreFailure, Toggle};
pub use self::pool::PoolSettings;
pub use self::problem::{ConfigError, Problem};
pub use self::provider::{ProviderSettings, ServerSettings};
pub use self::store::{StoreSettings, StoreUrl};
pub use self::text::TextError;
pub use self::workflow::WorkflowSettings;

use self::reader::{Item, Reader};
use self::text::quoted;

/// A whole `standpipe.toml`, checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The file; `None` when there is none.
    pub origin: Option<PathBuf>,
    /// When it was written, in milliseconds: the later of two files counts.
    pub written: u64,
    /// The version it states: a higher one counts, whenever it was written.
    pub version: Option<u64>,
    /// Where the ledger is kept; `None` is the default, a file of the user's own.
    pub store: Option<StoreSettings>,
    /// Where the daemon listens; `None` is [`Settings::LISTEN`].
    pub listen: Option<SocketAddr>,
    /// Whether pools may be used that the file does not describe.
    pub open_pools: bool,
    /// The pools.
    pub pools: BTreeMap<PoolName, PoolSettings>,
    /// The agents that something is said about.
    pub agents: BTreeMap<AgentName, AgentSettings>,
    /// Chains of agents.
    pub workflows: BTreeMap<String, WorkflowSettings>,
    /// From a class of task to the pools it may use.
    pub routes: BTreeMap<String, Vec<PoolName>>,
    /// How providers are reached.
    pub providers: BTreeMap<String, ProviderSettings>,
    /// How the daemon is reached.
    pub server: ServerSettings,
    /// The line of every key, by its dotted path.
    lines: BTreeMap<String, usize>,
}

impl Settings {
    /// Where the daemon listens unless the file says otherwise.
    pub const LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8377);

    /// The settings of the first file there is: `explicit` (from `--config`), `$STANDPIPE_CONFIG`,
    /// `standpipe/standpipe.toml` in the user's configuration directory, the same in `/etc`. None:
    /// the defaults. `env` looks up environment variables.
    ///
    /// # Errors
    /// When a named file does not exist, or one cannot be read or is wrong.
    pub fn find(
        explicit: Option<&Path>,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, ConfigError> {
        find::find(explicit, env, Path::new("/etc"))
    }

    /// The settings in a text. `origin` is the file it comes from, for messages and for relative
    /// paths, `written` when that was written.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn parse(text: &str, origin: Option<&Path>, written: u64) -> Result<Self, ConfigError> {
        let mut reader = Reader::new(text, origin);
        let (table, errors) = DeTable::parse_recoverable(text);
        if !errors.is_empty() {
            syntax::note(&mut reader, text, &errors);
            // What the parser made of the rest is guesswork; more complaints would mislead.
            return reader.finish().map(|_| Self::default());
        }
        let mut settings =
            Self { origin: origin.map(Path::to_path_buf), written, ..Self::default() };
        for entry in reader.entries_of(table.get_ref(), "") {
            settings.read(&mut reader, &entry);
        }
        cross::check(&mut reader, &settings);
        settings.lines = reader.finish()?;
        Ok(settings)
    }

    /// A pool as the ledger takes it: its limits, and of the agents what concerns it. `None` when
    /// the file does not describe it, or states neither limits nor a provider to learn them from.
    #[must_use]
    pub fn pool_config(&self, pool: &PoolName) -> Option<PoolConfig> {
        let settings = self.pools.get(pool)?;
        let learns = settings.learn && settings.provider.is_some();
        if settings.limits.is_empty() && !learns {
            return None;
        }
        let store = self.store.clone().unwrap_or_default();
        let is_of_a_limit =
            |share: &&Share| settings.limits.iter().any(|limit| share.of_limit(limit).is_some());
        // A cap that is a rate needs no limit of the pool: it has a period of its own.
        let is_cap =
            |share: &&Share| matches!(share.portion, Portion::Rate { .. }) || is_of_a_limit(share);
        let rules = self.agents.iter().map(|(name, agent)| AgentRule {
            name: name.clone(),
            // Standard is what an agent has anyway.
            priority: agent.priority.filter(|tier| *tier != Priority::Standard),
            floors: agent.floor.on(pool).iter().filter(is_of_a_limit).cloned().collect(),
            caps: agent.cap.on(pool).iter().filter(is_cap).cloned().collect(),
        });
        let says_something = |rule: &AgentRule| {
            rule.priority.is_some() || !rule.floors.is_empty() || !rule.caps.is_empty()
        };
        Some(PoolConfig {
            limits: settings.limits.clone(),
            margin: settings.margin,
            slack: settings.slack.unwrap_or_else(|| store.slack()),
            claim: store.claim(),
            lease_ttl: settings.lease_ttl,
            longest_lease: settings.longest_lease(),
            enforce: settings.enforce,
            policy: settings.policy(),
            agents: rules.filter(says_something).collect(),
            prices: settings.prices(),
        })
    }

    /// What decides between these settings and others.
    #[must_use]
    pub const fn source(&self) -> Source {
        Source::File { version: self.version, written: self.written }
    }

    /// Why a pool may not be used: there is a file, it does not describe the pool, and it does not
    /// say `open_pools = true`.
    #[must_use]
    pub fn unknown_pool(&self, pool: &PoolName) -> Option<ConfigError> {
        let file = self.origin.as_ref()?;
        if self.open_pools || self.pools.contains_key(pool) {
            return None;
        }
        let (what, remedy) = cross::unknown_pool(self, pool);
        Some(Problem { file: Some(file.clone()), line: None, what, remedy }.into())
    }

    /// The JSON Schema (draft 2020-12) of the file, for editors.
    #[must_use]
    pub fn schema() -> serde_json::Value {
        schema::schema()
    }

    /// A short file to begin with, which can be used as it is.
    #[must_use]
    pub const fn example() -> &'static str {
        example::EXAMPLE
    }

    /// Everything in force, the defaults filled in, without secrets: `file`, and `settings`, a list
    /// of `key`, `value` and `origin` (`FILE:LINE` or `default`).
    #[must_use]
    pub fn describe(&self) -> serde_json::Value {
        describe::describe(self)
    }

    /// The same as a settings file, with the origin of each value as a comment if wanted. It reads
    /// back as these settings, except for hidden passwords.
    #[must_use]
    pub fn to_toml(&self, origins: bool) -> String {
        describe::to_toml(self, origins)
    }

    /// One entry at the top of the file.
    fn read(&mut self, reader: &mut Reader<'_>, entry: &Item<'_>) {
        match entry.key {
            "version" => self.version = version(reader, entry),
            "store" => self.store = Some(store::read(reader, entry)),
            "listen" => self.listen = listen(reader, entry),
            "open_pools" => self.open_pools = reader.flag(entry).unwrap_or_default(),
            "pool" => self.read_pools(reader, entry),
            "agent" => self.read_agents(reader, entry),
            "workflow" => {
                for item in reader.entries(entry) {
                    let workflow = workflow::read(reader, &item);
                    if AgentName::new(item.key).is_none() {
                        bad_name(reader, &item, "a workflow", workflow::AGENT_NAMES);
                    }
                    self.workflows.insert(item.key.to_owned(), workflow);
                }
            }
            "route" => self.routes = workflow::read_routes(reader, entry),
            "provider" => {
                for item in reader.entries(entry) {
                    let provider = provider::read(reader, &item);
                    if let Err(remedy) = provider::check_name(item.key) {
                        bad_name(reader, &item, "a provider", remedy);
                    }
                    self.providers.insert(item.key.to_owned(), provider);
                }
            }
            "server" => self.server = provider::read_server(reader, entry),
            _ => reader.unknown(entry, &KEYS, "at the top of the file"),
        }
    }

    fn read_pools(&mut self, reader: &mut Reader<'_>, item: &Item<'_>) {
        for entry in reader.entries(item) {
            let invalid = match entry.key.parse::<PoolName>() {
                Ok(name) => {
                    self.pools.insert(name, pool::read(reader, &entry));
                    continue;
                }
                Err(invalid) => invalid,
            };
            if let Some(remedy) = dotted(&entry, invalid) {
                bad_name(reader, &entry, "a pool", remedy);
            } else {
                bad_name(reader, &entry, "a pool", invalid.to_string());
                pool::read(reader, &entry);
            }
        }
    }

    fn read_agents(&mut self, reader: &mut Reader<'_>, item: &Item<'_>) {
        for entry in reader.entries(item) {
            let agent = agent::read(reader, &entry);
            match AgentName::new(entry.key) {
                Some(name) => drop(self.agents.insert(name, agent)),
                None => bad_name(reader, &entry, "an agent", workflow::AGENT_NAMES),
            }
        }
    }
}

/// The keys at the top of the file.
const KEYS: [&str; 10] = [
    "version",
    "store",
    "listen",
    "open_pools",
    "pool",
    "agent",
    "workflow",
    "route",
    "provider",
    "server",
];

/// `[pool.anthropic.sonnet]` and its like: the dot should have been a slash in quotes.
fn dotted(entry: &Item<'_>, invalid: InvalidPoolName) -> Option<String> {
    let table = entry.value.as_table().filter(|_| invalid == InvalidPoolName::NoScope)?;
    let (scope, _) = table.iter().find(|(_, value)| value.get_ref().is_table())?;
    let meant = format!("{}/{}", entry.key, scope.get_ref());
    meant.parse::<PoolName>().ok().map(|meant| format!("did you mean [pool.\"{meant}\"]?"))
}

fn version(reader: &mut Reader<'_>, item: &Item<'_>) -> Option<u64> {
    let number = item.value.as_integer().and_then(|number| number.as_str().parse().ok());
    if number.is_none() {
        reader.wrong_at(item, "is not a version", "write a whole number, for example 1");
    }
    number
}

fn listen(reader: &mut Reader<'_>, item: &Item<'_>) -> Option<SocketAddr> {
    let text = reader.text(item)?;
    let address = text.parse().ok();
    if address.is_none() {
        let what = format!("{} is not an address and a port", quoted(text));
        reader.wrong_at(item, what, format!("write for example \"{}\"", Settings::LISTEN));
    }
    address
}

fn bad_name(reader: &mut Reader<'_>, item: &Item<'_>, of: &str, remedy: impl Into<String>) {
    reader.wrong(item.line, format!("{} is not the name of {of}", quoted(item.key)), remedy);
}

#[cfg(test)]
mod tests;
