//! Faults that tests inject (feature `harm`): a clock, lost entries, flipped bits.

use standpipe_store::{Clock, StoreError};

use super::RedisLog;
use crate::RedisStore;
use crate::protocol::head::Head;
use crate::protocol::record;
use crate::protocol::reply::{bulk, parse_snapshot_id, text};
use crate::protocol::resp::{Command, Reply, cmd};

impl RedisStore {
    /// Returns a store at the same address that stamps with this clock instead of the server's.
    #[must_use]
    pub fn with_clock(self, clock: Clock) -> Self {
        let address = self.inner.servers.address.clone();
        let options = self.inner.options.clone();
        let mut store = Self::new(address, options);
        if let Some(inner) = std::sync::Arc::get_mut(&mut store.inner) {
            inner.clock = Some(clock);
        }
        store
    }
}

impl RedisLog {
    /// Removes the last entries from the server, as a failover to a lagging replica does.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub fn lose(&mut self, entries: u64) -> Result<(), StoreError> {
        self.cut(|_| entries)
    }

    /// Removes all entries after this number, also those that are being appended now.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub fn lose_after(&mut self, number: u64) -> Result<(), StoreError> {
        self.cut(|entries| entries.saturating_sub(number))
    }

    /// Removes as many entries as `lost` returns for a log of so many.
    ///
    /// It is one step of the server, as a failover is: a process that read between two of its
    /// commands would find a damaged log and quarantine it.
    fn cut(&mut self, lost: impl Fn(u64) -> u64) -> Result<(), StoreError> {
        loop {
            self.begin_step();
            self.call(cmd("WATCH").arg(&self.keys.head).arg(&self.keys.log))?;
            let commands = self.commands_to_cut(&lost)?;
            self.call(&cmd("MULTI"))?;
            for command in &commands {
                self.call(command)?;
            }
            // Nothing happened if somebody wrote since the commands were computed.
            if self.call(&cmd("EXEC"))? != Reply::Nil {
                return Ok(());
            }
        }
    }

    fn commands_to_cut(&self, lost: impl Fn(u64) -> u64) -> Result<Vec<Command>, StoreError> {
        let (key, log) = (&self.keys.head, &self.keys.log);
        let head = bulk(self.call(cmd("HGET").arg(key).arg("h"))?).and_then(Head::decode);
        let Some(mut head) = head else { return Ok(Vec::new()) };
        let entries = lost(head.entries);
        let bytes = bulk(self.call(cmd("GET").arg(log))?).unwrap_or_default();
        let mut ends = vec![(record::CHAIN_LEN, 0)];
        let mut rest = &bytes[record::CHAIN_LEN..];
        while let Ok((record, after)) = record::split_first(rest) {
            ends.push((bytes.len() - after.len(), record.stamp.0));
            rest = after;
        }
        let lost = usize::try_from(entries).unwrap_or(usize::MAX);
        let (end, stamp) = ends[ends.len().saturating_sub(lost + 1)];
        head.entries -= (ends.len() as u64 - 1).min(entries);
        let chain = record::parse_chain(&bytes[end - record::CHAIN_LEN..end]);
        head.chain = chain.unwrap_or_default();
        head.last_stamp = stamp;
        head.bytes = head.trimmed + (end - record::CHAIN_LEN) as u64;
        let mut commands = vec![cmd("SET").arg(log).arg(&bytes[..end]).arg("KEEPTTL").clone()];
        let latest = text(&self.call(cmd("HGET").arg(key).arg("sm"))?).unwrap_or_default();
        if parse_snapshot_id(&latest).is_some_and(|id| id.at.number > head.entries) {
            // The latest snapshot covers lost entries. The previous one covers only what was
            // trimmed, so it becomes the latest.
            let previous = bulk(self.call(cmd("GET").arg(&self.keys.previous))?);
            let previous = previous.unwrap_or_default();
            head.snapshot_at = head.trimmed;
            head.snapshot_length = previous.len() as u64;
            let id = text(&self.call(cmd("HGET").arg(key).arg("pm"))?).unwrap_or_default();
            commands.push(cmd("HSET").arg(key).arg("sm").arg(id).clone());
            commands.push(cmd("SET").arg(&self.keys.snapshot).arg(previous).clone());
        }
        commands.push(cmd("HSET").arg(key).arg("h").arg(head.encode()).clone());
        Ok(commands)
    }

    /// Flips a bit in the body of an entry, counted from 1, if the log still has it.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub fn damage(&mut self, entry: u64) -> Result<(), StoreError> {
        self.begin_step();
        let head = bulk(self.call(cmd("HGET").arg(&self.keys.head).arg("h"))?);
        let count = head.and_then(Head::decode).map_or(0, |head| head.entries);
        let bytes = bulk(self.call(cmd("GET").arg(&self.keys.log))?).unwrap_or_default();
        let mut starts = Vec::new();
        let mut rest = &bytes[record::CHAIN_LEN..];
        while let Ok((_, after)) = record::split_first(rest) {
            starts.push(bytes.len() - rest.len());
            rest = after;
        }
        let trimmed = count - starts.len() as u64;
        let index = entry.checked_sub(trimmed + 1).and_then(|index| usize::try_from(index).ok());
        let Some(start) = index.and_then(|index| starts.get(index)) else { return Ok(()) };
        let at = start + record::HEADER_LEN;
        let flipped = [bytes[at] ^ 1];
        self.call(cmd("SETRANGE").arg(&self.keys.log).arg(at).arg(&flipped[..])).map(drop)
    }
}
