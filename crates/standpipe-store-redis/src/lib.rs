//! Pools on Redis or Valkey: many machines share one server, a Sentinel group or a cluster.
//!
//! The contract is that of [`standpipe_store::Log`]: the server orders entries and stamps them with
//! its own clock. Every decision is made by the core, in the processes. Clocks of other machines
//! do not matter.
//!
//! # One step
//!
//! A pool has four keys with one hash tag: `head`, `log`, `snapshot`, `previous`. A step is one
//! call of `append.lua`, in one round trip:
//!
//! 1. The process sends its entries, its position (number of entries, byte offset, hash chain), the
//!    run id of the server it is connected to, and the id of the log that its machine remembers.
//! 2. The script compares the chain in the log at that offset with the caller's. If they differ the
//!    server lost entries: it replies `forked`, and the process loads the present log and
//!    re-appends its own missing entries.
//! 3. The script reads the records since that position, at most 64 KB. If they were trimmed, or
//!    are longer than the snapshot and the records behind it, it returns the snapshot first.
//! 4. The script stamps the new entries with `TIME`, never before the last stamp, extends the chain
//!    with SHA-1, appends the records and writes the head.
//! 5. The process verifies the chain of every record, which covers all of its bytes, applies them,
//!    then its own entries, and has its outcome. It knows its own entries, so the reply does not
//!    repeat them.
//!
//! With `wait_replicas` a `WAIT` follows in the same round trip, and an entry that too few replicas
//! have counts as not answered.
//!
//! # What can happen to the server
//!
//! - **Change of server.** The head contains the run id of the server process that took the last
//!   append. If another one answers, after a restart or a failover, the script replies `changed`.
//!   The process sends its entries again behind a pause of 2 s, the rejoin pause: in that time
//!   every living process reconnects, finds what is missing and re-appends it, before anything is
//!   admitted.
//! - **Loss of a pool.** Each machine keeps a marker per pool in its state directory: the log's id,
//!   and when its keys expire. If a log is missing before that time, or another one is in its
//!   place, the next log records a loss: limits count as full and recover over one period.
//! - **Damage.** If lengths, checksums or chains do not match, the log is read once more. If it is
//!   still damaged its keys are renamed and kept for a week, and the pool starts again as after a
//!   loss.
//! - **Unavailability.** A step ends within two seconds, or by the deadline that its caller set,
//!   with a transient error: a second is for connecting, a second for the reply. The participant
//!   sends the same entries again; the state ignores duplicates.
//!
//! # Wake-ups
//!
//! An appender publishes to the channels of processes whose tickets became due, and does not wait
//! for the replies. A subscriber thread receives them. They are hints: a waiter polls as well.
//!
//! # What this crate never does
//!
//! It never decides about quota, never decodes an entry on the server, never uses a key outside its
//! prefix, never deletes a log that it cannot read, and never shows a password.
//!
//! # Example
//!
//! ```no_run
//! use standpipe_store::{Participant, Store};
//! use standpipe_store_redis::{Options, RedisStore};
//!
//! let address = "redis://localhost:6379".parse()?;
//! let store = RedisStore::new(address, Options::default());
//! let pool = "my/pool".parse()?;
//! let session = store.begin_session()?;
//! let mut participant = Participant::new(store.pool_log(&pool), move || session);
//! participant.refresh()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Reading order
//!
//! 1. `protocol/scripts/append.lua`: the step, its arguments and replies; `head.lua`: the head, and
//!    `head_table.lua`: the head as the other scripts use it;
//! 2. `protocol`: key names, records and replies; `protocol/resp`: the wire protocol;
//! 3. `log`: the step loop; `log/recovery`: loss, damage, semantics; `log/chunks`: what exceeds
//!    64 KB; `log/verified`: entries whose chain is known;
//! 4. `connection`: reconnects, backoff, redirects; `connection/dial`: login, Sentinel, Cluster;
//!    `connection/socket`: deadlines; `connection/error`: error messages;
//! 5. `store`: sessions; `store/index`: the list of pools; `store/subscriber`: wake-ups;
//!    `store/admin`: reset, import, remove;
//! 6. [`address`]: URLs and logins.
//!
//! Markers of pools and other parts that engines share are in [`standpipe_store::engine`].
//! `docs/redis.md` describes operation, `docs/decisions/0016-redis.md` the reasons.

pub mod address;
mod connection;
mod log;
mod protocol;
mod store;

pub use self::address::{Address, InvalidAddress};
pub use self::log::RedisLog;
pub use self::store::{Options, RedisStore, ServerInfo};
pub use standpipe_store::engine::SessionRegistry;
