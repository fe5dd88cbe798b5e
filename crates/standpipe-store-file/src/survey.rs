//! What can be seen of a state directory from outside: where it lies, whose it is, how much room
//! there is. It works on a directory that the store refuses, too, and changes nothing but for
//! [`FileStore::leave_and_remove_a_mark`].

use std::fs;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use standpipe_store::StoreError;
use standpipe_store::member::random_session;

use crate::directory::cannot;
use crate::store::FileStore;
use crate::sys;

/// What can be seen of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Survey {
    /// The directory, or what there is of its path.
    pub path: PathBuf,
    /// Whether the directory itself is there.
    pub exists: bool,
    /// Its permissions.
    pub mode: u32,
    /// The user it belongs to.
    pub owner: u32,
    /// The user who looks.
    pub user: u32,
    /// The file system it lies on, as the machine names it, where that can be seen.
    pub file_system: Option<String>,
    /// Its name if it is one of a network, where locks do not hold.
    pub network: Option<&'static str>,
    /// How many bytes this user may still write.
    pub free: u64,
}

impl Survey {
    /// Looks at a directory.
    ///
    /// # Errors
    /// When nothing of its path can be looked at.
    pub fn of(directory: &Path) -> io::Result<Self> {
        let seen = |path: &Path| Some((path.to_owned(), fs::metadata(path).ok()?));
        let (path, meta) = directory.ancestors().find_map(seen).ok_or(io::ErrorKind::NotFound)?;
        let real = path.canonicalize().unwrap_or_else(|_| path.clone());
        Ok(Self {
            exists: path == directory && meta.is_dir(),
            mode: meta.mode() & 0o7777,
            owner: meta.uid(),
            user: rustix::process::geteuid().as_raw(),
            file_system: sys::file_system(&real),
            network: sys::network_file_system(&real)?,
            free: sys::free_bytes(&real)?,
            path,
        })
    }
}

impl FileStore {
    /// Ledgers that were set aside, because they were damaged or of an older version, in order.
    #[must_use]
    pub fn set_aside(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.pools_folder()).into_iter().flatten().flatten();
        let aside = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            name.contains(".pool.damaged-") || name.contains(".pool.older-")
        };
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(aside).collect();
        paths.sort();
        paths
    }

    /// Whether a file can be made here, locked, written, read again and removed.
    ///
    /// # Errors
    /// With what cannot be done, and what to do about it.
    pub fn leave_and_remove_a_mark(&self) -> Result<(), StoreError> {
        let path = self.pools_folder().join(format!("mark-{:014x}.new", random_session()));
        let done = self.try_mark(&path);
        let removed = fs::remove_file(&path);
        done.map_err(|error| cannot("write and read", &path, error))?;
        removed.map_err(|error| cannot("remove", &path, error))
    }

    fn try_mark(&self, path: &Path) -> io::Result<()> {
        let mut file = self.directory().create(path)?;
        file.try_lock().map_err(io::Error::other)?;
        file.write_all(MARK)?;
        file.seek(SeekFrom::Start(0))?;
        let mut read = Vec::new();
        file.read_to_end(&mut read)?;
        if read == MARK {
            return Ok(());
        }
        Err(io::Error::other("what is read is not what was written; the disk may be damaged"))
    }
}

const MARK: &[u8] = b"standpipe was here\n";

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
        store.leave_and_remove_a_mark().unwrap();
        assert_eq!(fs::read_dir(path.join("pools")).unwrap().count(), 0, "nothing is left");
        assert_eq!(store.set_aside(), [] as [PathBuf; 0]);
        let aside = path.join("pools/my+api.pool.damaged-0000000000000001");
        fs::write(&aside, b"").unwrap();
        fs::write(path.join("pools/my+api.pool"), b"").unwrap();
        assert_eq!(store.set_aside(), [aside]);
        fs::remove_dir_all(&path).unwrap();
    }

    #[test]
    fn a_directory_that_cannot_be_written_says_so() {
        let name = format!("standpipe-unmarked-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let store = FileStore::open(&path).unwrap();
        fs::remove_dir_all(path.join("pools")).unwrap();
        let error = store.leave_and_remove_a_mark().unwrap_err().to_string();
        assert!(error.contains("cannot write and read"), "{error}");
        fs::remove_dir_all(&path).unwrap();
    }
}
