//! The settings as plain data, and the rows of the table of keys. `file` reads them from
//! `standpipe.toml`; programs can also build them in code.
//!
//! Start with [`Settings::pool_config`], which turns the settings of a pool into what the core
//! takes.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use standpipe_core::{
    AgentName, AgentRule, Limit, Order, PoolConfig, PoolRef, Portion, Priority, Share, Source,
};
use standpipe_dialect::Dialect;
use standpipe_store::PoolName;

#[cfg(feature = "file")]
use crate::keys::{
    form::{Flag, Named, Optional, Table},
    names::Routes,
    store::Store,
    text::{Address, Version},
};
use crate::nearest::nearest;
use crate::path::join;
use crate::problem::{ConfigError, Problem};

/// Declares the settings of a table: the struct, its defaults and, for the file, its keys.
///
/// A row is the description in one line, the field with its default, and the key with the form of
/// its value. A field without a key is not in the file; `keys` lists keys that share a field.
/// `read` and `value` replace the functions of the form.
macro_rules! settings {
    (
        $(#[$meta:meta])*
        pub struct $name:ident, $place:literal $(, $hook:ident $with:expr)* => {
            $(
                #[doc = $about:literal]
                $vis:vis $field:ident: $type:ty = $default:expr
                $(, $key:literal as $form:ty $(, $replaced:ident $by:expr)?)?
                $(; keys [$($more:expr),* $(,)?])?;
            )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name {
            $(#[doc = $about] $vis $field: $type,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }

        #[cfg(feature = "file")]
        impl crate::keys::Sectioned for $name {
            const SECTION: &'static crate::keys::Section<Self> = &crate::keys::Section {
                $($hook: $with,)*
                ..crate::keys::Section::new($place, Self::default, &[$(
                    $(crate::keys::Key {
                        $($replaced: $by,)?
                        ..crate::keys::key!($key: $form => $name.$field, $about)
                    },)?
                    $($($more,)*)?
                )*])
            };
        }
    };
}

mod agent;
mod calls;
mod pool;
mod provider;
mod store;
mod workflow;

pub use self::agent::{AgentSettings, Shares};
pub use self::calls::CallSettings;
pub use self::pool::{LongestLease, PoolSettings, StoreFailure, Toggle};
pub use self::provider::{KeyPools, ProviderSettings, ServerSettings, SplitField};
pub use self::store::{StoreSettings, StoreUrl};
pub use self::workflow::WorkflowSettings;

/// Whether paths of the daemon's own begin with this name, so that no provider can have it.
#[must_use]
pub fn is_reserved(name: &str) -> bool {
    let is_version = name.strip_prefix('v').is_some_and(|number| {
        !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit())
    });
    is_version || ["ui", "as", "metrics", "healthz", "readyz", "openapi.json"].contains(&name)
}

/// Returns the dialect of a pool: that of its provider, else of the first part of its name.
#[must_use]
pub fn dialect_of(pool: &str, provider: Option<&str>) -> Dialect {
    let scope = pool.split('/').next().unwrap_or_default();
    provider.and_then(Dialect::named).or_else(|| Dialect::named(scope)).unwrap_or(Dialect::Generic)
}

settings! {
    /// All settings, checked.
    pub struct Settings, "at the top of the file" => {
        /// File that they were read from; `None` if there is none.
        pub origin: Option<PathBuf> = None;
        /// Modification time of the file in milliseconds. The later of two files takes precedence.
        pub written: u64 = 0;
        /// Version of the file. Of two files, the one with the higher version applies.
        pub version: Option<u64> = None, "version" as Optional<Version>;
        /// Address of the daemon.
        pub listen: Option<SocketAddr> = None, "listen" as Address;
        /// Whether calls on other pools are allowed. Without the key: only if no pool is described.
        pub open_pools: Option<bool> = None, "open_pools" as Optional<Flag>;
        /// Where the ledger is stored.
        pub store: Option<StoreSettings> = None, "store" as Store;
        /// Shared quotas, by `provider/scope`.
        pub pools: BTreeMap<PoolName, PoolSettings> = BTreeMap::new(),
            "pool" as Named<PoolSettings>;
        /// Agents with settings of their own, by name.
        pub agents: BTreeMap<AgentName, AgentSettings> = BTreeMap::new(),
            "agent" as Named<AgentSettings>;
        /// Chains of agents, by name.
        pub workflows: BTreeMap<String, WorkflowSettings> = BTreeMap::new(),
            "workflow" as Named<WorkflowSettings>;
        /// Pools that a class of task may use, by class.
        pub routes: BTreeMap<String, Vec<PoolName>> = BTreeMap::new(), "route" as Routes;
        /// Connections to providers, by name.
        pub providers: BTreeMap<String, ProviderSettings> = BTreeMap::new(),
            "provider" as Named<ProviderSettings>;
        /// Endpoints of the daemon.
        pub server: ServerSettings = ServerSettings::default(), "server" as Table<ServerSettings>;
        /// Line of every key, by its dotted path.
        pub(crate) lines: BTreeMap<String, usize> = BTreeMap::new();
    }
}

/// How many pools a pool may lie within: its parent, the parent's parent and so on.
pub const MAX_ANCESTORS: usize = 4;

impl Settings {
    /// The address of the daemon unless the file sets another.
    pub const LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8377);

    /// Returns the configuration of a pool as the core takes it, with the rules of the agents that
    /// concern it. Returns `None` if the pool is not described, or has neither limits nor a
    /// provider to learn them from.
    #[must_use]
    pub fn pool_config(&self, pool: &PoolName) -> Option<PoolConfig> {
        let settings = self.pools.get(pool)?;
        let learns = settings.learn && settings.provider.is_some();
        if settings.limits.is_empty() && !learns {
            return None;
        }
        let store = self.store.clone().unwrap_or_default();
        Some(PoolConfig {
            limits: settings.limits.clone(),
            margin: settings.margin,
            slack: settings.slack.unwrap_or_else(|| store.slack()),
            claim: store.claim(),
            lease_ttl: settings.lease_ttl,
            longest_lease: settings.longest_lease(),
            enforce: settings.enforce,
            order: settings.order,
            policy: settings.policy(),
            agents: self.agent_rules(pool, &settings.limits, settings.order),
            prices: settings.prices(),
            within: settings.within.as_ref().and_then(|name| PoolRef::new(name.as_str())),
        })
    }

    /// Returns the rules of the agents that concern a pool with these limits. Without any the pool
    /// learns them, so every floor and cap may concern it.
    #[must_use]
    pub fn agent_rules(&self, pool: &PoolName, limits: &[Limit], order: Order) -> Vec<AgentRule> {
        let is_of_a_limit = |share: &&Share| {
            limits.is_empty() || limits.iter().any(|limit| share.of_limit(limit).is_some())
        };
        // A cap that is a rate needs no limit of the pool: it has a period of its own.
        let is_cap =
            |share: &&Share| matches!(share.portion, Portion::Rate { .. }) || is_of_a_limit(share);
        let rules = self.agents.iter().map(|(name, agent)| AgentRule {
            name: name.clone(),
            // Every agent is standard by default, so this priority needs no rule.
            priority: agent.priority.filter(|priority| *priority != Priority::Standard),
            floors: agent.floor.on(pool).iter().filter(is_of_a_limit).cloned().collect(),
            caps: agent.cap.on(pool).iter().filter(is_cap).cloned().collect(),
            weight: if order == Order::Fair { agent.weight } else { 1 },
        });
        let has_effect = |rule: &AgentRule| {
            let shares = !rule.floors.is_empty() || !rule.caps.is_empty();
            rule.priority.is_some() || shares || rule.weight != 1
        };
        rules.filter(has_effect).collect()
    }

    /// Returns the pools that a pool lies within, nearest first.
    #[must_use]
    pub fn ancestors(&self, pool: &PoolName) -> Vec<PoolName> {
        let mut chain: Vec<PoolName> = Vec::new();
        let parent = |of: &PoolName| self.pools.get(of).and_then(|pool| pool.within.clone());
        let mut next = parent(pool);
        while let Some(name) = next.filter(|_| chain.len() < MAX_ANCESTORS) {
            next = parent(&name);
            chain.push(name);
        }
        chain
    }

    /// Returns what decides the precedence between these settings and others.
    #[must_use]
    pub const fn source(&self) -> Source {
        Source::File { version: self.version, written: self.written }
    }

    /// Whether calls on pools that are not described are allowed.
    #[must_use]
    pub fn has_open_pools(&self) -> bool {
        self.open_pools.unwrap_or(self.pools.is_empty())
    }

    /// Returns why a pool may not be used: there is a file, it does not describe the pool, it does
    /// not allow other pools, and the pool is not learned.
    #[must_use]
    pub fn unknown_pool(&self, pool: &PoolName) -> Option<ConfigError> {
        let file = self.origin.as_ref()?;
        if self.has_open_pools() || self.pools.contains_key(pool) || self.is_learned(pool) {
            return None;
        }
        let (what, remedy) = self.missing_pool(pool);
        Some(Problem { file: Some(file.clone()), line: None, what, remedy }.into())
    }

    /// Returns whether a pool can be used without a description: its provider is known, so that its
    /// limits are learned, and the file says nothing about that provider's pools.
    fn is_learned(&self, pool: &PoolName) -> bool {
        let own = dialect_of(pool.as_str(), None);
        let described = |(name, settings): (&PoolName, &PoolSettings)| {
            dialect_of(name.as_str(), settings.provider.as_deref()) == own
        };
        own != Dialect::Generic && !self.pools.iter().any(described)
    }

    /// Returns whether calls of a provider have no limits: nothing is learned from its responses,
    /// and no pool is one of its own.
    #[must_use]
    pub fn is_unlimited(&self, provider: &str) -> bool {
        let is_own = |(name, pool): (&PoolName, &PoolSettings)| {
            let prefix = name.as_str().split('/').next();
            pool.provider.as_deref().or(prefix) == Some(provider)
        };
        dialect_of(provider, Some(provider)) == Dialect::Generic && !self.pools.iter().any(is_own)
    }

    /// Returns a warning and its remedy for a file that describes no pool and forbids others: calls
    /// on any pool that is not learned are refused.
    #[must_use]
    pub fn without_pools(&self) -> Option<(String, String)> {
        let file = self.origin.as_ref()?;
        if self.has_open_pools() || !self.pools.is_empty() {
            return None;
        }
        let what = format!(
            "{} describes no pool and open_pools is false: every call is refused, except on pools \
             of known providers such as anthropic, openai and github",
            file.display()
        );
        let remedy =
            "add a [pool.\"provider/scope\"] with its limits, or remove open_pools = false";
        Some((what, remedy.to_owned()))
    }

    /// Returns a problem with a key, which is named by its tables and itself. It has the line of
    /// the key, if the file states it.
    #[must_use]
    pub fn problem_at(&self, key: &[&str], what: String, remedy: String) -> Problem {
        let path = key.iter().fold(String::new(), |path, part| join(&path, part));
        let line = self.lines.get(&path).copied();
        Problem { file: self.origin.clone(), line, what, remedy }
    }

    /// Returns the problem and the remedy for a pool that is not described.
    pub(crate) fn missing_pool(&self, pool: &PoolName) -> (String, String) {
        let known = self.pools.keys().map(PoolName::as_str);
        let remedy = match nearest(pool.as_str(), known) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!(
                "add [{}] with a limit such as requests = \"60/min\", or write open_pools = true",
                join("pool", pool.as_str())
            ),
        };
        (format!("there is no pool `{pool}`"), remedy)
    }
}
