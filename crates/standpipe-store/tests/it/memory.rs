//! The memory log passes the conformance suite.

use standpipe_store::conformance::Harness;
use standpipe_store::{Clock, MemoryLog};

struct Memory;

impl Harness for Memory {
    type Pool = MemoryLog;
    type Log = MemoryLog;

    fn open(&self, clock: Clock) -> MemoryLog {
        MemoryLog::new(clock)
    }

    fn attach(&self, pool: &MemoryLog) -> MemoryLog {
        pool.clone()
    }

    fn lose_entries(&self, pool: &MemoryLog, entries: u64) {
        pool.lose_entries(entries);
    }

    fn corrupt_entry(&self, pool: &MemoryLog, entry: u64) {
        pool.corrupt_entry(entry, 8 * 15);
    }
}

standpipe_store::conformance!(Memory);
