//! The conformance suite of all stores, run on the file store.

use standpipe_store::Clock;
use standpipe_store::conformance::Harness;
use standpipe_store_file::{FileLog, FileStore, Options, Time};

use crate::support::Scratch;

struct File;

struct Pool {
    store: FileStore,
    _scratch: Scratch,
}

impl Pool {
    fn log(&self) -> FileLog {
        self.store.pool_log(&"test/pool".parse().unwrap())
    }
}

impl Harness for File {
    type Pool = Pool;
    type Log = FileLog;

    fn open(&self, clock: Clock) -> Pool {
        let scratch = Scratch::new();
        let options =
            Options { time: Time::raw(clock), recover_if_damaged: false, ..Options::default() };
        let store = FileStore::open_with(scratch.path(), options).unwrap();
        Pool { store, _scratch: scratch }
    }

    fn attach(&self, pool: &Pool) -> FileLog {
        pool.log()
    }

    fn lose_entries(&self, pool: &Pool, entries: u64) {
        pool.log().lose(entries).unwrap();
    }

    fn corrupt_entry(&self, pool: &Pool, entry: u64) {
        pool.log().damage(entry).unwrap();
    }
}

standpipe_store::conformance!(File);
