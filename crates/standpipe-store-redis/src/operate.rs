//! What people do to pools on a server, and what can be seen of the server itself.

use redis::{Cmd, cmd};
use standpipe_core::{SEMANTICS, bounds};
use standpipe_store::member::random_session;
use standpipe_store::{PoolName, StoreError};

use crate::answer::text;
use crate::link::field;
use crate::record;
use crate::store::RedisStore;

/// What a server says of itself, as far as it tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Server {
    /// `redis` or `valkey`, and the version.
    pub version: String,
    /// What it does when its memory is full.
    pub eviction: Option<String>,
    /// Whether it writes what it was told to its disk: by a log, or by snapshots only.
    pub appends: Option<bool>,
    /// How many replicas are connected.
    pub replicas: Option<u32>,
    /// Whether it is a master.
    pub is_master: bool,
}

impl RedisStore {
    /// Begins a pool anew as if nobody had ever used it. Who is using it now puts back what it
    /// holds. Answers whether there was such a pool.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub fn reset(&self, pool: &PoolName) -> Result<bool, StoreError> {
        let log = self.pool_log(pool);
        let mut link = log.link();
        let was = text(&link.call(cmd("HGET").arg(&log.keys.head).arg("i"))?).is_some();
        let (id, start) = (format!("{:014x}", random_session()), record::digits(0));
        let arguments = |command: &mut Cmd| {
            command.arg(4).arg(&log.keys.all()).arg(SEMANTICS).arg(&id).arg("replace");
            command.arg(0).arg(&start).arg(0).arg("").arg("").arg(bounds::PAUSE.0 / 1_000);
        };
        if was {
            link.run(&self.shared.scripts.begin, arguments, 0)?;
        }
        Ok(was)
    }

    /// What the server says of itself.
    ///
    /// # Errors
    /// When it cannot be reached. What a user may not ask stays open.
    pub fn look(&self) -> Result<Server, StoreError> {
        let mut link = self.shared.index();
        link.call(&cmd("PING"))?;
        let mut info = |section: &str| {
            let told = link.call(cmd("INFO").arg(section)).ok();
            told.as_ref().and_then(text).unwrap_or_default()
        };
        let (server, memory, persistence, replication) =
            (info("server"), info("memory"), info("persistence"), info("replication"));
        let valkey = field(&server, "valkey_version").map(|version| format!("Valkey {version}"));
        let redis = field(&server, "redis_version").map(|version| format!("Redis {version}"));
        Ok(Server {
            version: valkey.or(redis).unwrap_or_else(|| "Redis".to_owned()),
            eviction: field(&memory, "maxmemory_policy").map(str::to_owned),
            appends: field(&persistence, "aof_enabled").map(|on| on == "1"),
            replicas: field(&replication, "connected_slaves").and_then(|n| n.parse().ok()),
            is_master: field(&replication, "role") != Some("slave"),
        })
    }
}
