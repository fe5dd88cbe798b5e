//! The store: a state directory, opened by one process.
//!
//! [`FileStore`] hands out the logs of pools and knows the sessions of this machine. The
//! [`directory`] holds `pools/`, with one file per pool, and `sessions/`; [`survey`] inspects it
//! for diagnosis.

pub(crate) mod directory;
pub(crate) mod survey;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use standpipe_core::Instant;
use standpipe_store::engine::{Message, Messages};
use standpipe_store::{Liveness, Log, PoolName, Process, Snapshot, Store, StoreError};

use self::directory::{Audience, Directory, fs_error};
use crate::file::head::Sizes;
use crate::file::label::Label;
use crate::file::pool_file::PoolFile;
use crate::log::FileLog;
use crate::session::Sessions;
use crate::sys;
use crate::time::Time;

/// The embedded store: every process of one machine on one directory.
#[derive(Clone)]
pub struct FileStore {
    shared: Arc<StoreShared>,
}

/// How to open a [`FileStore`].
#[derive(Clone)]
pub struct Options {
    /// Who may use the directory if it has to be created.
    pub audience: Audience,
    /// The clocks.
    pub time: Time,
    /// The sizes of the parts of a new pool's file.
    pub sizes: Sizes,
    /// How long an operation waits for the lock of a pool.
    pub lock_timeout: Duration,
    /// Quarantine damaged files and create new ones; otherwise damage is only an error.
    pub recover_if_damaged: bool,
}

/// What all logs of one store share.
pub(crate) struct StoreShared {
    pub(crate) directory: Directory,
    pools: PathBuf,
    pub(crate) sessions: Sessions,
    pub(crate) time: Time,
    pub(crate) sizes: Sizes,
    pub(crate) lock_timeout: Duration,
    recover_if_damaged: bool,
    warnings: Messages,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            audience: Audience::User,
            time: Time::system(),
            sizes: Sizes::default(),
            lock_timeout: Duration::from_secs(2),
            recover_if_damaged: true,
        }
    }
}

impl FileStore {
    /// Opens the store in a directory, which is created for this user alone if it is missing.
    ///
    /// # Errors
    /// When the directory cannot be used: it belongs to another user, is read-only, or is on a
    /// network file system.
    pub fn open(directory: &Path) -> Result<Self, StoreError> {
        Self::open_with(directory, Options::default())
    }

    /// Opens the store in a directory with these options.
    ///
    /// # Errors
    /// As [`FileStore::open`].
    pub fn open_with(directory: &Path, options: Options) -> Result<Self, StoreError> {
        options.time.check()?;
        let directory = Directory::open(directory, options.audience)?;
        let pools = directory.subdirectory("pools")?;
        let sessions = Sessions::new(directory.clone())?;
        let Options { time, sizes, lock_timeout, recover_if_damaged, .. } = options;
        let shared = StoreShared {
            directory,
            pools,
            sessions,
            time,
            sizes,
            lock_timeout,
            recover_if_damaged,
            warnings: Messages::default(),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Returns the log of a pool. Its file is opened or created on first use.
    #[must_use]
    pub fn pool_log(&self, pool: &PoolName) -> FileLog {
        let path = self.path_of(pool);
        let recover_if_damaged = self.shared.recover_if_damaged;
        FileLog::new(Arc::clone(&self.shared), pool.clone(), path, recover_if_damaged)
    }

    /// Returns the path of a pool's file.
    #[must_use]
    pub fn path_of(&self, pool: &PoolName) -> PathBuf {
        self.shared.pools.join(directory::file_name(pool))
    }

    pub(crate) fn pools_directory(&self) -> &Path {
        &self.shared.pools
    }

    pub(crate) fn directory(&self) -> &Directory {
        &self.shared.directory
    }

    /// Removes a pool as if it had never been used. Living processes restore what they hold in it.
    /// Returns whether there was such a pool.
    ///
    /// # Errors
    /// When its file cannot be removed.
    pub fn reset(&self, pool: &PoolName) -> Result<bool, StoreError> {
        self.pool_log(pool).reset()
    }

    /// Lists the pools whose file is gone although its marker shows that this machine used it, each
    /// with the path of the missing file. Opening such a pool creates a new file.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn lost_pools(&self) -> Result<Vec<(PoolName, PathBuf)>, StoreError> {
        let markers = self.files("known")?.into_iter();
        let lost = markers.map(|marker| marker.with_extension("pool")).filter(|file| {
            // A file that cannot be read is not gone.
            matches!(file.try_exists(), Ok(false))
        });
        let named = lost.filter_map(|file| {
            let name = directory::pool_of_file(file.file_name()?.to_str()?)?;
            Some((name, file))
        });
        let mut lost: Vec<(PoolName, PathBuf)> = named.collect();
        lost.sort();
        Ok(lost)
    }

    /// Lists the files with an extension in the directory of pools.
    fn files(&self, extension: &str) -> Result<Vec<PathBuf>, StoreError> {
        let folder = &self.shared.pools;
        let failed = |error| fs_error("read", folder, error);
        let paths = fs::read_dir(folder).map_err(failed)?.map(|entry| Ok(entry?.path()));
        let paths: Vec<PathBuf> = paths.collect::<std::io::Result<_>>().map_err(failed)?;
        let has = |path: &PathBuf| path.extension().is_some_and(|own| own == extension);
        Ok(paths.into_iter().filter(has).collect())
    }

    /// Creates a pool from the snapshot of another kind of store, taken at `now` by that store's
    /// clock. Returns `false` if the pool already exists.
    ///
    /// # Errors
    /// When its file cannot be created.
    pub fn take_over(
        &self,
        pool: &PoolName,
        snapshot: &Snapshot,
        now: Instant,
    ) -> Result<bool, StoreError> {
        self.pool_log(pool).take_over(snapshot, now)
    }

    /// Moves a pool that no process uses to another store.
    ///
    /// # Errors
    /// When there is no such pool, the other store has one of that name, or a process holds its
    /// lock.
    pub fn move_pool(&self, pool: &PoolName, to: &Self) -> Result<(), StoreError> {
        let (from, into) = (self.path_of(pool), to.path_of(pool));
        if !from.exists() {
            return Err(StoreError::unusable(format!("there is no pool `{pool}` to move")));
        }
        self.pool_log(pool).with_lock(|log, _, _| {
            let draft = into.with_extension("moving.new");
            let failed = |error| fs_error("write", &into, error);
            fs::copy(&from, &draft).map_err(failed)?;
            // A link, unlike a rename, does not replace a pool that is already there.
            let linked = fs::hard_link(&draft, &into);
            let _ = fs::remove_file(&draft);
            if linked.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::AlreadyExists)
            {
                let shown = to.location();
                return Err(StoreError::unusable(format!(
                    "{shown} already has a pool `{pool}`; delete the copy there: standpipe --store \
                     {shown} store reset {pool} --yes"
                )));
            }
            linked.map_err(failed)?;
            let _ = to.shared.directory.create(&to.pool_log(pool).marker());
            let _ = fs::remove_file(log.marker());
            fs::remove_file(&from).map_err(|error| fs_error("remove", &from, error))
        })
    }
}

impl StoreShared {
    /// Keeps a warning until [`Store::take_messages`] returns it.
    pub(crate) fn warn(&self, pool: Option<&PoolName>, warning: String) {
        self.warnings.push(pool, warning);
    }
}

impl Store for FileStore {
    fn log(&self, pool: &PoolName) -> Result<Box<dyn Log + Send>, StoreError> {
        let mut log = self.pool_log(pool);
        log.ensure_open()?;
        Ok(Box::new(log))
    }

    fn pools(&self) -> Result<Vec<PoolName>, StoreError> {
        let mut names: Vec<PoolName> = Vec::new();
        for path in self.files("pool")? {
            match pool_at(&path) {
                Some(name) => names.push(name),
                None => self.shared.warn(
                    None,
                    format!(
                        "{} is in the directory of pools but is not a pool's file; move it away",
                        path.display()
                    ),
                ),
            }
        }
        names.sort();
        Ok(names)
    }

    fn begin_session(&self) -> Result<u64, StoreError> {
        self.shared.sessions.begin()
    }

    fn end_session(&self, session: u64) {
        self.shared.sessions.end(session);
    }

    fn renew_session(&self, session: u64) {
        self.shared.sessions.renew(session);
    }

    fn liveness(&self, session: u64) -> Liveness {
        self.shared.sessions.liveness(session)
    }

    fn try_begin_liveness_check(&self, pool: &PoolName) -> bool {
        sys::file::touch_if_older(&self.pool_log(pool).marker(), LIVENESS_INTERVAL)
    }

    fn process_of(&self, session: u64) -> Option<Process> {
        self.shared.sessions.process(session)
    }

    fn wait_for_wake(&self, at_most: Duration) {
        self.shared.sessions.wait_for_wake(at_most);
    }

    fn interrupt(&self) {
        self.shared.sessions.interrupt();
    }

    fn was_forked(&self) -> bool {
        !self.shared.sessions.is_same_process()
    }

    fn take_messages(&self) -> Vec<Message> {
        self.shared.warnings.take()
    }

    fn location(&self) -> String {
        format!("file:{}", self.shared.directory.path().display())
    }
}

impl fmt::Debug for FileStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileStore").field("location", &self.location()).finish_non_exhaustive()
    }
}

/// Returns the pool that a file belongs to.
///
/// The label decides. If it is unreadable or another pool's, the file name does: opening that pool
/// then reports what is wrong.
fn pool_at(path: &Path) -> Option<PoolName> {
    let file = path.file_name()?.to_str()?;
    let label = PoolFile::open(path).and_then(|open| open.label());
    let labelled = match label {
        Ok(Label::Pool(name)) => name.parse().ok(),
        _ => None,
    };
    let matches_file = |name: &PoolName| directory::file_name(name) == file;
    labelled.filter(matches_file).or_else(|| directory::pool_of_file(file))
}

/// The least time between two rounds of liveness tests on a pool, over all processes. Waiters ask
/// every 250 ms, and sometimes a little early.
const LIVENESS_INTERVAL: Duration = Duration::from_millis(200);
