//! Flags and environment, put together: the ledger a command works on, and who asks.

use std::cell::OnceCell;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use standpipe::{
    AgentName, Builder, Configured, Error, Limit, Origin, Pool, PoolName, Request, Span, Standpipe,
    StoreUrl,
};
use standpipe_server::Log;

use crate::args::Globals;
use crate::caller;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::printer::Printer;
use crate::show::kept;

/// What the flags that every command takes come to.
#[derive(Debug)]
pub(crate) struct Settings {
    globals: Globals,
    /// The ledger, once it was opened.
    opened: OnceCell<Standpipe>,
}

impl Settings {
    pub(crate) const fn new(globals: Globals) -> Self {
        Self { globals, opened: OnceCell::new() }
    }

    /// What happened to the store that its user should know: a damaged ledger, a deleted one.
    pub(crate) fn news(&self) -> Vec<String> {
        self.opened.get().and_then(|tap| tap.news().ok()).unwrap_or_default()
    }

    /// The configuration that counts: `--config`, or where it is looked for.
    ///
    /// # Errors
    /// When there is one and it cannot be used.
    pub(crate) fn found(&self) -> Result<standpipe::Settings, Failure> {
        self.found_at(None)
    }

    /// The same, for a file that is named.
    ///
    /// # Errors
    /// When it cannot be used.
    pub(crate) fn found_at(&self, file: Option<&Path>) -> Result<standpipe::Settings, Failure> {
        let file = file.or(self.globals.config.as_deref());
        Ok(standpipe::Settings::find(file, &|name| std::env::var(name).ok())?)
    }

    /// Where a person's configuration is written: where it is looked for first.
    pub(crate) fn usual_file(&self) -> Option<PathBuf> {
        let path = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        let directory = || {
            let config = path("XDG_CONFIG_HOME").filter(|config| config.is_absolute());
            let config = config.or_else(|| path("HOME").map(|home| home.join(".config")))?;
            Some(config.join("standpipe").join("standpipe.toml"))
        };
        self.globals.config.clone().or_else(|| path("STANDPIPE_CONFIG")).or_else(directory)
    }

    /// The ledger.
    ///
    /// # Errors
    /// When the configuration cannot be used or the store not be opened.
    pub(crate) fn open(&self) -> Result<Standpipe, Failure> {
        let tap = self.builder().open()?;
        Ok(self.opened.get_or_init(|| tap).clone())
    }

    /// Which store that is, whether or not it can be opened.
    pub(crate) fn store(&self, found: &standpipe::Settings) -> StoreUrl {
        let said = found.store.as_ref().map(|store| store.url.clone());
        self.globals.store.clone().or(said).unwrap_or(StoreUrl::File(None))
    }

    /// How the ledger is opened.
    pub(crate) fn builder(&self) -> Builder {
        let mut builder = Standpipe::builder();
        if let Some(file) = &self.globals.config {
            builder = builder.config(file);
        }
        if let Some(url) = &self.globals.store {
            builder = builder.store(url.clone());
        }
        builder
    }

    /// How the daemon is started with these flags.
    pub(crate) fn daemon(&self, listen: Option<SocketAddr>, log: Log) -> standpipe_server::Options {
        let Globals { config, store, .. } = &self.globals;
        standpipe_server::Options { config: config.clone(), store: store.clone(), listen, log }
    }

    /// Whether only failures are to be said.
    pub(crate) const fn is_quiet(&self) -> bool {
        self.globals.quiet
    }

    /// A pool to take from, with the limits of the command line, if any. One that is not there is
    /// made. When other limits count, that is said.
    ///
    /// # Errors
    /// When the pool is not one of the configuration's, or the limits cannot be used.
    pub(crate) fn limited(
        &self,
        tap: &Standpipe,
        name: &PoolName,
        limits: &[Limit],
        request: &Request,
        printer: &Printer,
    ) -> Result<Pool, Failure> {
        let pool = tap.pool(name.as_str())?;
        // A call that cannot be understood makes no pool.
        pool.check(request, limits)?;
        let described = tap.settings().pools.contains_key(name);
        let stated = !limits.is_empty() || described || pool.learns();
        if !stated && !tap.pools()?.contains(name) {
            return Err(Error::NoLimits { pool: name.clone() }.into());
        }
        // A store that does not answer is the business of whoever asks to be admitted.
        if let Some(file) = tap.settings().origin.as_ref().filter(|_| described)
            && matches!(pool.configured(), Ok(Some(Configured::Kept)))
        {
            let (origin, in_force) = in_force(&pool)?;
            printer.talk(&kept::file(name, &origin, &in_force, file));
        }
        if !limits.is_empty() && pool.limit(limits.to_vec())? == Configured::Kept {
            let (origin, in_force) = in_force(&pool)?;
            if let Some(said) = kept::flags(name, &origin, &in_force, limits) {
                printer.talk(&said);
            }
        }
        Ok(pool)
    }

    /// What is done before a call asks to be admitted. A store that is away is waited for as long
    /// as the call may wait; answers how much of that time is left, too.
    ///
    /// # Errors
    /// As `act`.
    pub(crate) fn in_time<T>(
        timeout: Duration,
        mut act: impl FnMut() -> Result<T, Failure>,
    ) -> Result<(T, Duration), Failure> {
        let began = Instant::now();
        loop {
            match act() {
                Ok(done) => return Ok((done, timeout.saturating_sub(began.elapsed()))),
                Err(failure) if failure.exit == Exit::Store && began.elapsed() < timeout => {
                    std::thread::sleep(Duration::from_millis(100));
                }
                Err(failure) => return Err(failure),
            }
        }
    }

    /// A pool to look at or to tell something, also one that a file does not describe. One that is
    /// not there is not made.
    ///
    /// # Errors
    /// When there is none of that name.
    pub(crate) fn known(&self, tap: &Standpipe, name: &PoolName) -> Result<Pool, Failure> {
        let known = tap.pools()?;
        if known.contains(name) {
            return Ok(tap.pool_as_it_is(name));
        }
        let names = known.iter().map(PoolName::as_str);
        let remedy = match standpipe::config::nearest(name.as_str(), names) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "`standpipe status` shows those there are; the first `hold` or `reserve` \
                     makes one"
                .to_owned(),
        };
        Err(Failure::new(Exit::Config, "no_pool", &format!("there is no pool `{name}`"), &remedy))
    }

    /// A pool to tell what its provider said. One of a provider we know may hear that first of all.
    ///
    /// # Errors
    /// As [`Settings::known`].
    pub(crate) fn told(&self, tap: &Standpipe, name: &PoolName) -> Result<Pool, Failure> {
        match tap.pool(name.as_str()) {
            Ok(pool) if pool.learns() => Ok(pool),
            _ => self.known(tap, name),
        }
    }

    /// The pools there are, or the one that is wanted.
    ///
    /// # Errors
    /// When it is not there.
    pub(crate) fn pools(
        &self,
        tap: &Standpipe,
        wanted: Option<&PoolName>,
    ) -> Result<Vec<Pool>, Failure> {
        if let Some(wanted) = wanted {
            return Ok(vec![self.known(tap, wanted)?]);
        }
        Ok(tap.pools()?.iter().map(|name| tap.pool_as_it_is(name)).collect())
    }

    /// A pool to try something on without changing it. One that is not there, but is given limits,
    /// is tried in memory.
    ///
    /// # Errors
    /// When there is none of that name and no limits are given.
    pub(crate) fn unchanged(
        &self,
        tap: &Standpipe,
        name: &PoolName,
        limits: &[Limit],
    ) -> Result<Pool, Failure> {
        if limits.is_empty() || tap.pools()?.contains(name) {
            self.known(tap, name)?;
            return Ok(tap.pool(name.as_str())?);
        }
        let settings = tap.settings().clone();
        let memory = Standpipe::builder().settings(settings).store(StoreUrl::Memory).open()?;
        let pool = memory.pool(name.as_str())?;
        pool.limit(limits.to_vec())?;
        Ok(pool)
    }

    /// Who asks.
    ///
    /// # Errors
    /// When the environment names somebody who cannot be.
    pub(crate) fn agent(&self, said: Option<AgentName>) -> Result<AgentName, Failure> {
        if let Some(agent) = said {
            return Ok(agent);
        }
        let name = caller::agent();
        AgentName::new(&name).ok_or_else(|| {
            Failure::usage(
                &format!("$STANDPIPE_AGENT is `{name}`, which is no agent's name"),
                "use 1 to 64 of the characters A-Z a-z 0-9 . _ @ -",
            )
        })
    }
}

/// What a pool goes by, and who said so.
fn in_force(pool: &Pool) -> Result<(Origin, Vec<Limit>), Failure> {
    let limits = pool.config()?.map(|config| config.limits).unwrap_or_default();
    Ok((pool.status()?.origin, limits))
}

/// A length of the command line as the library takes it.
pub(crate) const fn duration(span: Span) -> Duration {
    Duration::from_micros(span.0)
}
