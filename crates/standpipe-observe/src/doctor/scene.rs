//! What the doctor looks at: plain data, gathered once, so that every check sees the same.

use std::path::PathBuf;

use standpipe_config::{ConfigError, Settings};
use standpipe_store::PoolName;

use crate::journal::{Event, EventData, UnwritableFile};
use crate::status::{LostLedger, PoolOverview};
use crate::time::Timestamp;

/// Pools, each as it is or with the reason why it cannot be read.
pub type Pools = Vec<(PoolName, Result<PoolOverview, String>)>;

/// What the doctor looks at. Errors are sentences: what is wrong, and behind a semicolon what to
/// do.
#[derive(Debug)]
pub struct Scene {
    /// When it was gathered.
    pub now: Timestamp,
    /// The configuration, or what is wrong with it.
    pub settings: Result<Settings, ConfigError>,
    /// The configuration is broken and could have named another store than this one.
    pub assumed: bool,
    /// The value of `$STANDPIPE_AGENT`.
    pub agent: Option<String>,
    /// Where the file store lies, as it can be seen without opening it.
    pub survey: Option<Survey>,
    /// The store, opened without the configuration if that is broken, or why it cannot be opened.
    pub store: Result<OpenStore, String>,
    /// What the journal has of the last seven days, oldest first.
    pub week: Vec<Event>,
}

/// A store that could be opened.
#[derive(Debug)]
pub struct OpenStore {
    /// What a person would call it: a path, an address without secrets.
    pub place: String,
    /// Its pools, or why they cannot be listed.
    pub pools: Result<Pools, String>,
    /// The directory of the journal; none if none is kept.
    pub journal: Option<PathBuf>,
    /// The files of the journal that no line can be added to.
    pub unwritable: Vec<UnwritableFile>,
    /// What came of writing something and reading it again.
    pub round_trip: Result<RoundTrip, String>,
    /// What happened to the store while it was looked at, as sentences.
    pub messages: Vec<String>,
    /// Ledgers that were damaged, or of an older version, and kept for people to look at.
    pub quarantined: Vec<PathBuf>,
    /// Ledgers that are gone, and that no call has made anew.
    pub lost: Vec<LostLedger>,
    /// What the server of a network store reports about itself, or why it does not.
    pub server: Option<Result<ServerInfo, String>>,
}

/// What was written and read again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoundTrip {
    /// A file of its own, beside the pools.
    Marker,
    /// An event of this pool, which changes nothing.
    Event(PoolName),
    /// Nothing, because there is no pool yet.
    NoPool,
}

/// What a state directory looks like from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survey {
    /// The directory, or the longest part of its path that exists.
    pub path: PathBuf,
    /// Whether the directory itself exists.
    pub exists: bool,
    /// Its permissions.
    pub mode: u32,
    /// The user id of its owner.
    pub owner: u32,
    /// The user id of this process.
    pub user: u32,
    /// The type of its file system, where the system shows it.
    pub file_system: Option<String>,
    /// The name of its network file system, where locks do not hold; `None` if it is local.
    pub network: Option<String>,
    /// How many bytes this user can still write.
    pub free: u64,
}

/// What a server reports about itself, as far as the user may ask.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerInfo {
    /// `Redis` or `Valkey`, and the version.
    pub version: String,
    /// The eviction policy, `maxmemory-policy`.
    pub eviction: Option<String>,
    /// Whether the append-only file is enabled.
    pub append_only_file: Option<bool>,
    /// How many replicas are connected.
    pub replicas: Option<u32>,
    /// Whether it is a master.
    pub is_master: bool,
    /// Whether the connection is encrypted or stays on this machine.
    pub is_private: bool,
    /// Whether this process logs in with a password.
    pub has_password: bool,
}

impl OpenStore {
    /// The pools that can be read.
    pub fn readable(&self) -> impl Iterator<Item = (&PoolName, &PoolOverview)> {
        let pools = self.pools.as_ref().into_iter().flatten();
        pools.filter_map(|(name, overview)| Some((name, overview.as_ref().ok()?)))
    }
}

impl Scene {
    /// Whether the store cannot be opened, or its pools cannot be listed.
    pub(super) fn is_unreachable(&self) -> bool {
        self.store.as_ref().map_or(true, |store| store.pools.is_err())
    }

    /// Whether there is a journal to see anything by.
    pub(super) fn has_journal(&self) -> bool {
        self.store.as_ref().is_ok_and(|store| store.journal.is_some())
    }

    /// The pools that can be read.
    pub(super) fn readable(&self) -> impl Iterator<Item = (&PoolName, &PoolOverview)> {
        self.store.iter().flat_map(OpenStore::readable)
    }

    /// The pools whose ledger cannot be read.
    pub(super) fn unreadable(&self) -> impl Iterator<Item = &PoolName> {
        let pools = self.store.iter().flat_map(|store| store.pools.as_ref().into_iter().flatten());
        pools.filter(|(_, seen)| seen.is_err()).map(|(name, _)| name)
    }

    /// A pool that can be read.
    pub(super) fn pool(&self, name: &str) -> Option<&PoolOverview> {
        self.readable().find(|(known, _)| known.as_str() == name).map(|(_, overview)| overview)
    }

    /// The refusals of the week that were about quota: when, on which pool, whose.
    pub(super) fn refusals(&self) -> impl Iterator<Item = (Timestamp, &str, Option<&str>)> {
        self.week.iter().filter_map(|event| match &event.what {
            EventData::Throttle { agent, about, .. } if about != "overload" => {
                Some((event.at, event.pool.as_str(), agent.as_deref()))
            }
            _ => None,
        })
    }
}
