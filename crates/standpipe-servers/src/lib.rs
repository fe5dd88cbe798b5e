//! Real servers, private to one test: Redis and Valkey, alone, as a pair, as a cluster or with
//! sentinels; and the bad networks between them and a client.
//!
//! Only tests and the bench depend on this. Every server lives in a directory of its own on a port
//! that the system chose, and ends with its value, or with the process if that dies first. Servers
//! that somebody else runs are never touched.
//!
//! What cannot be had on this machine is a panic that says what is missing: a test that needs a
//! server has nothing else to do. `cargo xtask test` installs all of it.

#![expect(clippy::panic, reason = "a test without its server can only fail, and say why")]

mod client;
mod clock;
mod cluster;
mod gate;
mod namespace;
mod options;
mod pair;
mod port;
mod process;
mod programs;
mod scratch;
mod sentinel;
mod server;
mod tls;
mod until;

pub use client::Client;
pub use cluster::Cluster;
pub use gate::Gate;
pub use namespace::Namespace;
pub use options::{Flavour, Options};
pub use pair::Pair;
pub use programs::faketime_library;
pub use sentinel::Sentinel;
pub use server::Server;
