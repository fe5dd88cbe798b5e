//! What happens after a kill, a reboot, a power loss, damage or a change of version.
//!
//! The first process that locks a file after opening it verifies it ([`verify`]). A file that
//! proves to be the latest one is used; a reboot ends leases and tickets ([`reboot`]). A file that
//! is damaged, or may be older than what was last written, is renamed and replaced by a new one
//! ([`quarantine`]), whose limits count as full: what cannot be read counts as used. [`replay`]
//! reads a file as a new process would, and [`upgrade`] handles files of other semantics.
//!
//! Invariant: there is no content of a file with which a pool cannot be used again.

pub(crate) mod quarantine;
pub(crate) mod reboot;
pub(crate) mod replay;
pub(crate) mod upgrade;
pub(crate) mod verify;
