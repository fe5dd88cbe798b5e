//! One pool's file: its layout, and reading and writing its parts.
//!
//! ```text
//! offset                what
//! 0                     label: magic, format version, pool name, checksum; never changes
//! 4096 - 1024, 4096     two heads, written alternately, each with a checksum and the last records
//! 8192                  log: a ring of records, each an entry and the chain hash after it
//! 8192 + log size       two snapshot slots
//! ```
//!
//! Invariant: no process writes bytes that the latest head covers. New entries are written with the
//! head that covers them, and what does not fit there before it, as snapshots are; bytes that are
//! given up are uncovered by a head before they are overwritten. So a process killed at any instant
//! leaves the whole event or none.
//!
//! Reading order: [`head`], [`tail`], [`label`], [`pool_file`], [`lock`], [`append`], [`create`].

pub(crate) mod append;
pub(crate) mod create;
pub(crate) mod head;
pub(crate) mod label;
pub(crate) mod lock;
pub(crate) mod pool_file;
pub(crate) mod tail;
