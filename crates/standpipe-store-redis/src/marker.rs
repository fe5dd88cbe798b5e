//! What this machine remembers of a pool: which log it was, and when it expires.
//!
//! A pool that is not on the server is new, or expired, or lost; only somebody who was there knows.
//! So each machine keeps a small file per pool. What it says is also kept in memory: a machine that
//! cannot write it only forgets when its process ends.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use standpipe_store::{PoolName, hash};

use crate::keys::Keys;

/// What this machine remembers of a pool.
#[derive(Debug, Default)]
pub(crate) struct Marker {
    path: Option<PathBuf>,
    id: String,
    /// When it expires by the server's clock, in milliseconds.
    expires: u64,
    /// It was just put aside: whatever comes next has to account for it.
    insists: bool,
}

impl Marker {
    /// The marker in this directory, for a pool on a server.
    pub(crate) fn read(
        directory: Option<&Path>,
        place: &str,
        keys: &Keys,
        pool: &PoolName,
    ) -> Self {
        let store = hash(hash(0, place.as_bytes()), keys.base().as_bytes());
        let name = format!("{}-{store:016x}", pool.as_str().replace('/', "+"));
        let path = directory.map(|directory| directory.join(name));
        let text = path.as_ref().and_then(|path| fs::read_to_string(path).ok());
        let (id, expires) = text.as_deref().and_then(parse).unwrap_or_default();
        Self { path, id, expires, insists: false }
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    pub(crate) const fn expires(&self) -> u64 {
        self.expires
    }

    /// Whether a pool that is not there at this moment of the server's was lost.
    pub(crate) fn is_known(&self, millis: u64) -> bool {
        self.insists || !self.id.is_empty() && millis < self.expires
    }

    /// The next log of this pool begins with limits that count as full.
    pub(crate) const fn insist(&mut self) {
        self.insists = true;
    }

    /// Forgets it: the pool was removed on purpose.
    pub(crate) fn remove(&mut self) {
        if let Some(path) = &self.path {
            let _ = fs::remove_file(path);
        }
        (self.id, self.expires, self.insists) = (String::new(), 0, false);
    }

    /// Remembers a log. Answers whether that was news.
    pub(crate) fn keep(&mut self, id: &str, expires: u64) -> bool {
        self.insists = false;
        if self.id == id && self.expires >= expires {
            return false;
        }
        id.clone_into(&mut self.id);
        self.expires = expires;
        if let Some(path) = &self.path {
            // One that cannot be written is as if there were none.
            let _ = write(path, &format!("{id} {expires}\n"));
        }
        true
    }
}

/// Whole or not at all: it is written aside and renamed.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let draft = path.with_extension(format!("{}.new", std::process::id()));
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::File::create(&draft)?.write_all(text.as_bytes())?;
    fs::rename(&draft, path)
}

fn parse(text: &str) -> Option<(String, u64)> {
    let (id, expires) = text.trim().split_once(' ')?;
    Some((id.to_owned(), expires.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_is_kept_over_processes_and_told_by_server_and_pool() {
        let name = format!("standpipe-markers-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        let pool: PoolName = "a/b".parse().unwrap();
        let keys = Keys::new("standpipe", &pool);
        let read = |place: &str| Marker::read(Some(&directory), place, &keys, &pool);
        let mut marker = read("redis://one");
        assert!(!marker.is_known(0));
        assert!(marker.keep("id", 1_000), "it is new");
        assert!(!marker.keep("id", 1_000), "it is not");
        assert!(marker.is_known(999) && !marker.is_known(1_000), "expired is not lost");
        assert!(read("redis://one").is_known(999));
        assert!(!read("redis://two").is_known(999));
        marker.insist();
        assert!(marker.is_known(u64::MAX));
        fs::write(
            directory.join(fs::read_dir(&directory).unwrap().next().unwrap().unwrap().path()),
            "x",
        )
        .unwrap();
        assert!(!read("redis://one").is_known(0), "what cannot be read is nothing");
        fs::remove_dir_all(&directory).unwrap();
    }
}
