//! The names of a pool's keys. All of one pool have one hash tag: a cluster keeps them together.

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

    /// What a script is told of them.
    pub(crate) fn all(&self) -> [&str; 4] {
        [&self.head, &self.log, &self.snapshot, &self.previous]
    }

    /// A snapshot that arrives in pieces.
    pub(crate) fn stage(&self, writer: u64) -> String {
        format!("{}:stage:{writer:014x}", self.base)
    }

    /// The same keys out of the way.
    pub(crate) fn aside(&self, why: &str, millis: u64) -> [String; 4] {
        let part = |part: &str| format!("{}:{why}:{millis}:{part}", self.base);
        [part("head"), part("log"), part("snapshot"), part("previous")]
    }

    /// What every key of the pool begins with.
    pub(crate) fn base(&self) -> &str {
        &self.base
    }
}

/// Where the pools are listed, each with the moment its keys expire.
pub(crate) fn index(prefix: &str) -> String {
    format!("{prefix}:pools")
}

/// Where it is said that a log was begun: whoever knew another one looks.
pub(crate) fn begun(prefix: &str) -> String {
    format!("{prefix}:begun")
}

/// Where the sessions of one process are woken. The upper bits of an id are its process's.
pub(crate) fn channel(prefix: &str, session: u64) -> String {
    format!("{prefix}:wake:{:06x}", session >> 32)
}
