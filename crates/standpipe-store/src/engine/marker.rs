//! The marker of a pool: which log this machine last used, and when that log expires.
//!
//! A pool that is not on its server is new, expired or lost, and the server cannot know which. So
//! each machine keeps a small file per pool. The content is also kept in memory: if the file cannot
//! be written, the marker only does not survive the process.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::hash::hash;
use crate::participant::random_session;
use crate::pool::PoolName;

/// Which log of a pool this machine last used.
#[derive(Debug, Default)]
pub struct PoolMarker {
    path: Option<PathBuf>,
    log_id: String,
    /// When the log expires by the server's clock, in milliseconds.
    expires_at: u64,
    /// Set after a quarantine: the next log must record a loss, whatever the marker contains.
    assume_lost: bool,
}

impl PoolMarker {
    /// Reads the marker of a pool. An unreadable one counts as none; without a directory the marker
    /// ends with the process.
    ///
    /// `location` names the server and `key` the pool's place on it, so that pools of the same name
    /// on several servers or under several prefixes have markers of their own.
    #[must_use]
    pub fn read(directory: Option<&Path>, location: &str, key: &str, pool: &PoolName) -> Self {
        let store = hash(hash(0, location.as_bytes()), key.as_bytes());
        // A pool's name may be longer than a file's name may be. The hash keeps names distinct.
        let name: String = pool.as_str().replace('/', "+").chars().take(NAME_CHARS).collect();
        let path = directory.map(|directory| directory.join(format!("{name}-{store:016x}")));
        let text = path.as_ref().and_then(|path| fs::read_to_string(path).ok());
        let (log_id, expires_at) = text.as_deref().and_then(parse).unwrap_or_default();
        Self { path, log_id, expires_at, assume_lost: false }
    }

    /// Returns the id of the log that this machine last used, or an empty string.
    #[must_use]
    pub fn log_id(&self) -> &str {
        &self.log_id
    }

    /// Returns when that log expires by the server's clock, in milliseconds.
    #[must_use]
    pub const fn expires_at(&self) -> u64 {
        self.expires_at
    }

    /// Whether a pool that is missing at this time of the server was lost, rather than new or
    /// expired.
    #[must_use]
    pub fn missing_means_lost(&self, now_millis: u64) -> bool {
        self.assume_lost || !self.log_id.is_empty() && now_millis < self.expires_at
    }

    /// Makes the next log of this pool record a loss.
    pub const fn assume_lost(&mut self) {
        self.assume_lost = true;
    }

    /// Deletes the marker: an operator removed the pool.
    pub fn delete(&mut self) {
        if let Some(path) = &self.path {
            let _ = fs::remove_file(path);
        }
        (self.log_id, self.expires_at, self.assume_lost) = (String::new(), 0, false);
    }

    /// Stores the id and expiry of the log in use. Returns whether anything changed.
    pub fn update(&mut self, log_id: &str, expires_at: u64) -> bool {
        self.assume_lost = false;
        if self.log_id == log_id && self.expires_at >= expires_at {
            return false;
        }
        log_id.clone_into(&mut self.log_id);
        self.expires_at = expires_at;
        if let Some(path) = &self.path {
            // A failure is not an error: the marker in memory still works.
            let _ = write(path, &format!("{log_id} {expires_at}\n"));
        }
        true
    }
}

/// Returns the id of a new log: 14 hexadecimal digits.
#[must_use]
pub fn random_log_id() -> String {
    format!("{:014x}", random_session())
}

/// Writes a file atomically: a temporary file, then a rename.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let temporary = temporary_path(path);
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::File::create(&temporary)?.write_all(text.as_bytes())?;
    fs::rename(&temporary, path)
}

/// Returns a name that no other pool, thread or process uses at the same time. It appends to the
/// whole name: replacing an extension would mix up pools whose names differ only after a dot.
fn temporary_path(path: &Path) -> PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}-{count}.new", std::process::id()));
    name.into()
}

/// How many characters of a pool's name are in the name of its marker.
const NAME_CHARS: usize = 200;

fn parse(text: &str) -> Option<(String, u64)> {
    let (log_id, expires_at) = text.trim().split_once(' ')?;
    Some((log_id.to_owned(), expires_at.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_is_kept_over_processes_and_told_by_server_and_pool() {
        let name = format!("standpipe-markers-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        let pool: PoolName = "a/b".parse().unwrap();
        let read = |location: &str| PoolMarker::read(Some(&directory), location, "k", &pool);
        let mut marker = read("redis://one");
        assert!(!marker.missing_means_lost(0));
        assert!(marker.update("id", 1_000), "it is new");
        assert!(!marker.update("id", 1_000), "it is not");
        assert!(
            marker.missing_means_lost(999) && !marker.missing_means_lost(1_000),
            "expired is not lost"
        );
        assert!(read("redis://one").missing_means_lost(999));
        assert!(!read("redis://two").missing_means_lost(999));
        marker.assume_lost();
        assert!(marker.missing_means_lost(u64::MAX));
        fs::write(
            directory.join(fs::read_dir(&directory).unwrap().next().unwrap().unwrap().path()),
            "x",
        )
        .unwrap();
        assert!(!read("redis://one").missing_means_lost(0), "what cannot be read is nothing");
        fs::remove_dir_all(&directory).unwrap();
    }

    /// The marker of a pool; all are on one server.
    fn marker(directory: &Path, pool: &str) -> PoolMarker {
        let pool: PoolName = pool.parse().unwrap();
        PoolMarker::read(Some(directory), "redis://one", pool.as_str(), &pool)
    }

    fn scratch(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("standpipe-{name}-{}", std::process::id()))
    }

    #[test]
    fn pools_that_differ_only_behind_a_dot_keep_their_own_markers() {
        const ROUNDS: u64 = 500;
        let directory = scratch("markers-with-dots");
        let pools = ["p/m-4.1", "p/m-4.2"];
        let start = std::sync::Barrier::new(pools.len());
        let keep = |pool: &str| {
            let mut marker = marker(&directory, pool);
            for round in 1..=ROUNDS {
                start.wait();
                assert!(marker.update(pool, round));
                let read = self::marker(&directory, pool);
                assert_eq!((read.log_id(), read.expires_at()), (pool, round));
            }
        };
        std::thread::scope(|scope| {
            for pool in pools {
                scope.spawn(|| keep(pool));
            }
        });
        let left = fs::read_dir(&directory).unwrap().count();
        assert_eq!(left, pools.len(), "one file per pool and nothing else");
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn a_pool_with_the_longest_name_has_a_marker() {
        let directory = scratch("markers-with-long-names");
        let part = "m".repeat(128);
        for last in ["a", "b"] {
            let pool = format!("{}/{part}/{part}/{}{last}", "p".repeat(64), "m".repeat(127));
            assert!(marker(&directory, &pool).update(last, 1_000));
            assert_eq!(marker(&directory, &pool).log_id(), last);
        }
        fs::remove_dir_all(&directory).unwrap();
    }
}
