//! How a process reaches a store: one [`StoreClient`] per store, one [`PoolClient`] per pool.
//!
//! All handles of a process on one store share these, so that they are one session with one replica
//! per pool. A child process after a fork gets its own and never touches its parent's.
//!
//! Reading order: `registry` and `fork_aware` find the process's [`StoreClient`]; `pool_client`
//! holds the [`Dispatcher`] that callers take turns at; `io_worker` runs steps for tasks that must
//! not block; `operation` is what the public API returns.

mod calendar;
pub(crate) mod contact;
pub(crate) mod dispatch_guard;
pub(crate) mod dispatcher;
pub(crate) mod engine;
mod fallback;
pub(crate) mod fork_aware;
pub(crate) mod io_worker;
pub(crate) mod notify;
pub(crate) mod operation;
pub(crate) mod overview;
pub(crate) mod pool_client;
pub(crate) mod registry;
pub(crate) mod session;
mod settle;
pub(crate) mod store_client;
mod submit_queue;
pub(crate) mod units;
pub(crate) mod usage;
pub(crate) mod view;

pub(crate) use standpipe_store::participant::CallerId;

pub(crate) use self::contact::Uptime;
pub(crate) use self::dispatch_guard::DispatchGuard;
pub(crate) use self::dispatcher::Dispatcher;
pub(crate) use self::pool_client::PoolClient;
pub(crate) use self::store_client::StoreClient;

/// The caller of an action whose outcome no caller waits for.
const NO_CALLER: CallerId = 0;

#[cfg(test)]
mod tests;
