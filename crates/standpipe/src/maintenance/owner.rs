//! The process that owns a lease without a session, and whether it is still alive.
//!
//! A process id alone is ambiguous: it is used again, and it names another process in another
//! container. So an owner is its id, its start time, and a hash of the boot and the process
//! namespace. A process with another hash never reports the owner as dead. `liveness` tests owners.

use std::fs;

use standpipe_core::Owner;
use standpipe_store::hash;

use crate::error::Error;

/// Returns the owner for a living process of this machine.
pub(crate) fn of(pid: u32) -> Result<Owner, Error> {
    let unknown = || {
        Error::invalid(
            format!("the process {pid} cannot be watched"),
            "name a living process of this machine as the owner",
        )
    };
    let started = started(pid).ok_or_else(unknown)?;
    let boot = boot_hash().ok_or_else(unknown)?;
    Ok(Owner { pid, started: pack(boot, started) })
}

/// The boot and the process namespace of this process, read once for many owners.
pub(crate) struct ThisBoot(Option<u32>);

impl ThisBoot {
    pub(crate) fn read() -> Self {
        Self(boot_hash())
    }

    /// Returns whether an owner is known to be dead.
    pub(crate) fn is_gone(&self, owner: Owner) -> bool {
        let Some(boot) = self.0 else { return false };
        if (owner.started >> 32) != u64::from(boot) {
            return false;
        }
        started(owner.pid).is_none_or(|started| pack(boot, started) != owner.started)
    }
}

fn pack(boot: u32, started: u64) -> u64 {
    u64::from(boot) << 32 | started & u64::from(u32::MAX)
}

/// Returns a hash of this boot and this process namespace.
fn boot_hash() -> Option<u32> {
    let boot = fs::read("/proc/sys/kernel/random/boot_id").ok()?;
    let namespace = fs::read_link("/proc/self/ns/pid").ok()?;
    let mark = hash(hash(0, &boot), namespace.as_os_str().as_encoded_bytes());
    u32::try_from(mark >> 32).ok()
}

/// Returns when a process started, in ticks since the boot; `None` if there is no such process, or
/// only a zombie.
fn started(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    started_in(&stat)
}

/// Reads the start time from `/proc/<pid>/stat`. The name of the program is in brackets and may
/// contain anything, brackets too.
fn started_in(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace();
    let dead = matches!(fields.next()?, "Z" | "X" | "x");
    // The state is field 3, the start field 22.
    let started = fields.nth(18)?.parse().ok()?;
    (!dead).then_some(started)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_is_found_whatever_the_programs_name_is() {
        let fields = "S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 777 20 21";
        for name in ["sh", "a b", "x) R 9 9 (y", "(((", ")"] {
            assert_eq!(started_in(&format!("42 ({name}) {fields}")), Some(777), "{name}");
        }
        let zombie = fields.replacen('S', "Z", 1);
        assert_eq!(started_in(&format!("42 (sh) {zombie}")), None);
        assert_eq!(started_in("42 (sh"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_living_process_differs_from_another_one_with_its_id() {
        let me = of(std::process::id()).unwrap();
        let here = ThisBoot::read();
        assert!(!here.is_gone(me));
        assert!(here.is_gone(Owner { started: me.started ^ 1, ..me }));
        let elsewhere = me.started ^ (1 << 40);
        assert!(!here.is_gone(Owner { started: elsewhere, ..me }), "another container's");
    }
}
