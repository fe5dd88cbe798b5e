//! The names of the keys and pub/sub channels.
//!
//! All keys of a pool have one hash tag, so a cluster keeps them on one shard and one script may
//! use all of them.

use standpipe_store::PoolName;

/// The names of a pool's keys.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    pub(crate) head: String,
    pub(crate) log: String,
    pub(crate) snapshot: String,
    pub(crate) previous: String,
    base: String,
}

impl Keys {
    pub(crate) fn new(prefix: &str, pool: &PoolName) -> Self {
        let base = format!("{prefix}:{{{pool}}}");
        let name = |part: &str| format!("{base}:{part}");
        Self {
            head: name("head"),
            log: name("log"),
            snapshot: name("snapshot"),
            previous: name("previous"),
            base,
        }
    }

    /// The four keys in the order of every script's `KEYS`.
    pub(crate) fn all(&self) -> [&str; 4] {
        [&self.head, &self.log, &self.snapshot, &self.previous]
    }

    /// The key in which one writer stages a large snapshot.
    pub(crate) fn stage(&self, writer: u64) -> String {
        format!("{}:stage:{writer:014x}", self.base)
    }

    /// The names of the four keys in quarantine. `why` is `damaged` or `older`.
    pub(crate) fn quarantined(&self, why: &str, millis: u64) -> [String; 4] {
        let part = |part: &str| format!("{}:{why}:{millis}:{part}", self.base);
        [part("head"), part("log"), part("snapshot"), part("previous")]
    }

    /// The common beginning of all keys of the pool.
    pub(crate) fn base(&self) -> &str {
        &self.base
    }
}

/// The sorted set of pools; the score is when a pool's keys expire, in milliseconds.
pub(crate) fn pool_index(prefix: &str) -> String {
    format!("{prefix}:pools")
}

/// Where a foreign value found in place of the pool index is kept. The hash tag is the index's own
/// name: `RENAME` needs both on the same shard.
pub(crate) fn quarantined_index(prefix: &str, millis: u64) -> String {
    format!("{prefix}:{{{}}}:damaged:{millis}", pool_index(prefix))
}

/// The channel on which the creation of a log is announced to every process.
pub(crate) fn new_log_channel(prefix: &str) -> String {
    format!("{prefix}:begun")
}

/// The channel that wakes the process of a session. The upper 32 bits of a session id identify the
/// process, so all its sessions share one channel.
pub(crate) fn wake_channel(prefix: &str, session: u64) -> String {
    format!("{prefix}:wake:{:06x}", session >> 32)
}
