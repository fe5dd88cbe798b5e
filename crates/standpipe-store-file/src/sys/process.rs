//! Processes as `/proc` shows them, for messages and views only.
//!
//! Whether a session is alive is never decided here: see [`crate::session`].

use std::fs;

/// Returns when a process started, in the system's own unit; `None` if it does not exist.
#[must_use]
pub fn process_started(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The command name in parentheses may contain anything, so count fields from behind it.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace();
    if matches!(fields.next(), Some("Z" | "X")) {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

/// Whether a process is stopped (`SIGSTOP`, or by a debugger).
pub(crate) fn is_stopped(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state =
        stat.rsplit_once(')').and_then(|(_, fields)| fields.split_ascii_whitespace().next());
    matches!(state, Some("T" | "t"))
}

/// Returns the id of this process's pid namespace, where the system shows it.
pub(crate) fn pid_namespace() -> Option<u64> {
    let link = fs::read_link("/proc/self/ns/pid").ok()?;
    link.to_str()?.strip_prefix("pid:[")?.strip_suffix(']')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_living_process_has_a_start_and_a_missing_one_has_none() {
        assert!(process_started(std::process::id()).is_some());
        assert_eq!(process_started(u32::MAX), None);
        assert!(!is_stopped(std::process::id()));
    }
}
