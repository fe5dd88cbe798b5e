//! Opening, creating and removing a pool's file.
//!
//! A new file is written as a draft under a temporary name and then hard-linked to its path, so
//! that no process ever sees a half-written one and only one of several creators wins. A marker
//! file beside it records that the pool exists: a missing file with a marker was lost, not new, and
//! its limits count as full.

use std::fs;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use standpipe_core::{Action, Instant, SEMANTICS};
use standpipe_store::engine::entry_bodies;
use standpipe_store::participant::random_session;
use standpipe_store::{Snapshot, StoreError};

use crate::file::head::{Head, LogOffset};
use crate::file::label::{Label, encode_label};
use crate::file::lock;
use crate::file::pool_file::PoolFile;
use crate::log::FileLog;
use crate::store::directory::fs_error;
use crate::sys;
use crate::testing::failpoint;
use crate::time::{ClockOrigin, LastStamp};

impl FileLog {
    /// Opens the pool's file, creating a missing one and quarantining one that is not this pool's.
    pub(crate) fn open_or_create(&mut self) -> Result<PoolFile, StoreError> {
        for _ in 0..ATTEMPTS {
            let file = match PoolFile::open(&self.path) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    self.create_missing()?;
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::IsADirectory => {
                    self.quarantine_path("it is a directory", None)?;
                    continue;
                }
                Err(error) => return Err(fs_error("open", &self.path, error)),
            };
            match file.label().map_err(|error| fs_error("read", &self.path, error))? {
                Label::Pool(name) if name == self.pool.as_str() => return Ok(file),
                Label::Older(name) if name == self.pool.as_str() => {
                    self.replace_older_format(&file)?;
                }
                Label::Pool(name) | Label::Older(name) => {
                    self.quarantine_mislabelled(&file, &format!("it is the ledger of `{name}`"))?;
                }
                Label::Newer(format) => {
                    return Err(StoreError::incompatible(format!(
                        "{} was written by a newer Standpipe (format {format}); update this one",
                        self.path.display()
                    )));
                }
                Label::Unreadable => {
                    self.quarantine_mislabelled(&file, "it does not start like a pool's file")?;
                }
            }
        }
        Err(StoreError::transient(format!(
            "{} appears and disappears while it is opened",
            self.path.display()
        )))
    }

    /// Reads the label again with the lock held and quarantines the file if it is still wrong.
    fn quarantine_mislabelled(&mut self, file: &PoolFile, reason: &str) -> Result<(), StoreError> {
        let _guard = lock::acquire(&file.file, &self.path, &self.pool, &self.lock_wait())?;
        let ours = |name: &str| name == self.pool.as_str();
        let wrong = match file.label() {
            Ok(Label::Unreadable) => true,
            Ok(Label::Pool(name) | Label::Older(name)) => !ours(&name),
            _ => false,
        };
        if wrong && file.is_at(&self.path) {
            self.quarantine_file(file, reason)?;
        }
        Ok(())
    }

    /// Replaces a file in an older format, if no process uses it any more.
    fn replace_older_format(&mut self, file: &PoolFile) -> Result<(), StoreError> {
        let _guard = lock::acquire(&file.file, &self.path, &self.pool, &self.lock_wait())?;
        match file.label() {
            Ok(Label::Older(_)) if file.is_at(&self.path) => {
                self.replace_older(file, "in an older format", None)
            }
            _ => Ok(()),
        }
    }

    /// Creates the pool's file. If the marker shows that there was one, its limits count as full.
    fn create_missing(&self) -> Result<(), StoreError> {
        if !self.marker().exists() {
            return self.create(&[]);
        }
        self.store.warn(
            Some(&self.pool),
            format!(
                "the ledger of `{}` was deleted; rates count as full and recover over one period, \
             slots after `lease_ttl`",
                self.pool
            ),
        );
        self.create(&[Action::Forgotten])
    }

    /// Creates the pool's file with these first events, unless another process was faster.
    pub(crate) fn create(&self, events: &[Action]) -> Result<(), StoreError> {
        let bodies = entry_bodies(events.iter().cloned());
        let fill = |file: &PoolFile, head: Arc<Head>| match bodies.is_empty() {
            true => Ok(()),
            false => self.append_entries(file, &head, &bodies).map(drop),
        };
        self.create_with(self.store.time.origin_for_new_pool(), fill).map(drop)
    }

    /// Creates the pool's file from the snapshot of another store, taken at `now` by that store's
    /// clock. Returns `false` if the pool already exists.
    pub(crate) fn take_over(&self, snapshot: &Snapshot, now: Instant) -> Result<bool, StoreError> {
        let fill = |file: &PoolFile, mut head: Arc<Head>| {
            let start = LogOffset { position: snapshot.id.at, bytes: 0 };
            let first = Arc::make_mut(&mut head);
            (first.base, first.end) = (start, start);
            self.store_snapshot(file, &head, start, snapshot).map(drop)
        };
        self.create_with(self.store.time.origin_at(now), fill)
    }

    /// Creates the pool's file with what `fill` writes into it. Returns `false` if another process
    /// was faster.
    fn create_with(
        &self,
        origin: ClockOrigin,
        fill: impl FnOnce(&PoolFile, Arc<Head>) -> Result<(), StoreError>,
    ) -> Result<bool, StoreError> {
        let draft = self.path.with_extension(format!("{:014x}.new", random_session()));
        let linked = self.write_draft(&draft, origin, fill).and_then(|()| {
            failpoint::reach("pool written");
            // A link, unlike a rename, does not replace a file that is already there.
            match fs::hard_link(&draft, &self.path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
                linked => linked.map(|()| true),
            }
        });
        let _ = fs::remove_file(&draft);
        let linked = linked.map_err(|error| fs_error("create", &self.path, error))?;
        failpoint::reach("pool linked");
        match self.store.directory.create(&self.marker()) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                Err(fs_error("create", &self.marker(), error))
            }
            _ => Ok(linked),
        }
    }

    fn write_draft(
        &self,
        draft: &Path,
        origin: ClockOrigin,
        fill: impl FnOnce(&PoolFile, Arc<Head>) -> Result<(), StoreError>,
    ) -> io::Result<()> {
        let (time, sizes) = (&self.store.time, self.store.sizes);
        let last = LastStamp { stamp: time.now(origin), wall: time.wall(), origin };
        let mut head = Arc::new(Head::first(sizes, SEMANTICS, last));
        let file = PoolFile::open_by(|| self.store.directory.create(draft))?;
        sys::file::preallocate(&file.file, head.file_size())?;
        file.file.write_all_at(&encode_label(&self.pool), 0)?;
        // Readers expect two consecutive heads.
        file.write_head(&mut head)?;
        Arc::make_mut(&mut head).sequence += 1;
        file.write_head(&mut head)?;
        fill(&file, head).map_err(io::Error::other)
    }

    /// Removes the pool as if it had never been used. Returns whether there was one.
    ///
    /// It works with any content of the file, because it reads none of it.
    pub(crate) fn reset(&self) -> Result<bool, StoreError> {
        let failed = |error| fs_error("remove", &self.path, error);
        for _ in 0..ATTEMPTS {
            let file = match PoolFile::open(&self.path) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Ok(fs::remove_file(self.marker()).is_ok());
                }
                Err(error) if error.kind() == io::ErrorKind::IsADirectory => {
                    let _ = fs::remove_file(self.marker());
                    fs::rename(&self.path, self.quarantine_name("damaged")).map_err(failed)?;
                    return Ok(true);
                }
                Err(error) => return Err(fs_error("open", &self.path, error)),
            };
            let _guard = lock::acquire(&file.file, &self.path, &self.pool, &self.lock_wait())?;
            if file.is_at(&self.path) {
                // The marker goes first: after a kill in between, a missing file must mean a new
                // pool and not a lost one.
                let _ = fs::remove_file(self.marker());
                fs::remove_file(&self.path).map_err(failed)?;
                return Ok(true);
            }
        }
        Err(StoreError::transient(format!("{} is replaced repeatedly", self.path.display())))
    }

    /// Returns the path of the marker, which exists if the pool's file has ever existed.
    pub(crate) fn marker(&self) -> PathBuf {
        self.path.with_extension("known")
    }
}

/// How often opening starts again because the file was replaced meanwhile.
const ATTEMPTS: usize = 8;
