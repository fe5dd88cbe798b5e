//! The store: a state directory, opened by one process.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use standpipe_core::Instant;
use standpipe_store::{Log, PoolName, Process, Snapshot, Store, StoreError};

use crate::directory::{self, Directory, For};
use crate::head::{Label, Sizes};
use crate::log::FileLog;
use crate::pool_file::PoolFile;
use crate::sessions::Sessions;
use crate::time::Time;

/// The embedded store: every process of one machine on one directory.
#[derive(Clone)]
pub struct FileStore {
    shared: Arc<Shared>,
}

/// How a [`FileStore`] is opened.
#[derive(Clone)]
pub struct Options {
    /// Whom the directory is for when it has to be made.
    pub whom: For,
    /// The clocks.
    pub time: Time,
    /// How large the parts of a new pool's file are.
    pub sizes: Sizes,
    /// How long a step waits for others to leave theirs.
    pub patience: Duration,
    /// Damaged files are set aside and the pool begins anew; otherwise they are only reported.
    pub mends: bool,
}

/// What all logs of one store share.
pub(crate) struct Shared {
    pub(crate) directory: Directory,
    pools: PathBuf,
    pub(crate) sessions: Sessions,
    pub(crate) time: Time,
    pub(crate) sizes: Sizes,
    pub(crate) patience: Duration,
    mends: bool,
    news: Mutex<Vec<String>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            whom: For::User,
            time: Time::system(),
            sizes: Sizes::default(),
            patience: Duration::from_secs(2),
            mends: true,
        }
    }
}

impl FileStore {
    /// The store in this directory, made for this user if it is not there.
    ///
    /// # Errors
    /// When the directory cannot be used: it is somebody else's, read-only, or on a network.
    pub fn open(directory: &Path) -> Result<Self, StoreError> {
        Self::open_with(directory, Options::default())
    }

    /// The same, with everything said.
    ///
    /// # Errors
    /// As [`FileStore::open`].
    pub fn open_with(directory: &Path, options: Options) -> Result<Self, StoreError> {
        let directory = Directory::open(directory, options.whom)?;
        let pools = directory.inner("pools")?;
        let sessions = Sessions::new(directory.clone())?;
        let Options { time, sizes, patience, mends, .. } = options;
        let news = Mutex::default();
        let shared = Shared { directory, pools, sessions, time, sizes, patience, mends, news };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// The log of a pool, not made before it is used.
    #[must_use]
    pub fn pool_log(&self, pool: &PoolName) -> FileLog {
        let path = self.path_of(pool);
        FileLog::new(Arc::clone(&self.shared), pool.clone(), path, self.shared.mends)
    }

    /// Where the file of a pool is.
    #[must_use]
    pub fn path_of(&self, pool: &PoolName) -> PathBuf {
        self.shared.pools.join(directory::file_name(pool))
    }

    pub(crate) fn pools_folder(&self) -> &Path {
        &self.shared.pools
    }

    pub(crate) fn directory(&self) -> &Directory {
        &self.shared.directory
    }

    /// Begins a pool anew as if nobody had ever used it. Who is using it now puts back what it
    /// holds. Answers whether there was such a pool.
    ///
    /// # Errors
    /// When its file cannot be removed.
    pub fn reset(&self, pool: &PoolName) -> Result<bool, StoreError> {
        let path = self.path_of(pool);
        if !path.exists() {
            return Ok(false);
        }
        let mut log = self.pool_log(pool);
        let failed = |error| directory::cannot("remove", &path, error);
        log.step(|log, _, _| {
            // First what says that the pool was known: a missing file is then a new pool's.
            let _ = fs::remove_file(log.marker());
            fs::remove_file(&log.path).map_err(failed)
        })?;
        Ok(true)
    }

    /// Takes a pool over from another kind of store: it goes on from this snapshot, made at this
    /// moment of that store's clock. Answers `false` if there is a pool of that name already.
    ///
    /// # Errors
    /// When its file cannot be made.
    pub fn take_over(
        &self,
        pool: &PoolName,
        snapshot: &Snapshot,
        now: Instant,
    ) -> Result<bool, StoreError> {
        self.pool_log(pool).take_over(snapshot, now)
    }

    /// Moves a pool that nobody uses to another store.
    ///
    /// # Errors
    /// When there is no such pool, the other store has one of that name, or it is in use.
    pub fn move_pool(&self, pool: &PoolName, to: &Self) -> Result<(), StoreError> {
        let (from, into) = (self.path_of(pool), to.path_of(pool));
        if !from.exists() {
            return Err(StoreError::unusable(format!("there is no pool `{pool}` to move")));
        }
        self.pool_log(pool).step(|log, _, _| {
            let draft = into.with_extension("moving.new");
            let failed = |error| directory::cannot("write", &into, error);
            fs::copy(&from, &draft).map_err(failed)?;
            let linked = fs::hard_link(&draft, &into);
            let _ = fs::remove_file(&draft);
            if linked.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::AlreadyExists)
            {
                let shown = to.place();
                return Err(StoreError::unusable(format!(
                    "there is a pool `{pool}` in {shown} already; reset it first"
                )));
            }
            linked.map_err(failed)?;
            let _ = to.shared.directory.create(&to.pool_log(pool).marker());
            let _ = fs::remove_file(log.marker());
            fs::remove_file(&from).map_err(|error| directory::cannot("remove", &from, error))
        })
    }
}

impl Shared {
    /// Something happened that people should know.
    pub(crate) fn tell(&self, news: String) {
        let mut told = self.news.lock().unwrap_or_else(PoisonError::into_inner);
        if told.len() < NEWS && !told.contains(&news) {
            told.push(news);
        }
    }
}

impl Store for FileStore {
    fn log(&self, pool: &PoolName) -> Result<Box<dyn Log + Send>, StoreError> {
        let mut log = self.pool_log(pool);
        log.opened()?;
        Ok(Box::new(log))
    }

    fn pools(&self) -> Result<Vec<PoolName>, StoreError> {
        let folder = &self.shared.pools;
        let entries =
            fs::read_dir(folder).map_err(|error| directory::cannot("read", folder, error))?;
        let mut names: Vec<PoolName> = Vec::new();
        for entry in entries {
            let path = entry.map_err(|error| directory::cannot("read", folder, error))?.path();
            if path.extension().is_none_or(|extension| extension != "pool") {
                continue;
            }
            match name_of(&path) {
                Some(name) => names.push(name),
                None => self.shared.tell(format!(
                    "{} lies among the ledgers and is none; move it away",
                    path.display()
                )),
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

    fn is_gone(&self, session: u64) -> bool {
        self.shared.sessions.is_gone(session)
    }

    fn process_of(&self, session: u64) -> Option<Process> {
        self.shared.sessions.process(session)
    }

    fn wait_for_wake(&self, at_most: Duration) {
        self.shared.sessions.listen(at_most);
    }

    fn interrupt(&self) {
        self.shared.sessions.interrupt();
    }

    fn belongs_to_a_parent(&self) -> bool {
        !self.shared.sessions.is_mine()
    }

    fn news(&self) -> Vec<String> {
        let mut told = self.shared.news.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *told)
    }

    fn place(&self) -> String {
        format!("file:{}", self.shared.directory.path().display())
    }
}

impl fmt::Debug for FileStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileStore").field("place", &self.place()).finish_non_exhaustive()
    }
}

/// The pool whose file this is: by its label, or, if that cannot be read or is another's, by the
/// name of the file. Whoever opens it learns what is wrong.
fn name_of(path: &Path) -> Option<PoolName> {
    let file = path.file_name()?.to_str()?;
    let label = PoolFile::open(path).and_then(|open| open.label());
    let labelled = match label {
        Ok(Label::Pool(name)) => name.parse().ok(),
        _ => None,
    };
    let its_own = |name: &PoolName| directory::file_name(name) == file;
    labelled.filter(its_own).or_else(|| directory::pool_of(file))
}

/// How many sentences are kept for whoever asks.
const NEWS: usize = 64;
