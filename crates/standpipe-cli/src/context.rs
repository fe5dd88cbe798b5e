//! What a command works with: the configuration, the ledger, and the calling agent, from flags and
//! environment.
//!
//! The store is opened when a command first needs it. Looking at a pool never creates it; only
//! [`Context::pool_to_reserve`] does.

use std::cell::OnceCell;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use standpipe::observe::{Origin, Timestamp};
use standpipe::{
    AgentName, Builder, Configured, Error, Limit, Pool, PoolName, Priority, Request, Span,
    Standpipe, StoreUrl,
};
use standpipe_server::Log;

use crate::args::{GlobalArgs, parse};
use crate::caller;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::printer::Printer;
use crate::show::limits_kept;
use crate::show::local_time::clock;

/// The flags of a command and the ledger they lead to.
#[derive(Debug)]
pub(crate) struct Context {
    globals: GlobalArgs,
    /// The ledger, once it is open.
    opened: OnceCell<Standpipe>,
}

impl Context {
    pub(crate) const fn new(globals: GlobalArgs) -> Self {
        Self { globals, opened: OnceCell::new() }
    }

    /// Returns what the user should know about the store: a damaged ledger, a deleted one.
    pub(crate) fn warnings(&self) -> Vec<String> {
        self.opened.get().and_then(|tap| tap.take_messages().ok()).unwrap_or_default()
    }

    /// Reads the configuration: the file of `--config`, or the first of the usual places.
    ///
    /// # Errors
    /// When there is a file and it is invalid.
    pub(crate) fn config(&self) -> Result<standpipe::Settings, Failure> {
        self.config_at(None)
    }

    /// Reads the configuration in `file`, if given, else as [`Context::config`] does.
    ///
    /// # Errors
    /// When the file is missing or invalid.
    pub(crate) fn config_at(&self, file: Option<&Path>) -> Result<standpipe::Settings, Failure> {
        let file = file.or(self.globals.config.as_deref());
        Ok(standpipe::Settings::find(file, &|name| std::env::var(name).ok())?)
    }

    /// Returns the path of the user's configuration file, the first place that is searched.
    pub(crate) fn default_config_file(&self) -> Option<PathBuf> {
        let path = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        let directory = || {
            let config = path("XDG_CONFIG_HOME").filter(|config| config.is_absolute());
            let config = config.or_else(|| path("HOME").map(|home| home.join(".config")))?;
            Some(config.join("standpipe").join("standpipe.toml"))
        };
        self.globals.config.clone().or_else(|| path("STANDPIPE_CONFIG")).or_else(directory)
    }

    /// Opens the ledger.
    ///
    /// # Errors
    /// When the configuration is invalid or the store cannot be opened.
    pub(crate) fn open(&self) -> Result<Standpipe, Failure> {
        let tap = self.builder().open()?;
        Ok(self.opened.get_or_init(|| tap).clone())
    }

    /// Returns the store that would be opened.
    pub(crate) fn store(&self, found: &standpipe::Settings) -> StoreUrl {
        let configured = found.store.as_ref().map(|store| store.url.clone());
        self.globals.store.clone().or(configured).unwrap_or(StoreUrl::File(None))
    }

    /// Returns the library's builder with the flags applied.
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

    /// Returns the options of the daemon with the flags applied.
    pub(crate) fn daemon(&self, listen: Option<SocketAddr>, log: Log) -> standpipe_server::Options {
        let GlobalArgs { config, store, .. } = &self.globals;
        standpipe_server::Options { config: config.clone(), store: store.clone(), listen, log }
    }

    /// Whether only errors are printed on standard error.
    pub(crate) const fn is_quiet(&self) -> bool {
        self.globals.quiet
    }

    /// Returns a pool to reserve on. The reserve creates it, with its limits, in one step.
    ///
    /// # Errors
    /// When the configuration does not allow the pool, or the limits are invalid.
    pub(crate) fn pool_to_reserve(
        tap: &Standpipe,
        name: &PoolName,
        limits: &[Limit],
        request: &Request,
    ) -> Result<Pool, Failure> {
        let pool = tap.pool(name.as_str())?;
        // Before anything is created: an invalid call must not leave a pool behind.
        pool.check(request, limits).blocking()?;
        if limits.is_empty() {
            check_limited(tap, &pool)?;
        }
        Ok(pool)
    }

    /// Notes the calling agent if its name resembles one of the file. Without agents in the file
    /// its name need not be found out here.
    ///
    /// # Errors
    /// As [`Context::agent`].
    pub(crate) fn note_caller(
        &self,
        tap: &Standpipe,
        flag: Option<&AgentName>,
        printer: &Printer,
    ) -> Result<(), Failure> {
        if !tap.settings().agents.is_empty() {
            let agent = self.agent(flag.cloned())?;
            Self::note_agent(tap.settings(), agent.as_str(), printer);
        }
        Ok(())
    }

    /// Notes an agent that the file does not describe, if its name resembles one that it does.
    pub(crate) fn note_agent(settings: &standpipe::Settings, agent: &str, printer: &Printer) {
        let described = || settings.agents.keys().map(AgentName::as_str);
        if described().any(|known| known == agent) {
            return;
        }
        if let Some(near) = standpipe::config::nearest(agent, described()) {
            printer.note(&format!(
                "the configuration file does not describe the agent `{agent}`; did you mean \
                 `{near}`?"
            ));
        }
    }

    /// Notes that a call creates a pool: one that resembles another may be misspelled, and one
    /// without limits has to learn them. Returns what the pool's limits are before the call.
    ///
    /// # Errors
    /// When the pools cannot be listed.
    pub(crate) fn note_new_pool(
        tap: &Standpipe,
        pool: &Pool,
        limits: &[Limit],
        printer: &Printer,
    ) -> Result<LimitsBefore, Failure> {
        let name = pool.name();
        // A list of a network store costs a round trip, which limits that are stated do not earn.
        let is_costly = !limits.is_empty() && tap.is_remote()?;
        if is_costly || tap.settings().pools.contains_key(name) {
            return Ok(LimitsBefore::NotRead);
        }
        let known = tap.pools().blocking()?;
        if known.contains(name) {
            let config = if limits.is_empty() { None } else { pool.config().blocking()? };
            // Another process may be about to create it.
            let config = config.filter(|config| !config.limits.is_empty() || pool.learns());
            return Ok(config.map_or(LimitsBefore::New, |config| LimitsBefore::Are(config.limits)));
        }
        let described = tap.settings().pools.keys();
        let names = known.iter().chain(described).map(PoolName::as_str);
        let near = standpipe::config::nearest_path(name.as_str(), names);
        let near = near.map(|near| format!("; did you mean `{near}`?"));
        match (near, limits.is_empty()) {
            (None, false) => {}
            (near, false) => {
                printer.note(&format!("created `{name}`{}", near.unwrap_or_default()));
            }
            (near, true) => printer.note(&format!(
                "created `{name}`, whose limits are unknown: they are learned from the provider's \
                 responses{}",
                near.unwrap_or_default()
            )),
        }
        Ok(LimitsBefore::New)
    }

    /// Notes it when the limits of the command line changed a pool. `changed` is what the ledger
    /// decided, which only an admitted call knows: of several calls that create a pool together,
    /// those that come second change nothing.
    pub(crate) fn note_changed_limits(
        pool: &Pool,
        before: &LimitsBefore,
        limits: &[Limit],
        changed: Option<bool>,
        printer: &Printer,
    ) {
        let (is_due, before) = match before {
            LimitsBefore::New => (false, None),
            LimitsBefore::NotRead => (changed == Some(true) && is_shared(pool), None),
            LimitsBefore::Are(before) => {
                let is_other = !limits.iter().all(|limit| before.contains(limit));
                (is_other && changed != Some(false), Some(before.as_slice()))
            }
        };
        let Some(Ok(Some(now))) = is_due.then(|| pool.config().blocking()) else { return };
        let note = limits_kept::changed_by_flags(pool.name(), before, &now.limits, limits);
        if let Some(note) = note {
            printer.note(&note);
        }
    }

    /// Checks the further pools of a call, before anything is reserved or created.
    ///
    /// # Errors
    /// When the configuration does not allow a pool, or it has no limits.
    pub(crate) fn check_others(tap: &Standpipe, names: &[PoolName]) -> Result<(), Failure> {
        names.iter().try_for_each(|name| check_limited(tap, &tap.pool(name.as_str())?))
    }

    /// Notes it when the pool keeps other limits than those of the file or of the command line.
    /// `in_force` is what the reserve found out about the latter.
    ///
    /// # Errors
    /// When the pool cannot be read.
    pub(crate) fn note_kept_limits(
        tap: &Standpipe,
        pool: &Pool,
        limits: &[Limit],
        in_force: Option<bool>,
        printer: &Printer,
    ) -> Result<(), Failure> {
        let name = pool.name();
        // The reserve has sent the file's configuration, so this takes no step.
        let described = tap.settings().pools.contains_key(name);
        if let Some(file) = tap.settings().origin.as_ref().filter(|_| described)
            && matches!(pool.configured().blocking(), Ok(Some(Configured::Kept)))
        {
            let (kept, stated) = (pool.config().blocking()?, tap.settings().pool_config(name));
            let origin = pool.status().blocking()?.origin;
            let note = limits_kept::over_file(name, &origin, kept.as_ref(), stated.as_ref(), file);
            note.iter().for_each(|note| printer.note(note));
        }
        if in_force == Some(false) {
            let (origin, kept) = limits_in_force(pool)?;
            if let Some(note) = limits_kept::over_flags(name, &origin, &kept, limits) {
                printer.note(&note);
            }
        }
        Ok(())
    }

    /// Retries `act` while the store is unavailable, for as long as the call may wait, and notes so
    /// after a second. Returns its result and the rest of that time.
    ///
    /// # Errors
    /// As `act`.
    pub(crate) fn retry_within<T>(
        timeout: Duration,
        printer: &Printer,
        mut act: impl FnMut() -> Result<T, Failure>,
    ) -> Result<(T, Duration), Failure> {
        let (began, mut noted) = (Instant::now(), false);
        loop {
            match act() {
                Ok(done) => return Ok((done, timeout.saturating_sub(began.elapsed()))),
                Err(failure) if failure.exit == Exit::Store && began.elapsed() < timeout => {
                    if !noted && began.elapsed() >= Duration::from_secs(1) {
                        noted = true;
                        let end = SystemTime::now() + timeout.saturating_sub(began.elapsed());
                        let (why, end) = (failure.joined(), clock(Timestamp::of(end)));
                        printer.note(&format!("{why}; retrying until {end}"));
                    }
                    std::thread::sleep(Duration::from_millis(100));
                }
                Err(failure) => return Err(failure),
            }
        }
    }

    /// Returns a pool that exists, also one that the configuration does not describe.
    ///
    /// # Errors
    /// When there is no pool of that name.
    pub(crate) fn existing_pool(&self, tap: &Standpipe, name: &PoolName) -> Result<Pool, Failure> {
        let known = tap.pools().blocking()?;
        if known.contains(name) {
            return Ok(tap.existing_pool(name));
        }
        let names = known.iter().map(PoolName::as_str);
        let near = standpipe::config::nearest(name.as_str(), names);
        match tap.settings().unknown_pool(name).filter(|_| near.is_none()) {
            // No `hold` could create it.
            Some(unknown) => Err(unknown.into()),
            None => Err(Self::no_pool(name, near)),
        }
    }

    /// The failure for a pool that does not exist, with the most similar one.
    pub(crate) fn no_pool(name: &PoolName, near: Option<&str>) -> Failure {
        let remedy = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => "`standpipe status` lists the pools; the first `hold` or `reserve` creates one"
                .to_owned(),
        };
        Failure::new(Exit::Config, "no_pool", &format!("there is no pool `{name}`"), &remedy)
    }

    /// Returns a pool to report a provider's answer to. A pool of a known provider is created by
    /// its first report, because its limits are learned.
    ///
    /// # Errors
    /// As [`Context::existing_pool`].
    pub(crate) fn reported_pool(&self, tap: &Standpipe, name: &PoolName) -> Result<Pool, Failure> {
        match tap.pool(name.as_str()) {
            Ok(pool) if pool.learns() => Ok(pool),
            _ => self.existing_pool(tap, name),
        }
    }

    /// Returns the wanted pool, or all pools.
    ///
    /// # Errors
    /// When the wanted pool does not exist.
    pub(crate) fn pools(
        &self,
        tap: &Standpipe,
        wanted: Option<&PoolName>,
    ) -> Result<Vec<Pool>, Failure> {
        if let Some(wanted) = wanted {
            return Ok(vec![self.existing_pool(tap, wanted)?]);
        }
        Ok(tap.pools().blocking()?.iter().map(|name| tap.existing_pool(name)).collect())
    }

    /// Returns a pool for a dry run. A pool that does not exist but is given limits is created in
    /// memory.
    ///
    /// # Errors
    /// When there is no pool of that name and no limits are given.
    pub(crate) fn dry_run_pool(
        &self,
        tap: &Standpipe,
        name: &PoolName,
        limits: &[Limit],
    ) -> Result<Pool, Failure> {
        if limits.is_empty() || tap.pools().blocking()?.contains(name) {
            self.existing_pool(tap, name)?;
            return Ok(tap.pool(name.as_str())?);
        }
        let settings = tap.settings().clone();
        let memory = Standpipe::builder().settings(settings).store(StoreUrl::Memory).open()?;
        let pool = memory.pool(name.as_str())?;
        pool.limit(limits.to_vec()).blocking()?;
        Ok(pool)
    }

    /// Returns the calling agent: the flag, else [`caller::agent`].
    ///
    /// # Errors
    /// When the environment holds an invalid name.
    pub(crate) fn agent(&self, flag: Option<AgentName>) -> Result<AgentName, Failure> {
        self.agent_or(flag, caller::agent)
    }

    /// Returns the calling agent: the flag, `$STANDPIPE_AGENT`, else `named`.
    ///
    /// # Errors
    /// When the environment holds an invalid name.
    pub(crate) fn agent_or(
        &self,
        flag: Option<AgentName>,
        named: impl FnOnce() -> String,
    ) -> Result<AgentName, Failure> {
        if let Some(agent) = flag {
            return Ok(agent);
        }
        let name = caller::configured().unwrap_or_else(named);
        AgentName::new(&name).ok_or_else(|| {
            Failure::usage(
                &format!("$STANDPIPE_AGENT is `{name}`, which is not a valid agent name"),
                "use 1 to 64 of the characters A-Z a-z 0-9 . _ @ -",
            )
        })
    }
}

/// The limits of a pool before a call that may change them.
#[derive(Debug)]
pub(crate) enum LimitsBefore {
    /// The call creates the pool, alone or together with others.
    New,
    /// They were not read.
    NotRead,
    /// They are these.
    Are(Vec<Limit>),
}

/// Returns the priority of a call: the flag, else `$STANDPIPE_PRIORITY`. Without either, the
/// agent's table decides.
///
/// # Errors
/// When the environment holds no priority.
pub(crate) fn priority(flag: Option<Priority>) -> Result<Option<Priority>, Failure> {
    let set = std::env::var("STANDPIPE_PRIORITY").ok().filter(|name| !name.is_empty());
    let Some(name) = set.filter(|_| flag.is_none()) else { return Ok(flag) };
    parse::priority_named(&name).map(Some).ok_or_else(|| {
        Failure::usage(
            &format!("$STANDPIPE_PRIORITY is `{name}`, which is not a priority"),
            "use critical, standard or background",
        )
    })
}

/// Whether a pool has other calls than the one that was just admitted.
fn is_shared(pool: &Pool) -> bool {
    let status = pool.status().blocking();
    status.is_ok_and(|status| status.agents.len() > 1 || status.in_flight > 1)
}

/// Rejects a pool that has no limits: its name may be misspelled.
fn check_limited(tap: &Standpipe, pool: &Pool) -> Result<(), Failure> {
    let name = pool.name();
    let stated = tap.settings().pools.contains_key(name) || pool.learns();
    if stated {
        return Ok(());
    }
    let known = tap.pools().blocking()?;
    if known.contains(name) {
        return Ok(());
    }
    let near = standpipe::config::nearest(name.as_str(), known.iter().map(PoolName::as_str));
    let failure = Failure::from(Error::NoLimits { pool: name.clone() });
    Err(match near {
        Some(near) => failure.map_hint(|hint| format!("did you mean `{near}`? else {hint}")),
        None => failure,
    })
}

/// Returns the limits of a pool and where they come from.
fn limits_in_force(pool: &Pool) -> Result<(Origin, Vec<Limit>), Failure> {
    let limits = pool.config().blocking()?.map(|config| config.limits).unwrap_or_default();
    Ok((pool.status().blocking()?.origin, limits))
}

/// Converts a parsed duration.
pub(crate) const fn duration(span: Span) -> Duration {
    Duration::from_micros(span.0)
}
