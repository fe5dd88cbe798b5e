//! Operations on whole pools (reset, import, remove), and information about the server.

use standpipe_core::{Action, Instant, SEMANTICS, Span, bounds};
use standpipe_store::engine::{entry_bodies, random_log_id};
use standpipe_store::participant::random_session;
use standpipe_store::{Log, LogRead, PoolName, Position, Snapshot, StoreError};

use super::RedisStore;
use crate::connection::STEP_TIMEOUT;
use crate::connection::deadline::Deadline;
use crate::connection::dial::info_field;
use crate::log::{REJOIN_PAUSE, RedisLog};
use crate::protocol::keys;
use crate::protocol::record;
use crate::protocol::reply::{snapshot_id_text, text};
use crate::protocol::resp::{Command, Reply, cmd};

/// Clocks that differ by no more than this count as equal.
const CLOCK_TOLERANCE: Span = Span::secs(1);

impl RedisLog {
    /// Whether any key of the log exists, damaged or not.
    fn exists(&mut self) -> Result<bool, StoreError> {
        self.begin_step();
        Ok(self.call(cmd("EXISTS").arg(self.keys.all()))? != Reply::Int(0))
    }

    /// Creates a log, empty or from a snapshot. Returns whether it did.
    fn create(
        &mut self,
        from: Option<(&Snapshot, Instant)>,
        replace: bool,
    ) -> Result<bool, StoreError> {
        self.begin_step();
        let (log_id, stage) = (random_log_id(), self.keys.stage(random_session()));
        if let Some((snapshot, _)) = from {
            self.stage_snapshot(&stage, &snapshot.bytes)?;
        }
        let at = from.map_or(Position::START, |(snapshot, _)| snapshot.id.at);
        let id = from.map_or_else(String::new, |(snapshot, _)| snapshot_id_text(&snapshot.id));
        let length = from.map_or(0, |(snapshot, _)| snapshot.bytes.len());
        let stamp = from.map_or(0, |(_, now)| now.0);
        // The configuration in a snapshot is not known here: keep it for the longest period.
        let retention = from.map_or(bounds::PAUSE, |_| bounds::PAUSE + bounds::SPAN);
        let arguments = |command: &mut Command| {
            command.arg(5_u64).arg(self.keys.all()).arg(&stage).arg(SEMANTICS).arg(&log_id);
            command.arg(if replace { "replace" } else { "" }).arg(at.number);
            command.arg(&record::chain_hex(at.chain)[..]).arg(stamp).arg(&id).arg(length);
            command.arg(retention.0 / 1_000);
        };
        let created = self.run_script(&self.store.scripts.create, arguments)?;
        Ok(created == Reply::Int(1))
    }
}

/// What a server reports about itself, as far as the user may ask.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerInfo {
    /// `Redis` or `Valkey`, and the version.
    pub version: String,
    /// The eviction policy, `maxmemory-policy`.
    pub eviction: Option<String>,
    /// Whether the append-only file is enabled.
    pub append_only_file: Option<bool>,
    /// How many replicas are connected.
    pub replicas: Option<u32>,
    /// Whether it is a master.
    pub is_master: bool,
    /// Whether the connection is encrypted or stays on this machine.
    pub is_private: bool,
    /// Whether this process logs in with a password.
    pub has_password: bool,
}

impl RedisStore {
    /// Replaces a pool by an empty one. Processes that use it re-append what they hold during a
    /// pause of 2 s. Returns whether the pool existed.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub fn reset(&self, pool: &PoolName) -> Result<bool, StoreError> {
        let mut log = self.pool_log(pool);
        let existed = log.exists()?;
        if existed {
            log.create(None, true)?;
            log.announce_new_log();
            // Nothing is admitted before living processes have re-appended what they hold.
            let pause = Action::Pause { length: REJOIN_PAUSE, by: None };
            log.append(Position::START, &entry_bodies([pause]))?;
        }
        Ok(existed)
    }

    /// Imports a pool from another store: it continues from this snapshot, taken at `now` of that
    /// store's clock. Returns `false` if a pool of that name exists.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub fn take_over(
        &self,
        pool: &PoolName,
        snapshot: &Snapshot,
        now: Instant,
    ) -> Result<bool, StoreError> {
        let mut log = self.pool_log(pool);
        if !log.create(Some((snapshot, now)), false)? {
            return Ok(false);
        }
        let LogRead::Tail(tail) = log.read(snapshot.id.at)? else { return Ok(true) };
        if now + CLOCK_TOLERANCE < tail.now {
            // This server's clock is ahead: charges would expire too early, so limits count as
            // full.
            log.append(snapshot.id.at, &entry_bodies([Action::Forgotten]))?;
        }
        Ok(true)
    }

    /// Removes a pool, its entry in the pool index and its marker on this machine.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub fn remove(&self, pool: &PoolName) -> Result<(), StoreError> {
        let mut log = self.pool_log(pool);
        let mut delete = cmd("DEL");
        delete.arg(log.keys.all());
        log.begin_step();
        log.call(&delete)?;
        log.delete_marker();
        let index = keys::pool_index(&self.inner.options.prefix);
        let mut remove = cmd("ZREM");
        remove.arg(index).arg(pool.as_str());
        self.inner.forget_index_of(pool);
        let deadline = Deadline::within(STEP_TIMEOUT);
        self.inner.call_on_index(&mut self.inner.index(), &remove, deadline).map(drop)
    }

    /// Asks the server for its version, role and settings. What the user may not ask stays `None`.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub fn server_info(&self) -> Result<ServerInfo, StoreError> {
        let deadline = Deadline::within(STEP_TIMEOUT);
        let mut connection = self.inner.index();
        connection.call(&cmd("PING"), deadline)?;
        let mut info = |section: &str| {
            let value = connection.call(cmd("INFO").arg(section), deadline).ok();
            value.as_ref().and_then(text).unwrap_or_default()
        };
        let (server, memory, persistence, replication) =
            (info("server"), info("memory"), info("persistence"), info("replication"));
        let valkey =
            info_field(&server, "valkey_version").map(|version| format!("Valkey {version}"));
        let redis = info_field(&server, "redis_version").map(|version| format!("Redis {version}"));
        Ok(ServerInfo {
            version: valkey.or(redis).unwrap_or_else(|| "Redis".to_owned()),
            eviction: info_field(&memory, "maxmemory_policy").map(str::to_owned),
            append_only_file: info_field(&persistence, "aof_enabled").map(|on| on == "1"),
            replicas: info_field(&replication, "connected_slaves").and_then(|n| n.parse().ok()),
            is_master: info_field(&replication, "role") != Some("slave"),
            is_private: self.inner.servers.address.is_private(),
            has_password: self.inner.servers.address.has_password(),
        })
    }
}
