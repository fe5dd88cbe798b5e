//! Chunked transfers: what exceeds one call is read and written in several; and the search for a
//! position.

use redis::{Cmd, cmd};
use standpipe_store::participant::random_session;
use standpipe_store::{Position, Snapshot, SnapshotId, StoreError};

use super::{MAX_CALL_BYTES, RedisLog};
use crate::protocol::head::Head;
use crate::protocol::record;
use crate::protocol::reply::{Cursor, bulk, snapshot_id_text};

impl RedisLog {
    /// Reads the records between two offsets. Returns `None` if they were dropped.
    pub(super) fn read_log_range(
        &self,
        log_id: &str,
        from: u64,
        upto: u64,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        self.read_chunks(log_id, "log", from, upto)
    }

    /// Reads a snapshot. Returns `None` if it was dropped.
    pub(super) fn read_snapshot(
        &self,
        log_id: &str,
        id: &SnapshotId,
        length: u64,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        self.read_chunks(log_id, &snapshot_id_text(id), 0, length)
    }

    fn read_chunks(
        &self,
        log_id: &str,
        what: &str,
        from: u64,
        upto: u64,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let mut bytes = Vec::with_capacity(usize::try_from(upto - from).unwrap_or_default());
        let mut at = from;
        while at < upto {
            let end = upto.min(at + MAX_CALL_BYTES as u64);
            let arguments = |command: &mut Cmd| {
                command.arg(4).arg(&self.keys.all()).arg(log_id).arg(what).arg(at).arg(end);
            };
            let script = &self.store.scripts.read_range;
            let value = self.connection().run_script(script, arguments, 0)?;
            let Some(chunk) = bulk(value) else { return Ok(None) };
            if chunk.len() as u64 != end - at {
                return Err(self.damaged_keys());
            }
            bytes.extend(chunk);
            at = end;
        }
        Ok(Some(bytes))
    }

    /// Writes a snapshot that covers the log up to `cursor`.
    pub(super) fn send_snapshot(
        &self,
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
        let arguments = |command: &mut Cmd| {
            command.arg(5).arg(&self.keys.all()).arg(&stage).arg(&self.log_id);
            command.arg(position.number).arg(&record::chain_hex(position.chain)[..]).arg(offset);
            command.arg(snapshot_id_text(&snapshot.id)).arg(bytes.len()).arg(inline);
        };
        self.connection().run_script(&self.store.scripts.snapshot, arguments, 0).map(drop)
    }

    /// Writes a snapshot in chunks to the key `stage`.
    pub(crate) fn stage_snapshot(&self, stage: &str, bytes: &[u8]) -> Result<(), StoreError> {
        let mut connection = self.connection();
        for (at, chunk) in (0..).step_by(MAX_CALL_BYTES).zip(bytes.chunks(MAX_CALL_BYTES)) {
            let arguments = |command: &mut Cmd| {
                command.arg(1).arg(stage).arg(at).arg(chunk);
            };
            connection.run_script(&self.store.scripts.stage, arguments, 0)?;
        }
        Ok(())
    }

    /// Searches the whole log for the offset of a position that this process has not read lately.
    /// Returns `None` if the log has another chain there.
    pub(super) fn locate(&mut self, position: Position) -> Result<Option<Cursor>, StoreError> {
        let value = self.connection().call(cmd("HGET").arg(&self.keys.head).arg("h"))?;
        let Some(packed) = bulk(value) else { return Ok(None) };
        let head = Head::decode(packed).ok_or_else(|| self.damaged_keys())?;
        if position.number > head.entries {
            return Ok(None);
        }
        let first = self.connection().call(cmd("GETRANGE").arg(&self.keys.log).arg(0).arg(15))?;
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
