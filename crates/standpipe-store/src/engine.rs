//! Parts that engines share, so that another engine is small.
//!
//! An engine implements [`crate::Log`] and [`crate::Store`]; nothing here is part of that contract,
//! and nothing here decides about quotas. What only one engine needs stays in its crate: the
//! framing of its records, how it stores its head, and how tests damage it.
//!
//! - [`entry_bodies`]: the entries that an engine appends itself, such as a loss;
//! - [`PoolMarker`]: which log of a pool a machine last used, to tell a lost pool from a new one;
//! - [`semantics`]: whether a log that other versions wrote may be replaced;
//! - [`SessionRegistry`]: the processes of this machine, for engines on other machines;
//! - [`Messages`]: what people should read, until somebody takes it;
//! - [`WakeFlag`]: a wake-up that one thread waits for.

mod entries;
mod marker;
mod messages;
pub mod semantics;
mod session_registry;
mod wake_flag;

pub use self::entries::entry_bodies;
pub use self::marker::{PoolMarker, random_log_id};
pub use self::messages::{Message, Messages};
pub use self::session_registry::SessionRegistry;
pub use self::wake_flag::WakeFlag;
