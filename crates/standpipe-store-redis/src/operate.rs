//! What people do to pools on a server, and what can be seen of the server itself.

use redis::{Cmd, Value, cmd};
use standpipe_core::{Action, Event, Instant, Key, SEMANTICS, Span, bounds};
use standpipe_store::member::random_session;
use standpipe_store::{Log, PoolName, Position, Since, Snapshot, StoreError, entry};

use crate::answer::{mark_text, text};
use crate::keys;
use crate::link::field;
use crate::log::{REJOIN, RedisLog};
use crate::record;
use crate::store::RedisStore;

impl RedisLog {
    fn exists(&self) -> Result<bool, StoreError> {
        Ok(self.link().call(cmd("EXISTS").arg(&self.keys.head))? == Value::Int(1))
    }

    /// Begins a log on purpose. Answers whether it did.
    fn begin(&self, from: Option<(&Snapshot, Instant)>, replace: bool) -> Result<bool, StoreError> {
        let (id, stage) = (format!("{:014x}", random_session()), self.keys.stage(random_session()));
        if let Some((snapshot, _)) = from {
            self.send_ahead(&stage, &snapshot.bytes)?;
        }
        let at = from.map_or(Position::START, |(snapshot, _)| snapshot.mark.at);
        let mark = from.map_or_else(String::new, |(snapshot, _)| mark_text(&snapshot.mark));
        let length = from.map_or(0, |(snapshot, _)| snapshot.bytes.len());
        let stamp = from.map_or(0, |(_, now)| now.0);
        // What a snapshot holds may count for as long as anything does.
        let lasts = from.map_or(bounds::PAUSE, |_| bounds::PAUSE + bounds::SPAN);
        let arguments = |command: &mut Cmd| {
            command.arg(5).arg(&self.keys.all()).arg(&stage).arg(SEMANTICS).arg(&id);
            command.arg(if replace { "replace" } else { "" }).arg(at.number);
            command.arg(record::digits(at.chain)).arg(stamp).arg(&mark).arg(length);
            command.arg(lasts.0 / 1_000);
        };
        let begun = self.link().run(&self.store.scripts.begin, arguments, 0)?;
        Ok(begun == Value::Int(1))
    }
}

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
    /// Whether the way there is encrypted, or does not leave this machine.
    pub is_private: bool,
    /// Whether one has to log in.
    pub has_password: bool,
}

impl RedisStore {
    /// Begins a pool anew as if nobody had ever used it. Who is using it now puts back what it
    /// holds. Answers whether there was such a pool.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub fn reset(&self, pool: &PoolName) -> Result<bool, StoreError> {
        let mut log = self.pool_log(pool);
        let was = log.exists()?;
        if was {
            log.begin(None, true)?;
            log.say_begun();
            // Nobody is admitted before the living have put back what they hold.
            let key = Key { session: random_session(), number: 1 };
            let event = Event { key, action: Action::Pause { length: REJOIN } };
            log.append(Position::START, &[entry::body(&event)])?;
        }
        Ok(was)
    }

    /// Takes a pool over from another store: it goes on from this snapshot, made at this moment of
    /// that store's clock. Answers `false` if there is a pool of that name already.
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
        if !log.begin(Some((snapshot, now)), false)? {
            return Ok(false);
        }
        let Since::Tail(tail) = log.read(snapshot.mark.at)? else { return Ok(true) };
        if now + ALIKE < tail.now {
            // The other clock was behind: what was used would come back too early.
            let key = Key { session: random_session(), number: 1 };
            let event = Event { key, action: Action::Forgotten };
            log.append(snapshot.mark.at, &[entry::body(&event)])?;
        }
        Ok(true)
    }

    /// Removes a pool and everything that is remembered of it here.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub fn remove(&self, pool: &PoolName) -> Result<(), StoreError> {
        let mut log = self.pool_log(pool);
        let mut delete = cmd("DEL");
        delete.arg(&log.keys.all());
        log.link().call(&delete)?;
        log.forget();
        let index = keys::index(&self.shared.options.prefix);
        self.shared.index().call(cmd("ZREM").arg(index).arg(pool.as_str())).map(drop)
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
            is_private: self.shared.address.is_private(),
            has_password: self.shared.address.has_password(),
        })
    }
}

/// Clocks that are no further apart than this count as the same.
const ALIKE: Span = Span::secs(1);
