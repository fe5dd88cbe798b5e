//! What the doctor looks at: gathered once, so that every check sees the same.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use standpipe_store::PoolName;
use standpipe_store_file::Survey;

use super::WEEK_MS;
use crate::config::{ConfigError, Settings};
use crate::error::Error;
use crate::journal::{Event, What};
use crate::moment::Moment;
use crate::shared::glance::Glance;
use crate::tap::Standpipe;

/// Pools, each as it is or with the reason why it cannot be read.
pub(super) type Pools = Vec<(PoolName, Result<Glance, Error>)>;

/// What the doctor looks at.
pub(crate) struct Scene {
    pub(super) now: Moment,
    /// The configuration, or what is wrong with it.
    pub(super) settings: Result<Settings, ConfigError>,
    /// The configuration is broken and could have named another store than this one.
    pub(super) assumed: bool,
    /// What `$STANDPIPE_AGENT` says.
    pub(super) agent: Option<String>,
    /// Where the file store lies, as it can be seen without opening it.
    pub(super) survey: Option<Survey>,
    /// The tap on that store, opened without the configuration if that is broken.
    pub(super) tap: Result<Standpipe, Error>,
    /// The pools of the store, or why they cannot be listed.
    pub(super) pools: Result<Pools, Error>,
    /// What the journal has of the last seven days, oldest first.
    pub(super) week: Vec<Event>,
}

impl Scene {
    pub(crate) fn new(
        settings: Result<Settings, ConfigError>,
        agent: Option<String>,
        directory: Option<PathBuf>,
        tap: Result<Standpipe, Error>,
    ) -> Self {
        let week_ago = SystemTime::now().checked_sub(Duration::from_millis(WEEK_MS));
        let journal = tap.as_ref().ok().map(Standpipe::journal);
        Self {
            now: Moment::now(),
            settings,
            assumed: false,
            agent,
            // A directory of which nothing can be seen is one the store cannot open either.
            survey: directory.and_then(|directory| Survey::of(&directory).ok()),
            pools: tap.as_ref().map_or_else(|_| Ok(Vec::new()), pools),
            week: journal.into_iter().flat_map(|journal| journal.events(week_ago, None)).collect(),
            tap,
        }
    }

    /// The same, where it is not known which store is meant.
    pub(crate) const fn assuming(mut self, assumed: bool) -> Self {
        self.assumed = assumed;
        self
    }

    /// Whether there is a journal to see anything by.
    pub(super) fn has_journal(&self) -> bool {
        self.tap.as_ref().is_ok_and(|tap| tap.journal().directory().is_some())
    }

    /// The pools that can be read.
    pub(super) fn readable(&self) -> impl Iterator<Item = (&PoolName, &Glance)> {
        let pools = self.pools.as_ref().into_iter().flatten();
        pools.filter_map(|(name, glance)| Some((name, glance.as_ref().ok()?)))
    }

    /// One of them.
    pub(super) fn pool(&self, name: &str) -> Option<&Glance> {
        self.readable().find(|(known, _)| known.as_str() == name).map(|(_, glance)| glance)
    }

    /// The refusals of the week that were about quota: when, on which pool, whose.
    pub(super) fn refusals(&self) -> impl Iterator<Item = (Moment, &str, Option<&str>)> {
        self.week.iter().filter_map(|event| match &event.what {
            What::Throttle { agent, about, .. } if about != "overload" => {
                Some((event.at, event.pool.as_str(), agent.as_deref()))
            }
            _ => None,
        })
    }
}

fn pools(tap: &Standpipe) -> Result<Pools, Error> {
    let guard = tap.guard()?;
    let names = tap.pools_in_store()?.into_iter();
    Ok(names.map(|name| (name.clone(), guard.shared().glance(&name))).collect())
}
