//! The embedded store of Standpipe: every process of one machine on one file per pool, no server.
//!
//! ```
//! use standpipe_store::{Log, Position, Store};
//! use standpipe_store_file::FileStore;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = std::env::temp_dir().join(format!("standpipe-doc-{}", std::process::id()));
//! let store = FileStore::open(&directory)?;
//! let mut log = store.log(&"anthropic/sonnet".parse()?)?;
//! log.read(Position::START)?;
//! assert_eq!(store.pools()?.len(), 1);
//! # std::fs::remove_dir_all(&directory)?;
//! # Ok(())
//! # }
//! ```
//!
//! # Contract
//!
//! [`FileStore`] implements [`standpipe_store::Store`] and [`FileLog`] implements
//! [`standpipe_store::Log`]. The store orders entries and stamps them; it decides nothing about
//! quotas and waits for none.
//!
//! - An append is atomic: a process killed at any instant leaves the whole append or none of it.
//! - Stamps never go back, and do not depend on the wall clock while the machine runs.
//! - A truncated or overwritten file is an error or is quarantined, never a signal: nothing is
//!   mapped. What cannot be read counts as used.
//! - There is no content of a file with which a pool cannot be used again.
//! - Nothing is synced to disk. Most limits have returned by the time a machine has rebooted, and a
//!   loss is detected.
//!
//! # One append
//!
//! A process keeps a replica of the pool's state and the position it has read to.
//!
//! 1. *Take the lock* (`flock`, released by the kernel when its process dies). Read and verify the
//!    head, and check that the open file is still the pool's: it has as many names as before and no
//!    mark that a process renamed it. At most every 100 µs look at the path itself.
//! 2. *Append*: stamp the new entries and write them, each with the chain hash over all entries up
//!    to it, behind the end that the head names.
//! 3. *Write the head* that covers them, in the place of the older of the two heads.
//! 4. *Unlock*, then read the entries that others appended since the caller's position and apply
//!    them, and after them the caller's own events, which are not read back.
//!
//! A read takes no lock: it reads the latest of the two heads, finds the position, and reads the
//! entries since, or the snapshot and the entries after it. If the latest head no longer covers
//! what was read, it reads again with the lock.
//!
//! Whenever the log behind the snapshot is longer than the snapshot, the appender writes a new one
//! into the other of two slots, and the log before the previous snapshot is trimmed.
//!
//! # What happens after
//!
//! - **`kill -9`**: the kernel releases the lock. Entries without their head do not count, unless
//!   the head itself is damaged or the pool was idle: then they are included, because their process
//!   may have its answer. The dead session's lock file is no longer locked; other processes test it
//!   and append the end of the session.
//! - **A stopped process** (`SIGSTOP`) keeps a lock it holds. Others wait until their timeout; the
//!   error names the process.
//! - **Fork**: the parent's locked files become empty pipes in the child (crate `standpipe-sys`).
//!   [`standpipe_store::Store::was_forked`] returns `true` there, and the child opens the store
//!   again with a session of its own.
//! - **Reboot**: detected by the instant of the boot and the boot id. Leases and tickets end; usage
//!   is carried over by the wall clock, and if that went back, no time has passed.
//! - **Power loss**: each page is its old or its new version. If heads and chain prove that the
//!   file is the latest one it is used; otherwise it is quarantined and the limits of the new file
//!   count as full.
//! - **A replaced file**: each lock and each read notices that the open file was deleted, replaced
//!   or quarantined; one that was renamed by hand is noticed 100 µs later. Each head names the
//!   inode it was written to. With an older copy the pool pauses for two seconds, in which living
//!   processes restore what the copy lacks of theirs.
//!
//! `docs/file-store.md` has the complete table.
//!
//! # Reading order
//!
//! 1. `file/`: the layout (`head`, `label`, `pool_file`), the `lock`, `append`, `create`.
//! 2. `log`: the order of reads and writes, and `log/lookup`, finding a position.
//! 3. `recovery/`: `verify` after opening, `reboot`, `replay`, `quarantine`, `upgrade`.
//! 4. `session/`: liveness and wake-ups between processes.
//! 5. `time`: stamps, over reboots too.
//! 6. `store/`: the directory, and everything together.
//! 7. `sys/`: every call to the operating system. `testing/`: hooks behind features.

mod file;
mod log;
mod recovery;
mod session;
mod store;
mod sys;
mod testing;
mod time;

pub use self::file::head::Sizes;
pub use self::log::FileLog;
pub use self::store::directory::Audience;
pub use self::store::survey::Survey;
pub use self::store::{FileStore, Options};
pub use self::sys::process::process_started;
pub use self::testing::failpoint;
#[cfg(feature = "harm")]
pub use self::testing::fault_injection;
pub use self::time::Time;
