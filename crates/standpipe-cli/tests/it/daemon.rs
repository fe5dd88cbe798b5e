//! The daemon as `up` starts it, beside the command line and the library on the same pools. What
//! needs no command line is tested in the server's own crate.

pub(crate) mod support;

mod escaping;
mod events;
mod killed;
mod lifecycle;
mod regressions;
mod run;
mod security;
mod stopped;
mod views;
mod waiting;
