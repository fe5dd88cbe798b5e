//! Labelled points at which a test can have a process killed or stopped.
//!
//! They are built only with the feature `points`; without it `reach` is empty. A process started
//! with `STANDPIPE_KILL_AT=label` or `STANDPIPE_STOP_AT=label` sends itself `SIGKILL` or `SIGSTOP`
//! when it reaches that point; `label:3` means the third time.

/// All labels, in the order in which a process reaches them.
#[cfg(feature = "points")]
pub const ALL: &[&str] = &[
    "session created",
    "session locked",
    "session published",
    "pool written",
    "pool linked",
    "lock taken",
    "entry written",
    "head written",
    "lock released",
    "snapshot written",
    "snapshot published",
    "damage quarantined",
    "reboot detected",
];

/// Marks that the process reached a point.
#[cfg(not(feature = "points"))]
pub(crate) const fn reach(_label: &'static str) {}

/// Marks that the process reached a point.
#[cfg(feature = "points")]
pub(crate) fn reach(label: &'static str) {
    armed::reach(label);
}

#[cfg(feature = "points")]
mod armed {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    use rustix::process::{Signal, getpid, kill_process};

    struct Armed {
        label: String,
        /// How many times the point is still to be reached, this time included.
        remaining: AtomicU64,
        signal: Signal,
    }

    pub(super) fn reach(label: &'static str) {
        static ARMED: OnceLock<Option<Armed>> = OnceLock::new();
        let Some(armed) = ARMED.get_or_init(from_environment) else { return };
        if armed.label == label && armed.remaining.fetch_sub(1, Ordering::Relaxed) == 1 {
            let _ = kill_process(getpid(), armed.signal);
            // The kernel may deliver the signal to another thread first. This one must not pass
            // the point meanwhile.
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
    }

    fn from_environment() -> Option<Armed> {
        let parse = |name: &str, signal| {
            let value = std::env::var(name).ok()?;
            let (label, times) = value.split_once(':').unwrap_or((&value, "1"));
            let remaining = AtomicU64::new(times.parse().unwrap_or(1));
            Some(Armed { label: label.to_owned(), remaining, signal })
        };
        parse("STANDPIPE_KILL_AT", Signal::KILL)
            .or_else(|| parse("STANDPIPE_STOP_AT", Signal::STOP))
    }
}
