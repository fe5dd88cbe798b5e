//! Inspecting a state directory for diagnosis: where it is, who owns it, how much space is left.
//!
//! It also works on a directory that the store refuses. It changes nothing, except that
//! [`FileStore::check_writable`] creates and removes a file.

use std::fs;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use standpipe_store::StoreError;
use standpipe_store::participant::random_session;

use crate::store::FileStore;
use crate::store::directory::fs_error;
use crate::sys;

/// What a state directory looks like from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
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
    pub network: Option<&'static str>,
    /// How many bytes this user can still write.
    pub free: u64,
}

impl Survey {
    /// Inspects a directory.
    ///
    /// # Errors
    /// When no part of its path can be read.
    pub fn of(directory: &Path) -> io::Result<Self> {
        let seen = |path: &Path| Some((path.to_owned(), fs::metadata(path).ok()?));
        let (path, meta) = directory.ancestors().find_map(seen).ok_or(io::ErrorKind::NotFound)?;
        let real = path.canonicalize().unwrap_or_else(|_| path.clone());
        Ok(Self {
            exists: path == directory && meta.is_dir(),
            mode: meta.mode() & 0o7777,
            owner: meta.uid(),
            user: rustix::process::geteuid().as_raw(),
            file_system: sys::mounts::file_system(&real),
            network: sys::mounts::network_file_system(&real)?,
            free: sys::mounts::free_bytes(&real)?,
            path,
        })
    }
}

impl FileStore {
    /// Returns the quarantined files, damaged or of an older version, sorted by name.
    #[must_use]
    pub fn quarantined_files(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.pools_directory()).into_iter().flatten().flatten();
        let is_quarantined = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            name.contains(".pool.damaged-") || name.contains(".pool.older-")
        };
        let mut paths: Vec<PathBuf> =
            entries.map(|entry| entry.path()).filter(is_quarantined).collect();
        paths.sort();
        paths
    }

    /// Creates, locks, writes, reads and removes a file, to check that all of it works here.
    ///
    /// # Errors
    /// Names what failed and what to do about it.
    pub fn check_writable(&self) -> Result<(), StoreError> {
        let path = self.pools_directory().join(format!("probe-{:014x}.new", random_session()));
        let done = self.write_and_read(&path);
        let removed = fs::remove_file(&path);
        done.map_err(|error| fs_error("write and read", &path, error))?;
        removed.map_err(|error| fs_error("remove", &path, error))
    }

    fn write_and_read(&self, path: &Path) -> io::Result<()> {
        let mut file = self.directory().create(path)?;
        file.try_lock().map_err(io::Error::other)?;
        file.write_all(PROBE)?;
        file.seek(SeekFrom::Start(0))?;
        let mut read = Vec::new();
        file.read_to_end(&mut read)?;
        if read == PROBE {
            return Ok(());
        }
        Err(io::Error::other("the bytes read differ from those written; the disk may be damaged"))
    }
}

const PROBE: &[u8] = b"standpipe write test\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_seen_whether_it_is_there_or_not() {
        let name = format!("standpipe-survey-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let before = Survey::of(&path.join("deep/er")).unwrap();
        assert!(!before.exists && before.free > 0, "{before:?}");
        let store = FileStore::open(&path).unwrap();
        let after = Survey::of(&path).unwrap();
        assert_eq!((after.exists, after.mode, after.network), (true, 0o700, None));
        store.check_writable().unwrap();
        assert_eq!(fs::read_dir(path.join("pools")).unwrap().count(), 0, "nothing is left");
        assert_eq!(store.quarantined_files(), [] as [PathBuf; 0]);
        let aside = path.join("pools/my+api.pool.damaged-0000000000000001");
        fs::write(&aside, b"").unwrap();
        fs::write(path.join("pools/my+api.pool"), b"").unwrap();
        assert_eq!(store.quarantined_files(), [aside]);
        fs::remove_dir_all(&path).unwrap();
    }

    #[test]
    fn a_directory_that_cannot_be_written_says_so() {
        let name = format!("standpipe-unmarked-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let store = FileStore::open(&path).unwrap();
        fs::remove_dir_all(path.join("pools")).unwrap();
        let error = store.check_writable().unwrap_err().to_string();
        assert!(error.contains("cannot write and read"), "{error}");
        fs::remove_dir_all(&path).unwrap();
    }
}
