//! The extension module of the Python package `standpipe`: the library in the caller's process.
//!
//! Guarantees: the GIL is released during every step of the store and while a call waits, and no
//! thread of the library ever needs the GIL, so the two cannot deadlock. What is plain Python lives
//! in `python/standpipe`; read `tap.rs` first, then `lease.rs` and `pending.rs`.

mod answer;
mod call;
mod clock;
mod convert;
mod errors;
mod lease;
mod pending;
mod request;
mod tap;
mod wait;

use std::ffi::OsString;

use pyo3::prelude::*;
use standpipe_cli::Invocation;

/// Runs the command line and returns its exit code. `program` starts it again in the background.
#[pyfunction]
fn run_cli(py: Python<'_>, program: Vec<OsString>, words: Vec<OsString>) -> u8 {
    py.detach(|| standpipe_cli::run_for_number(Invocation::within(program, words)))
}

/// Returns a name that an agent can have, made from that of a program.
#[pyfunction]
fn agent_named_after(program: &str) -> String {
    standpipe::named_after(program)
}

/// The extension module.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::agent_named_after;
    #[pymodule_export]
    use super::answer::Answer;
    #[pymodule_export]
    use super::call::{Call, StreamFilter};
    #[pymodule_export]
    use super::lease::Lease;
    #[pymodule_export]
    use super::pending::{Pending, Reactor};
    #[pymodule_export]
    use super::run_cli;
    #[pymodule_export]
    use super::tap::Tap;
}
