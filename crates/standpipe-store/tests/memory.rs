//! The memory log proves itself with the suite every store does.

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

    fn lose(&self, pool: &MemoryLog, entries: u64) {
        pool.lose(entries);
    }

    fn damage(&self, pool: &MemoryLog, entry: u64) {
        pool.damage(entry, 8 * 15);
    }
}

standpipe_store::conformance!(Memory);
