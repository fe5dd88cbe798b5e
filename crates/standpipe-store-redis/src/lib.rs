//! Standpipe on Redis and Valkey: every process of many machines on one server.
//!
//! A pool is four keys of one hash tag: a head, the log since the last but one snapshot, and two
//! snapshots. One script does a whole step: it stamps with the server's own clock, appends, goes on
//! with the chain of hashes, and answers what came since the caller's position. It decides nothing;
//! what the entries mean is the business of `standpipe-store`.
//!
//! In reading order:
//!
//! - [`address`]: which server is meant, with its password, which is never shown;
//! - `scripts`: what the server does;
//! - `record`: entries as they lie in a log there;
//! - `link`: one connection, found again after it is lost, through Sentinel or a cluster too;
//! - `log`: the order of steps, and what is done when the server forgot something;
//! - `marker`: what this machine remembers of a pool, so that a lost one is told from a new one;
//! - `listener`: wake-ups; `store`: everything around the logs; `operate`: what people do to them.

pub mod address;
mod answer;
mod error;
#[cfg(feature = "harm")]
mod harm;
mod head;
mod keys;
mod link;
mod listener;
mod log;
mod marker;
mod operate;
mod pieces;
mod record;
mod scripts;
mod store;

pub use self::address::{Address, InvalidAddress};
pub use self::log::RedisLog;
pub use self::operate::Server;
pub use self::store::{Lives, Options, RedisStore};
