//! All calls to the operating system, in safe code.
//!
//! Everything that differs between systems is in this folder. The only `unsafe` of the product, a
//! fork hook, is in the crate `standpipe-sys`.

pub(crate) mod clock;
pub(crate) mod fifo;
pub(crate) mod file;
pub(crate) mod mounts;
pub(crate) mod process;
