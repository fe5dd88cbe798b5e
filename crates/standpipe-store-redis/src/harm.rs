//! What tests do to a pool: giving the time, losing the last entries, flipping bits.

use redis::cmd;
use standpipe_store::{Clock, StoreError};

use crate::RedisStore;
use crate::answer::{bulk, mark, text};
use crate::head::Head;
use crate::log::RedisLog;
use crate::record;

impl RedisStore {
    /// The same, stamped by this clock instead of the server's.
    #[must_use]
    pub fn with_clock(self, clock: Clock) -> Self {
        let address = (*self.shared.address).clone();
        let options = self.shared.options.clone();
        let mut store = Self::new(address, options);
        if let Some(shared) = std::sync::Arc::get_mut(&mut store.shared) {
            shared.clock = Some(clock);
        }
        store
    }
}

impl RedisLog {
    /// Makes the server forget the last entries, as a failover to a lagging replica does.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub fn lose(&mut self, entries: u64) -> Result<(), StoreError> {
        let (key, log) = (&self.keys.head, &self.keys.log);
        let mut link = self.link();
        let head = bulk(link.call(cmd("HGET").arg(key).arg("h"))?).and_then(Head::read);
        let Some(mut head) = head else { return Ok(()) };
        let bytes = bulk(link.call(cmd("GET").arg(log))?).unwrap_or_default();
        let mut ends = vec![(record::CHAIN, 0)];
        let mut rest = &bytes[record::CHAIN..];
        while let Ok((taken, behind)) = record::take(rest) {
            ends.push((bytes.len() - behind.len(), taken.stamp.0));
            rest = behind;
        }
        let lost = usize::try_from(entries).unwrap_or(usize::MAX);
        let (end, stamp) = ends[ends.len().saturating_sub(lost + 1)];
        head.number -= (ends.len() as u64 - 1).min(entries);
        head.chain = record::of_digits(&bytes[end - record::CHAIN..end]).unwrap_or_default();
        head.stamp = stamp;
        head.end = head.base + (end - record::CHAIN) as u64;
        link.call(cmd("SET").arg(log).arg(&bytes[..end]).arg("KEEPTTL"))?;
        let latest = text(&link.call(cmd("HGET").arg(key).arg("sm"))?).unwrap_or_default();
        if mark(&latest).is_some_and(|mark| mark.at.number > head.number) {
            // The one before it is behind all that is left.
            let previous = bulk(link.call(cmd("GET").arg(&self.keys.previous))?);
            let previous = previous.unwrap_or_default();
            head.snapshot_at = head.base;
            head.snapshot_length = previous.len() as u64;
            let mark = text(&link.call(cmd("HGET").arg(key).arg("pm"))?).unwrap_or_default();
            link.call(cmd("HSET").arg(key).arg("sm").arg(mark))?;
            link.call(cmd("SET").arg(&self.keys.snapshot).arg(previous))?;
        }
        link.call(cmd("HSET").arg(key).arg("h").arg(head.write())).map(drop)
    }

    /// Flips a bit of the body of an entry, the first being 1, if it is still there.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub fn damage(&mut self, entry: u64) -> Result<(), StoreError> {
        let mut link = self.link();
        let head = bulk(link.call(cmd("HGET").arg(&self.keys.head).arg("h"))?);
        let count = head.and_then(Head::read).map_or(0, |head| head.number);
        let bytes = bulk(link.call(cmd("GET").arg(&self.keys.log))?).unwrap_or_default();
        let mut begins = Vec::new();
        let mut rest = &bytes[record::CHAIN..];
        while let Ok((_, behind)) = record::take(rest) {
            begins.push(bytes.len() - rest.len());
            rest = behind;
        }
        let before = count - begins.len() as u64;
        let Some(at) = entry.checked_sub(before + 1).and_then(|at| usize::try_from(at).ok()) else {
            return Ok(());
        };
        let Some(body) = begins.get(at).map(|begin| begin + 8) else { return Ok(()) };
        let flipped = [bytes[body] ^ 1];
        link.call(cmd("SETRANGE").arg(&self.keys.log).arg(body).arg(&flipped)).map(drop)
    }
}
