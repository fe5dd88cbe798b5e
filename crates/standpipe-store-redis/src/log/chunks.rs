//! Chunked transfers: what exceeds one call is read and written in several; and the search for a
//! position.

use standpipe_store::participant::random_session;
use standpipe_store::{Position, Snapshot, SnapshotId, StoreError};

use super::{MAX_CALL_BYTES, RedisLog};
use crate::connection::REPLY_TIMEOUT;
use crate::protocol::head::Head;
use crate::protocol::record;
use crate::protocol::reply::{Cursor, bulk, snapshot_id_text};
use crate::protocol::resp::{Command, cmd};

/// What was read of a range before a deadline passed. The next step continues with it, so that a
/// long range is read however short the deadlines are.
#[derive(Debug)]
pub(super) struct PartialRead {
    log_id: String,
    what: String,
    from: u64,
    bytes: Vec<u8>,
}

impl RedisLog {
    /// Reads the records between two offsets. Returns `None` if they were dropped.
    pub(super) fn read_log_range(
        &mut self,
        log_id: &str,
        from: u64,
        upto: u64,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        self.read_chunks(log_id, "log", from, upto)
    }

    /// Reads a snapshot. Returns `None` if it was dropped.
    pub(super) fn read_snapshot(
        &mut self,
        log_id: &str,
        id: &SnapshotId,
        length: u64,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        self.read_chunks(log_id, &snapshot_id_text(id), 0, length)
    }

    fn read_chunks(
        &mut self,
        log_id: &str,
        what: &str,
        from: u64,
        upto: u64,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let mut bytes = self.take_partial(log_id, what, from, upto);
        bytes.reserve(usize::try_from(upto - from).unwrap_or_default() - bytes.len());
        loop {
            let at = from + bytes.len() as u64;
            if at >= upto {
                return Ok(Some(bytes));
            }
            let end = upto.min(at + MAX_CALL_BYTES as u64);
            let arguments = |command: &mut Command| {
                command.arg(4_u64).arg(self.keys.all()).arg(log_id).arg(what).arg(at).arg(end);
            };
            let value = match self.run_script(&self.store.scripts.read_range, arguments) {
                Ok(value) => value,
                Err(error) => {
                    let (log_id, what) = (log_id.to_owned(), what.to_owned());
                    self.partial = Some(PartialRead { log_id, what, from, bytes });
                    return Err(error);
                }
            };
            let Some(chunk) = bulk(value) else { return Ok(None) };
            if chunk.len() as u64 != end - at {
                return Err(self.damaged_keys());
            }
            bytes.extend(chunk);
        }
    }

    /// Takes what an earlier step read of this range. What was appended under an id never changes,
    /// unless a server lost it; then its chain is another one, and it is read again from the start.
    fn take_partial(&mut self, log_id: &str, what: &str, from: u64, upto: u64) -> Vec<u8> {
        let same = |read: &PartialRead| {
            (read.log_id.as_str(), read.what.as_str(), read.from) == (log_id, what, from)
                && read.bytes.len() as u64 <= upto - from
        };
        self.partial.take().filter(same).map(|read| read.bytes).unwrap_or_default()
    }

    /// Writes a snapshot that covers the log up to `cursor`.
    pub(super) fn send_snapshot(
        &mut self,
        cursor: Cursor,
        snapshot: &Snapshot,
    ) -> Result<(), StoreError> {
        let (bytes, stage) = (&snapshot.bytes, self.keys.stage(random_session()));
        let fits = bytes.len() <= MAX_CALL_BYTES;
        if !fits {
            self.stage_snapshot(&stage, bytes)?;
        }
        let inline: &[u8] = if fits { bytes } else { &[] };
        let Cursor { position, offset } = cursor;
        let arguments = |command: &mut Command| {
            command.arg(5_u64).arg(self.keys.all()).arg(&stage).arg(&self.log_id);
            command.arg(position.number).arg(&record::chain_hex(position.chain)[..]).arg(offset);
            command.arg(snapshot_id_text(&snapshot.id)).arg(bytes.len()).arg(inline);
        };
        self.run_script(&self.store.scripts.snapshot, arguments).map(drop)
    }

    /// Writes a snapshot in chunks to the key `stage`.
    ///
    /// A large snapshot may take longer than a step: each chunk gets a time of its own, up to the
    /// deadline that the caller set. Otherwise a slow network could never shorten the log.
    pub(crate) fn stage_snapshot(&mut self, stage: &str, bytes: &[u8]) -> Result<(), StoreError> {
        for (at, chunk) in (0_usize..).step_by(MAX_CALL_BYTES).zip(bytes.chunks(MAX_CALL_BYTES)) {
            let arguments = |command: &mut Command| {
                command.arg(1_u64).arg(stage).arg(at).arg(chunk);
            };
            self.run_script(&self.store.scripts.stage, arguments)?;
            self.extend_step(REPLY_TIMEOUT);
        }
        Ok(())
    }

    /// Searches the whole log for the offset of a position that this process has not read lately.
    /// Returns `None` if the log has another chain there.
    pub(super) fn locate(&mut self, position: Position) -> Result<Option<Cursor>, StoreError> {
        let value = self.call(cmd("HGET").arg(&self.keys.head).arg("h"))?;
        let Some(packed) = bulk(value) else { return Ok(None) };
        let head = Head::decode(packed).ok_or_else(|| self.damaged_keys())?;
        if position.number > head.entries {
            return Ok(None);
        }
        let first = self.call(cmd("GETRANGE").arg(&self.keys.log).arg(0_u64).arg(15_u64))?;
        let first = bulk(first).as_deref().and_then(record::parse_chain);
        let chain = first.ok_or_else(|| self.damaged_keys())?;
        let range = self.read_log_range(&head.log_id, head.trimmed, head.bytes)?;
        // A snapshot trimmed the log between the calls: start again.
        let Some(records) = range else { return self.locate(position) };
        head.log_id.clone_into(&mut self.log_id);
        let mut boundaries = vec![(chain, head.trimmed)];
        let mut rest = records.as_slice();
        while !rest.is_empty() {
            let (record, after) = record::split_first(rest)?;
            let start = boundaries.last().map_or(head.trimmed, |(_, offset)| *offset);
            boundaries.push((record.chain, start + record.length));
            rest = after;
        }
        // Count from the end: the head does not contain the number of trimmed entries.
        let entries_after = usize::try_from(head.entries - position.number).unwrap_or(usize::MAX);
        let Some(index) = boundaries.len().checked_sub(entries_after + 1) else {
            // The position was trimmed: offset 0 makes the script return the snapshot.
            return Ok(Some(Cursor { position, offset: 0 }));
        };
        let (chain, offset) = boundaries[index];
        Ok((chain == position.chain).then_some(Cursor { position, offset }))
    }
}
