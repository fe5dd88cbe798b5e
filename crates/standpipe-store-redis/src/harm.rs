//! What tests do to a pool: giving the time, losing the last entries, flipping bits.

use redis::cmd;
use standpipe_store::{Clock, StoreError};

use crate::RedisStore;
use crate::answer::{bulk, mark, text};
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
        let (head, log) = (&self.keys.head, &self.keys.log);
        let mut link = self.link();
        let mut number = |name: &str| -> Result<u64, StoreError> {
            let value = text(&link.call(cmd("HGET").arg(head).arg(name))?);
            Ok(value.and_then(|value| value.parse().ok()).unwrap_or_default())
        };
        let (count, base) = (number("n")?, number("b")?);
        let bytes = bulk(link.call(cmd("GET").arg(log))?).unwrap_or_default();
        let mut ends = vec![(record::CHAIN, 0)];
        let mut rest = &bytes[record::CHAIN..];
        while let Ok((taken, behind)) = record::take(rest) {
            ends.push((bytes.len() - behind.len(), taken.stamp.0));
            rest = behind;
        }
        let lost = usize::try_from(entries).unwrap_or(usize::MAX);
        let (end, stamp) = ends[ends.len().saturating_sub(lost + 1)];
        let kept = count - (ends.len() as u64 - 1).min(entries);
        let chain = String::from_utf8_lossy(&bytes[end - record::CHAIN..end]).into_owned();
        link.call(cmd("SET").arg(log).arg(&bytes[..end]).arg("KEEPTTL"))?;
        let mut set = cmd("HSET");
        set.arg(head).arg("n").arg(kept).arg("c").arg(chain).arg("t").arg(stamp);
        set.arg("o").arg(base + (end - record::CHAIN) as u64);
        let latest = text(&link.call(cmd("HGET").arg(head).arg("sm"))?).unwrap_or_default();
        if mark(&latest).is_some_and(|mark| mark.at.number > kept) {
            // The one before it is behind all that is left.
            let previous = bulk(link.call(cmd("GET").arg(&self.keys.previous))?);
            let length = previous.as_ref().map_or(0, Vec::len);
            let mark = text(&link.call(cmd("HGET").arg(head).arg("pm"))?).unwrap_or_default();
            set.arg("so").arg(base).arg("sl").arg(length).arg("sm").arg(mark);
            link.call(cmd("SET").arg(&self.keys.snapshot).arg(previous.unwrap_or_default()))?;
        }
        link.call(&set).map(drop)
    }

    /// Flips a bit of the body of an entry, the first being 1, if it is still there.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub fn damage(&mut self, entry: u64) -> Result<(), StoreError> {
        let mut link = self.link();
        let count = text(&link.call(cmd("HGET").arg(&self.keys.head).arg("n"))?);
        let count: u64 = count.and_then(|count| count.parse().ok()).unwrap_or_default();
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
