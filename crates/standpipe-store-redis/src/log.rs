//! The log of one pool: the step loop around `append.lua`.
//!
//! A step is one script call. [`RedisLog::step`] repeats it until it is made, because three things
//! may have to be dealt with first:
//!
//! - The pool is missing. It is new, or it was lost, if this machine's marker has not expired.
//!   After a loss the new log begins with [`Preamble::StateLost`], and its limits count as full.
//! - The last entries are missing. The position of a reader that saw them is not on the log any
//!   more, and the read returns [`LogRead::Forked`].
//! - Another server process answers, after a restart or a failover. It may lack entries that no
//!   reader has missed yet. The first append there begins with [`Preamble::RejoinPause`], and in
//!   that pause every living process re-appends what it has.
//!
//! Read next: `recovery` for damage and loss, `chunks` for what exceeds one call.

mod chunks;
#[cfg(feature = "harm")]
mod fault_injection;
mod recovery;
mod verified;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant as Local};

use standpipe_core::{Instant, SEMANTICS, Span};
use standpipe_store::engine::{PoolMarker, random_log_id};
use standpipe_store::{Log, LogRead, PoolName, Position, Snapshot, StoreError, Tail, entry};

use self::chunks::PartialRead;
use self::verified::VerifiedRecords;
use crate::connection::deadline::Deadline;
use crate::connection::{STEP_TIMEOUT, ServerConnection, UNKNOWN_RUN_ID};
use crate::protocol::keys::{self, Keys};
use crate::protocol::record;
use crate::protocol::reply::{self, AppendReply, Cursor, Step};
use crate::protocol::resp::{Command, Reply, cmd};
use crate::protocol::scripts::Script;
use crate::store::StoreInner;

/// The most bytes that one call carries either way, so that no call blocks the server for long.
pub(crate) const MAX_CALL_BYTES: usize = 65_536;

/// How long a pool is paused after its server changed or an operator reset it.
pub(crate) const REJOIN_PAUSE: Span = Span::secs(2);

/// How many times a step is tried before the keys count as contended.
const MAX_ATTEMPTS: usize = 8;

/// Keys are kept for at least this long, so that rounding never matters.
const MIN_RETENTION: Span = Span::secs(3_600);

/// How often a process puts its pools on the pool index again, in case the index was lost.
const INDEX_REFRESH: Duration = Duration::from_secs(60);

/// The log of one pool on its server.
pub struct RedisLog {
    pub(crate) store: Arc<StoreInner>,
    pub(crate) pool: PoolName,
    pub(crate) keys: Keys,
    connection: Mutex<ServerConnection>,
    /// The deadline that the caller set for its steps.
    callers_deadline: Option<Local>,
    /// The deadline of the present step.
    deadline: Deadline,
    /// What a step read before its deadline passed.
    partial: Option<PartialRead>,
    /// The id of the log, from the last reply; empty before the first.
    log_id: String,
    /// The last head, whose offset is known.
    last_head: Option<Cursor>,
    /// What the last step read, for [`Log::chain`].
    verified: VerifiedRecords,
    marker: PoolMarker,
    /// How long the keys are kept without an append, in milliseconds.
    retention_ms: u64,
    /// The connection epoch of the last reply; see [`Self::connection_epoch`].
    last_epoch: (u64, u64),
    /// When this process last put the pool on the pool index.
    indexed_at: Option<Local>,
}

/// An entry that a step puts before the caller's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Preamble {
    None,
    /// Another server process answers: pause the pool so that every process can rejoin.
    RejoinPause,
    /// An earlier log of the pool was lost: its limits count as full.
    StateLost,
}

impl RedisLog {
    pub(crate) fn new(store: Arc<StoreInner>, pool: PoolName) -> Self {
        let keys = Keys::new(&store.options.prefix, &pool);
        let connection = Mutex::new(ServerConnection::new(Arc::clone(&store.servers)));
        let directory = store.options.marker_dir.as_deref();
        let marker = PoolMarker::read(directory, &store.servers.place, keys.base(), &pool);
        Self {
            store,
            pool,
            keys,
            connection,
            callers_deadline: None,
            deadline: Deadline::within(STEP_TIMEOUT),
            partial: None,
            log_id: String::new(),
            last_head: None,
            verified: VerifiedRecords::default(),
            marker,
            retention_ms: MIN_RETENTION.0 / 1_000,
            last_epoch: (0, 0),
            indexed_at: None,
        }
    }

    fn connection(&self) -> MutexGuard<'_, ServerConnection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a step: all its calls together end by one deadline.
    pub(crate) fn begin_step(&mut self) {
        self.deadline = Deadline::within(STEP_TIMEOUT).or_sooner(self.callers_deadline);
    }

    /// Gives the rest of a step at least this long, up to the caller's deadline.
    fn extend_step(&mut self, bound: Duration) {
        let later = Deadline::within(bound).at().max(self.deadline.at());
        self.deadline = Deadline::from(later).or_sooner(self.callers_deadline);
    }

    /// Makes a call of the present step.
    pub(crate) fn call(&self, command: &Command) -> Result<Reply, StoreError> {
        self.connection().call(command, self.deadline)
    }

    /// Runs a script in the present step.
    pub(crate) fn run_script(
        &self,
        script: &Script,
        arguments: impl Fn(&mut Command),
    ) -> Result<Reply, StoreError> {
        let arguments = |command: &mut Command, _: &str| arguments(command);
        self.connection().run_script(script, arguments, 0, self.deadline)
    }

    /// Appends entries and returns what others appended since `from`. Without entries it reads.
    fn step(&mut self, from: Position, bodies: &[Vec<u8>]) -> Result<LogRead, StoreError> {
        let Some(cursor) = self.cursor(from)? else { return Ok(LogRead::Forked) };
        let (mut new_log_id, mut preamble) = (None, Preamble::None);
        for _ in 0..MAX_ATTEMPTS {
            let first = self.preamble_entry(preamble);
            let sent: Vec<&[u8]> = first.iter().chain(bodies).map(Vec::as_slice).collect();
            match self.call_append(cursor, &sent, new_log_id.as_deref(), preamble)? {
                AppendReply::Done(step) => {
                    if new_log_id.is_some() {
                        self.announce_new_log();
                    }
                    let only_bodies = first.is_none();
                    let result = self.read_result(cursor, &sent, only_bodies, *step);
                    return if sent.is_empty() { result } else { result.map_err(taken_effect) };
                }
                // Every log contains the start, so this one is damaged.
                AppendReply::Forked if from == Position::START => return Err(self.damaged_keys()),
                AppendReply::Forked => return Ok(LogRead::Forked),
                AppendReply::Missing { .. } if from != Position::START => {
                    return Ok(LogRead::Forked);
                }
                AppendReply::Missing { now } => {
                    let lost = self.marker.missing_means_lost(now / 1_000);
                    if bodies.is_empty() && !lost {
                        return Ok(LogRead::Tail(reply::empty_tail(now)));
                    }
                    if lost {
                        preamble = Preamble::StateLost;
                        self.report_loss();
                    }
                    new_log_id = Some(random_log_id());
                }
                AppendReply::Replaced => {
                    preamble = Preamble::StateLost;
                    self.report_loss();
                }
                AppendReply::ServerChanged => preamble = Preamble::RejoinPause,
                AppendReply::PreambleNotNeeded => preamble = Preamble::None,
                AppendReply::Broken => return Err(self.damaged_keys()),
                AppendReply::Full => return Err(self.log_full()),
                AppendReply::OtherSemantics { theirs, last_stamp, now } => {
                    self.upgrade_semantics(theirs, last_stamp, now)?;
                }
            }
        }
        Err(StoreError::transient(format!(
            "the keys of `{}` on {} keep being replaced; check what else writes there",
            self.pool, self.store.servers.place
        )))
    }

    /// Calls `append.lua` once.
    fn call_append(
        &self,
        from: Cursor,
        bodies: &[&[u8]],
        new_log_id: Option<&str>,
        preamble: Preamble,
    ) -> Result<AppendReply, StoreError> {
        let packed = self.packed_arguments(from, preamble);
        let arguments = |command: &mut Command, run_id: &str| {
            // A read changes nothing, so it does not have to notice a change of server.
            let run_id = if bodies.is_empty() { UNKNOWN_RUN_ID } else { run_id };
            command.arg(4_u64).arg(self.keys.all()).arg(&packed).arg(run_id);
            command.arg(self.marker.log_id()).arg(new_log_id.unwrap_or_default());
            for body in bodies {
                command.arg(record::encode(body));
            }
        };
        let replicas = if bodies.is_empty() { 0 } else { self.store.options.wait_replicas };
        let script = &self.store.scripts.append;
        let value = self.connection().run_script(script, arguments, replicas, self.deadline)?;
        reply::decode_append(value).ok_or_else(|| reply::unexpected(&self.store.servers.place))
    }

    /// Packs the first argument of `append.lua`.
    fn packed_arguments(&self, from: Cursor, preamble: Preamble) -> Vec<u8> {
        let given_time = self.store.given_time().map_or(0, |now| now.0 + 1);
        let Cursor { position, offset } = from;
        let expires_at = self.marker.expires_at();
        let words = [given_time, position.number, offset, self.retention_ms, expires_at];
        let mut packed = Vec::with_capacity(8 * words.len() + 9 + record::CHAIN_LEN);
        words.iter().for_each(|word| packed.extend_from_slice(&word.to_le_bytes()));
        packed.extend(u32::try_from(MAX_CALL_BYTES).unwrap_or(u32::MAX).to_le_bytes());
        packed.extend(SEMANTICS.to_le_bytes());
        packed.push(match preamble {
            Preamble::None => 0,
            Preamble::RejoinPause => 1,
            Preamble::StateLost => 2,
        });
        packed.extend(record::chain_hex(position.chain));
        packed
    }

    /// Returns a position with its offset, or `None` if it is not on the log.
    fn cursor(&mut self, position: Position) -> Result<Option<Cursor>, StoreError> {
        if position == Position::START {
            return Ok(Some(Cursor::START));
        }
        if let Some(head) = self.last_head.filter(|head| head.position == position) {
            return Ok(Some(head));
        }
        self.locate(position)
    }

    /// Completes the result of a step: fetches what did not fit into the reply, and verifies the
    /// chain of the caller's own entries, which it does not return. If records or snapshot were
    /// dropped meanwhile, it reads again; the entries are on the log already.
    fn read_result(
        &mut self,
        from: Cursor,
        sent: &[&[u8]],
        only_bodies: bool,
        step: Step,
    ) -> Result<LogRead, StoreError> {
        let own: u64 = sent.iter().map(|body| record::record_len(body)).sum();
        let end = step.head.offset - own;
        let mut records = step.records;
        let received = step.records_at + records.len() as u64;
        if received < end {
            match self.read_log_range(&step.log_id, received, end)? {
                Some(rest) => records.extend(rest),
                None => return self.step(from.position, &[]),
            }
        }
        let snapshot = match (step.snapshot_length, step.snapshot_id) {
            (Some(length), Some(mark)) if step.snapshot.len() as u64 != length => {
                match self.read_snapshot(&step.log_id, &mark, length)? {
                    Some(bytes) => Some(Snapshot { id: mark, bytes }),
                    None => return self.step(from.position, &[]),
                }
            }
            (Some(_), Some(mark)) => Some(Snapshot { id: mark, bytes: step.snapshot }),
            _ => None,
        };
        let start = snapshot.as_ref().map_or(from.position, |snapshot| snapshot.id.at);
        let converted = record::to_entries(start.chain, &records);
        records.truncate(converted.intact);
        self.verified = VerifiedRecords::new(start.chain, records);
        let head = step.head.position;
        let after = Position { number: head.number - sent.len() as u64, chain: converted.chain };
        let appended = verified::appended(after, step.now, sent, head).filter(|_| only_bodies);
        let mut entries = converted.entries;
        if appended.is_none() {
            sent.iter().for_each(|body| entry::put(step.now, body, &mut entries));
        }
        self.record_contact(&step.log_id, step.expires_at, step.head);
        Ok(LogRead::Tail(Tail {
            snapshot,
            entries,
            appended,
            head,
            now: step.now,
            latest_snapshot: step.snapshot_id,
            snapshot_due: step.snapshot_due,
        }))
    }

    /// Stores what the next step needs, and keeps marker and pool index up to date.
    fn record_contact(&mut self, log_id: &str, expires_at: u64, head: Cursor) {
        if self.log_id != log_id {
            log_id.clone_into(&mut self.log_id);
        }
        self.last_head = Some(head);
        self.partial = None;
        self.last_epoch = self.connection_epoch();
        let changed = self.marker.update(log_id, expires_at);
        let indexed = self.indexed_at.is_some_and(|at| at.elapsed() < INDEX_REFRESH);
        if changed || !indexed {
            self.indexed_at = Some(Local::now());
            self.index_pool(expires_at, changed);
        }
    }

    /// Puts the pool on the pool index. A changed marker is indexed at once; a refresh goes along
    /// with the next call. In a cluster the index may be on another node, and no step waits for
    /// that one.
    fn index_pool(&self, expires_at: u64, changed: bool) {
        let store = &self.store;
        if store.servers.is_cluster() {
            return store.index_later(&self.pool, expires_at);
        }
        let command = store.index_command(&self.pool, expires_at);
        let mut connection = self.connection();
        match changed {
            // A failure is ignored: only people read the index, and the pool is put there again.
            true => drop(store.call_on_index(&mut connection, &command, self.deadline)),
            false => connection.send(&[command]),
        }
    }

    /// Announces a new log, so that every process that knew an earlier one reads at once.
    pub(crate) fn announce_new_log(&self) {
        let channel = keys::new_log_channel(&self.store.options.prefix);
        let mut publish = cmd("PUBLISH");
        publish.arg(channel).arg(self.pool.as_str());
        self.connection().send(&[publish]);
    }

    /// Returns a value that changes when this log or the subscriber reconnects, or a new log is
    /// announced: then the server may lack entries, and what was read may be outdated.
    fn connection_epoch(&self) -> (u64, u64) {
        (self.connection().generation(), self.store.subscriber.epoch())
    }

    /// Deletes the marker: an operator removed the pool.
    pub(crate) fn delete_marker(&mut self) {
        self.marker.delete();
    }
}

impl Log for RedisLog {
    fn append(&mut self, from: Position, bodies: &[Vec<u8>]) -> Result<LogRead, StoreError> {
        self.begin_step();
        self.step(from, bodies)
    }

    fn read(&mut self, from: Position) -> Result<LogRead, StoreError> {
        self.begin_step();
        self.step(from, &[])
    }

    fn write_snapshot(&mut self, snapshot: &Snapshot) -> Result<(), StoreError> {
        self.begin_step();
        let Some(cursor) = self.cursor(snapshot.id.at)? else { return Ok(()) };
        self.send_snapshot(cursor, snapshot)
    }

    fn quarantine(&mut self) -> Result<bool, StoreError> {
        self.begin_step();
        // It reads the log anew, which is a step of its own: that must not get a later deadline.
        let callers_deadline = self.callers_deadline.replace(self.deadline.at());
        let result = self.quarantine_if_damaged();
        self.callers_deadline = callers_deadline;
        result
    }

    fn is_current(&self) -> Option<bool> {
        Some(self.log_id.is_empty() || self.connection_epoch() == self.last_epoch)
    }

    fn set_deadline(&mut self, deadline: Option<Local>) {
        self.callers_deadline = deadline;
    }

    fn set_lifetime(&mut self, silent: Span) {
        self.retention_ms = silent.max(MIN_RETENTION).0 / 1_000;
    }

    fn wake_sessions(&self, sessions: &[u64]) {
        let prefix = &self.store.options.prefix;
        let mut channels: Vec<String> =
            sessions.iter().map(|session| keys::wake_channel(prefix, *session)).collect();
        channels.dedup();
        let publish = |channel: &String| cmd("PUBLISH").arg(channel).arg("").clone();
        let commands: Vec<Command> = channels.iter().map(publish).collect();
        if !commands.is_empty() {
            self.connection().send(&commands);
        }
    }

    fn chain(&self, chain: u64, stamp: Instant, body: &[u8]) -> u64 {
        let known = self.verified.chain_after(chain, stamp, body);
        known.unwrap_or_else(|| record::chain(chain, stamp, body))
    }
}

/// Converts the error of a step after its append was made: then it was certainly sent.
fn taken_effect(error: StoreError) -> StoreError {
    match error.is_unsent() {
        true => StoreError::transient(error.to_string()).caused_by(error),
        false => error,
    }
}

impl fmt::Debug for RedisLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisLog").field("pool", &self.pool).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_after_an_append_never_claims_that_nothing_was_sent() {
        let unsent = StoreError::unusable("the password was changed").unsent();
        let error = taken_effect(unsent);
        assert!(!error.is_unsent() && error.is_transient(), "{error}");
        assert!(error.to_string().contains("password"), "{error}");
        assert!(taken_effect(StoreError::damaged("x")).is_damaged());
    }
}
