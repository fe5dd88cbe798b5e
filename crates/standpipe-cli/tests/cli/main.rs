//! The real program, run as people and scripts run it, each test in a home of its own.

#![expect(clippy::panic, clippy::unwrap_used, reason = "helpers of tests assert, too")]

mod bad_input;
mod calls;
mod checking;
mod configuration;
mod help;
mod hold;
mod manners;
mod shapes;
mod signals;
mod support;
mod top;
