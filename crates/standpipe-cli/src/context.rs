//! What a command works with: the configuration, the ledger, and the calling agent, from flags and
//! environment.
//!
//! The store is opened when a command first needs it. Looking at a pool never creates it; only
//! [`Context::pool_to_reserve`] does.

pub(crate) mod files;
mod limits;

use std::cell::OnceCell;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use serde_json::json;
use standpipe::observe::Timestamp;
use standpipe::{
    AgentName, Builder, Limit, Pool, PoolName, Priority, Request, Span, Standpipe, StoreUrl,
};
use standpipe_server::Log;

use crate::args::{GlobalArgs, parse};
use crate::caller;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::printer::Printer;
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
        self.globals.config.clone().or_else(files::usual)
    }

    /// Opens the ledger.
    ///
    /// # Errors
    /// When the configuration is invalid or the store cannot be opened.
    pub(crate) fn open(&self) -> Result<Standpipe, Failure> {
        let tap = without_invalid_agent(self.builder()).open()?;
        Ok(self.opened.get_or_init(|| tap).clone())
    }

    /// Opens the ledger to look at it or to operate it. An invalid file does not prevent that as
    /// long as it is certain which store it states: the ledger has its own configuration.
    ///
    /// # Errors
    /// When the store is not certain or cannot be opened.
    pub(crate) fn open_ledger(&self, printer: &Printer) -> Result<Standpipe, Failure> {
        self.open_with(self.settings_of_ledger(printer)?)
    }

    /// Opens the ledger with a configuration that was read already.
    ///
    /// # Errors
    /// When the store cannot be opened.
    pub(crate) fn open_with(&self, settings: standpipe::Settings) -> Result<Standpipe, Failure> {
        let tap = without_invalid_agent(self.builder().settings(settings)).open()?;
        Ok(self.opened.get_or_init(|| tap).clone())
    }

    /// Returns the configuration; of an invalid file only what finds the ledger and the daemon,
    /// with a note.
    ///
    /// # Errors
    /// When the file is invalid and the store is not certain.
    pub(crate) fn settings_of_ledger(
        &self,
        printer: &Printer,
    ) -> Result<standpipe::Settings, Failure> {
        let env = |name: &str| std::env::var(name).ok();
        let found = standpipe::Settings::find_store(self.globals.config.as_deref(), &env);
        let (settings, problem) = match found {
            Ok((settings, problem)) => (settings, problem),
            Err(error) if self.globals.store.is_some() => {
                (standpipe::Settings::default(), error.problems.into_iter().next())
            }
            Err(error) => {
                let hint = "`--store URL` reads the ledger without the file";
                return Err(Failure::from(error).with_hint(hint));
            }
        };
        if let Some(problem) = problem {
            let whole = problem.to_string();
            let what = whole.strip_suffix(&format!("; {}", problem.remedy)).unwrap_or(&whole);
            // A file that does not exist, or cannot be read, has no line.
            let (state, more) = match problem.line {
                Some(_) => ("is invalid", self.check_command()),
                None => ("cannot be used", String::new()),
            };
            printer.note(&format!(
                "the configuration file {state}, so the ledger's own configuration counts: \
                 {what}{more}"
            ));
        }
        Ok(settings)
    }

    /// ` (`standpipe config check` lists every problem)`, of the file that is in use.
    fn check_command(&self) -> String {
        let file = self.globals.config.as_ref().map(|file| format!(" {}", file.display()));
        format!(" (`standpipe config check{}` lists every problem)", file.unwrap_or_default())
    }

    /// Whether it is certain which store the file states, although it may be invalid.
    pub(crate) fn has_certain_store(&self) -> bool {
        let env = |name: &str| std::env::var(name).ok();
        let found = standpipe::Settings::find_store(self.globals.config.as_deref(), &env);
        self.globals.store.is_some() || found.is_ok()
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

    /// Whether the command line names a store, which may be another one on purpose.
    pub(crate) const fn names_store(&self) -> bool {
        self.globals.store.is_some()
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

    /// Notes a task that no route of the file names, if its name resembles one that does.
    pub(crate) fn note_task(settings: &standpipe::Settings, task: Option<&str>, printer: &Printer) {
        let routed = || settings.routes.keys().map(String::as_str);
        let Some(task) = task.filter(|task| routed().all(|known| known != *task)) else { return };
        if let Some(near) = standpipe::config::nearest(task, routed()) {
            printer.note(&format!(
                "no [route] of the configuration file is for the task `{task}`; did you mean \
                 `{near}`?"
            ));
        }
    }

    /// Checks the further pools of a call, before anything is reserved or created.
    ///
    /// # Errors
    /// When the configuration does not allow a pool, or it has no limits.
    pub(crate) fn check_others(tap: &Standpipe, names: &[PoolName]) -> Result<(), Failure> {
        names.iter().try_for_each(|name| check_limited(tap, &tap.pool(name.as_str())?))
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
        let memory = Standpipe::builder().settings(settings).store(StoreUrl::Memory);
        let memory = without_invalid_agent(memory).open()?;
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

/// Every call of a command names its agent, and a command that makes none needs no valid variable.
fn without_invalid_agent(builder: Builder) -> Builder {
    let is_invalid = |name: String| AgentName::new(&name).is_none();
    match caller::configured().is_some_and(is_invalid) {
        true => builder.agent("standpipe"),
        false => builder,
    }
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
    let near = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
    let origin = tap.settings().origin.as_deref();
    let unread = files::unread(origin).map(|unread| format!("; {unread}"));
    let hint = format!(
        "{near}to create it, name it as POOL with --limit requests=60/min or parallel=5, or \
         describe it in {}{}",
        files::to_describe_in(origin),
        unread.unwrap_or_default()
    );
    let failure =
        Failure::new(Exit::Config, "no_pool", &format!("there is no pool `{name}`"), &hint);
    Err(failure.with("pool", json!(name.as_str())))
}

/// Converts a parsed duration.
pub(crate) const fn duration(span: Span) -> Duration {
    Duration::from_micros(span.0)
}
