//! The Lua scripts, and the hashes by which the server caches them.
//!
//! The scripts order, stamp and store bytes; no script decodes an entry. Read `append.lua` first:
//! it is the step that every call makes.

use sha1::{Digest, Sha1};

/// A script and its SHA-1, for `EVALSHA`.
#[derive(Debug)]
pub(crate) struct Script {
    pub(crate) source: &'static str,
    pub(crate) hash: String,
}

/// Every script of the store.
#[derive(Debug)]
pub(crate) struct Scripts {
    /// Appends entries and returns the records since a position.
    pub(crate) append: Script,
    /// Stores a snapshot and trims the log.
    pub(crate) snapshot: Script,
    /// Reads a range of the log or of a snapshot.
    pub(crate) read_range: Script,
    /// Stores one chunk of a large snapshot.
    pub(crate) stage: Script,
    /// Renames the keys of an unusable log.
    pub(crate) quarantine: Script,
    /// Creates a log on an operator's request.
    pub(crate) create: Script,
}

/// Scripts as one source.
macro_rules! source {
    ($($script:literal),+) => {
        concat!($(include_str!(concat!("scripts/", $script, ".lua"))),+)
    };
}

impl Scripts {
    pub(crate) fn new() -> Self {
        Self {
            append: Script::new(source!("head", "append")),
            snapshot: Script::new(source!("head", "head_table", "snapshot")),
            read_range: Script::new(source!("head", "head_table", "read_range")),
            stage: Script::new(source!("stage")),
            quarantine: Script::new(source!("head", "quarantine")),
            create: Script::new(source!("head", "head_table", "create")),
        }
    }
}

impl Script {
    fn new(source: &'static str) -> Self {
        let digest = Sha1::digest(source.as_bytes());
        let hash = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        Self { source, hash }
    }
}
