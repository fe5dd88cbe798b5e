//! The daemon: one local process that serves the ledger over HTTP, with dashboard and metrics.
//!
//! # Contract
//!
//! - The daemon decides nothing and keeps nothing of the ledger. Every admission is a step on the
//!   store through the library, so callers over HTTP, the command line and the library may share a
//!   pool, and the daemon may be killed at any instant.
//! - A request is parsed and validated as a whole before any pool is opened. A request that is
//!   answered with 400 changes nothing.
//! - Everything is bounded: connections, heads, bodies, waits, streams, pools, labels of metrics.
//!   At a bound the client gets 413, 431 or 503, and the daemon keeps serving others.
//! - Views answer without the store: the last known state with its age, see `watch::views`.
//! - Tokens, providers' headers and bodies appear in no log line, message or file.
//!
//! # The life of one `POST /v1/leases`
//!
//! 1. `http::connections::serve` accepts the connection on one of the threads of
//!    `http::acceptors::Acceptors`, where it stays, and takes a slot of `http::budget`.
//! 2. `http::service::HttpService` asks `http::guard::refusal` about origin, host and token, and
//!    passes it to the router; paths of providers go to `proxy::serve`.
//! 3. `http::extract::JsonBody` reads the body into an `api::leases::ReserveRequest`.
//! 4. `api::leases::parse_request` validates it and moves it into a [`standpipe::Request`].
//! 5. `api::leases::prepare` finds the pool and follows the route. Only a pool that is not known
//!    yet is looked up on a thread that may block (`state::AppState::on_store`).
//! 6. [`standpipe::Pool::reserve`] sends limits and reserve in one step and waits;
//!    `api::leases::reserve` races it with the end of the daemon and
//!    `http::peer::Peer::disconnected`.
//! 7. `api::leases::granted` hands the lease over to the client as a `GrantedLease`; a refusal
//!    becomes an `http::problem::Problem`.
//!
//! # Layout
//!
//! - `check`, `daemon`, `instance`, `listen`, `reload`, `token`, `state`: the life of the process
//!   and what requests share.
//! - `http`: connections and their bounds, the guard, reading requests, problems.
//! - [`api`]: one file per resource.
//! - `proxy`: calls to providers that pass through the ledger, one file per phase.
//! - `watch`: snapshots, history, the journal, and streams of them.
//! - [`metrics`]: the text of `/metrics`.
//! - `ui`: the dashboard's files. [`logging`]: `tracing` events as lines.
//!
//! # Tests
//!
//! `tests/it` asks a daemon in a process of its own: the test program starts itself again and calls
//! [`run`]. Tests of `up` and `down`, and of the daemon beside the command line, are in the command
//! line's crate, because only there cargo names the built program.

pub mod api;
mod check;
mod daemon;
mod failure;
mod http;
mod instance;
mod listen;
pub mod logging;
pub mod metrics;
mod proxy;
mod reload;
mod state;
mod token;
mod ui;
mod watch;

pub use self::check::{Checked, check};
pub use self::daemon::{Begun, Options, run};
pub use self::failure::Failure;
pub use self::instance::{Running, no_links, running};
pub use self::listen::raise_file_limit;
pub use self::logging::Log;
pub use self::proxy::{CallDescription, UsageHider, provider_at};
