//! Hooks for tests: corrupting a pool's file and killing a process at a chosen point.
//!
//! Both are behind features (`harm`, `points`). Without them no code of this folder is built into
//! a program.

pub mod failpoint;
#[cfg(feature = "harm")]
pub mod fault_injection;
