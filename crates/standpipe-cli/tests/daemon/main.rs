//! The daemon, asked from outside: over TCP and its Unix socket, by clients of every kind, beside
//! the command line and the library on the same pools. Each test has a home of its own.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests assert, too"
)]

#[expect(dead_code, reason = "the command line's own tests use the rest of it")]
#[path = "../cli/support.rs"]
mod home;
mod support;

mod calls;
mod crowds;
mod events;
mod found;
mod killed;
mod life;
mod looking;
mod problems;
mod redis;
mod rough;
mod security;
mod vanishing;
mod waiting;
