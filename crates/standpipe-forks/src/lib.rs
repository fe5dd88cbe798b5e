//! `fork` and `_exit` for tests in crates that forbid `unsafe`.
//!
//! The program in `main.rs` forks in several situations; `tests/forks.rs` runs it.

/// Forks. Returns `Some(0)` in the child, the child's pid in the parent, `None` if it failed.
#[must_use]
pub fn fork() -> Option<i32> {
    // SAFETY: the callers are tests of what a program may do after a fork. The child only uses what
    // the library under test supports there.
    let forked = unsafe { libc::fork() };
    (forked >= 0).then_some(forked)
}

/// Ends this process at once, without destructors and exit handlers.
pub fn exit_now() -> ! {
    // SAFETY: it never returns.
    unsafe { libc::_exit(0) }
}
