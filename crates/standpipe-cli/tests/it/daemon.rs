//! The daemon, asked from outside: over TCP and its Unix socket, by clients of every kind, beside
//! the command line and the library on the same pools. Each test has a home of its own.

pub(crate) mod support;

mod answers;
mod calls;
mod crowds;
mod escaping;
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
mod when;
