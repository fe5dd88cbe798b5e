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
//! A pool's file has a label, two checksummed heads written alternately, a ring of entries and two
//! places for snapshots; it is read and written by plain calls under a lock that the kernel gives
//! back at any death. A process killed at any instant leaves a whole event or none. Nothing is
//! mapped, so a file cut short is an error, never a signal; nothing is synced, because a restart of
//! the machine outlasts most windows and a loss is noticed.
//!
//! In reading order: `head` (what a file says of itself), `pool_file` (reading and writing its
//! parts), `log` and `write` (the order of steps), `mend` (everything that can be wrong),
//! `sessions` (who is alive), `store` (all of it together). `sys` is where the operating system is
//! touched.
//!
//! It decides nothing about quotas and does not wait for them.

mod directory;
#[cfg(feature = "harm")]
pub mod harm;
mod head;
mod lock;
mod log;
mod mend;
pub mod point;
mod pool_file;
mod sessions;
mod store;
mod survey;
mod sys;
mod time;
mod write;

pub use self::directory::For;
pub use self::head::Sizes;
pub use self::log::FileLog;
pub use self::store::{FileStore, Options};
pub use self::survey::Survey;
pub use self::sys::process_started;
pub use self::time::Time;
