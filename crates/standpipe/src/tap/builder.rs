//! Options for opening a tap.
//!
//! Without options it opens what the command line would. `open` chooses the store.

use std::env;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use standpipe_store::Store;

use super::{Standpipe, Tap, open};
use crate::client::fork_aware::ForkAware;
use crate::config::{ConfigError, Settings, StoreUrl};
use crate::doctor::{self, Diagnosis};
use crate::error::Error;
use crate::journal::{Journal, JournalDirectory};
use crate::request::agent_name;

/// Options for opening a tap.
///
/// ```
/// use standpipe::config::{Settings, StoreUrl};
/// use standpipe::Standpipe;
///
/// # fn main() -> Result<(), standpipe::Error> {
/// let file = Some("standpipe.toml".as_ref());
/// let settings = Settings::parse("[pool.\"my/api\"]\nrequests = \"60/min\"\n", file, 0)?;
/// let tap = Standpipe::builder().settings(settings).store(StoreUrl::Memory).agent("blog").open()?;
/// assert_eq!(tap.agent(), "blog");
/// assert!(tap.pool("my/apy").is_err(), "a file names the pools there are");
/// # Ok(())
/// # }
/// ```
#[derive(Default)]
#[must_use = "nothing is open until `open` is called"]
pub struct Builder {
    config: Option<PathBuf>,
    settings: Option<Settings>,
    store: Option<StoreUrl>,
    on: Option<Arc<dyn Store>>,
    home: Option<PathBuf>,
    journal: Option<bool>,
    agent: Option<String>,
}

impl Builder {
    /// Reads this configuration file and no other.
    pub fn config(mut self, path: impl Into<PathBuf>) -> Self {
        self.config = Some(path.into());
        self
    }

    /// Uses these settings and reads no file.
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = Some(settings);
        self
    }

    /// Sets the store, whatever the configuration states.
    pub fn store(mut self, url: StoreUrl) -> Self {
        self.store = Some(url);
        self
    }

    /// Uses a store that is already open. Taps on the same one share a session.
    pub fn on(mut self, store: Arc<dyn Store>) -> Self {
        self.on = Some(store);
        self
    }

    /// Sets the directory for pools and the journal, instead of the user's.
    pub fn home(mut self, directory: impl Into<PathBuf>) -> Self {
        self.home = Some(directory.into());
        self
    }

    /// Sets whether to keep a journal. It is kept beside the pools of a file store, and for other
    /// stores in the directory of [`Builder::home`].
    pub const fn journal(mut self, keep: bool) -> Self {
        self.journal = Some(keep);
        self
    }

    /// Sets the agent of requests that name none, instead of `$STANDPIPE_AGENT` or the program's
    /// name.
    pub fn agent(mut self, name: impl Into<String>) -> Self {
        self.agent = Some(name.into());
        self
    }

    /// Opens the tap.
    ///
    /// # Errors
    /// As [`Standpipe::open`].
    pub fn open(self) -> Result<Standpipe, Error> {
        let env = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        let mut settings = match self.settings {
            Some(settings) => settings,
            None => find_settings(self.config.as_deref(), &env)?,
        };
        if let Some(url) = self.store {
            settings.store = Some(settings.store.unwrap_or_default().at(url));
        }
        let agent = match (self.agent, env("STANDPIPE_AGENT")) {
            (Some(agent), _) => agent_name(&agent)?.as_str().to_owned(),
            (None, Some(agent)) => agent_of_variable(&agent)?,
            (None, None) => program_agent(),
        };
        let found = match self.on {
            Some(store) => open::on(store),
            None => {
                let store = settings.store.clone().unwrap_or_default();
                open::by_settings(&store, &settings, self.home.as_deref(), &env)?
            }
        };
        let directory = self.home.filter(|_| found.directory.is_none()).or(found.directory);
        let place = match (directory, self.journal) {
            (Some(directory), None | Some(true)) => Some(JournalDirectory::new(directory)),
            _ => None,
        };
        let journal = Journal::new(place.clone());
        let fork_aware = ForkAware::new(found.key, found.open, place)?;
        Ok(Standpipe { tap: Arc::new(Tap::new(fork_aware, settings, journal, agent)) })
    }
}

impl Builder {
    /// Checks everything that can be wrong with what it would open: the configuration, the store,
    /// and its pools. It never fails: what cannot be opened is a finding.
    ///
    /// ```
    /// # use standpipe::config::{Settings, StoreUrl};
    /// # use standpipe::{Standpipe};
    /// # use standpipe::observe::{Level};
    /// let builder = Standpipe::builder().settings(Settings::default()).store(StoreUrl::Memory);
    /// let diagnosis = builder.diagnose();
    /// assert_eq!(diagnosis.count(Level::Failure), 0);
    /// ```
    #[must_use]
    pub fn diagnose(self) -> Diagnosis {
        let env = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        let found = match self.settings.clone() {
            Some(settings) => Ok(settings),
            None => find_settings(self.config.as_deref(), &env),
        };
        let settings = found.clone().unwrap_or_default();
        let mut store = settings.store.clone().unwrap_or_default();
        if let Some(url) = self.store.clone() {
            store = store.at(url);
        }
        let place = match self.on {
            Some(_) => None,
            None => open::by_settings(&store, &settings, self.home.as_deref(), &env).ok(),
        };
        let directory = place.and_then(|place| place.directory);
        let agent = self.agent.clone().or_else(|| env("STANDPIPE_AGENT"));
        let own = Some(program_agent());
        let assumed = found.is_err() && self.store.is_none() && self.on.is_none();
        let tap = Self { settings: Some(settings), agent: own, ..self }.open();
        Diagnosis::of(&doctor::scene(found, assumed, agent, directory, &tap))
    }
}

/// Reads the settings that the command line would find.
#[cfg(feature = "config")]
fn find_settings(
    explicit: Option<&Path>,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Settings, ConfigError> {
    Settings::find(explicit, env)
}

/// Without the feature `config` no file is read.
#[cfg(not(feature = "config"))]
fn find_settings(
    _explicit: Option<&Path>,
    _env: &dyn Fn(&str) -> Option<String>,
) -> Result<Settings, ConfigError> {
    Ok(Settings::default())
}

/// Returns the agent of `$STANDPIPE_AGENT`. The error names the variable.
fn agent_of_variable(text: &str) -> Result<String, Error> {
    match agent_name(text) {
        Ok(agent) => Ok(agent.as_str().to_owned()),
        Err(Error::Invalid { what, remedy }) => {
            Err(Error::Invalid { what: format!("$STANDPIPE_AGENT: {what}"), remedy })
        }
        Err(error) => Err(error),
    }
}

/// Returns the calling program's name as an agent.
fn program_agent() -> String {
    let program = env::current_exe().ok();
    let name = program.as_deref().and_then(|path| path.file_name()).unwrap_or_default();
    named_after(&name.to_string_lossy())
}

/// Returns the default agent of a program: its name, with `-` for other characters.
#[must_use]
pub fn named_after(program: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._@-".contains(c) { c } else { '-' };
    let name: String = program.trim().chars().map(plain).take(64).collect();
    if name.is_empty() { "unnamed".to_owned() } else { name }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("config", &self.config)
            .field("store", &self.store)
            .field("home", &self.home)
            .field("agent", &self.agent)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_program_has_an_agent() {
        for (program, agent) in [("blog", "blog"), ("my job", "my-job"), ("größe", "gr--e")] {
            assert_eq!(named_after(program), agent);
        }
        assert_eq!(named_after(""), "unnamed");
        assert!(agent_name(&named_after(&"🚰".repeat(100))).is_ok());
    }
}
