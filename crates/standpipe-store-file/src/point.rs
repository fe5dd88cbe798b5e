//! Labelled points of the store's steps, at which a test can have the process killed or stopped.
//!
//! Built only with the feature `points`; otherwise `reach` is nothing at all. A process started
//! with `STANDPIPE_KILL_AT=label` or `STANDPIPE_STOP_AT=label` does it to itself on arriving there;
//! `label:3` means the third time.

/// Every point there is, in the order of a process's life.
#[cfg(feature = "points")]
pub const ALL: &[&str] = &[
    "session made",
    "session locked",
    "session named",
    "pool written",
    "pool linked",
    "lock taken",
    "entry written",
    "head written",
    "lock given back",
    "snapshot written",
    "snapshot named",
    "damage set aside",
    "restart noticed",
];

/// The process has come to this point.
#[cfg(not(feature = "points"))]
pub(crate) const fn reach(_label: &'static str) {}

/// The process has come to this point.
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
        after: AtomicU64,
        signal: Signal,
    }

    pub(super) fn reach(label: &'static str) {
        static ARMED: OnceLock<Option<Armed>> = OnceLock::new();
        let Some(armed) = ARMED.get_or_init(read) else { return };
        if armed.label == label && armed.after.fetch_sub(1, Ordering::Relaxed) == 1 {
            let _ = kill_process(getpid(), armed.signal);
            // Another thread may be the first to hear of it; this one must not go on meanwhile.
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
    }

    fn read() -> Option<Armed> {
        let of = |name: &str, signal| {
            let value = std::env::var(name).ok()?;
            let (label, times) = value.split_once(':').unwrap_or((&value, "1"));
            let after = AtomicU64::new(times.parse().unwrap_or(1));
            Some(Armed { label: label.to_owned(), after, signal })
        };
        of("STANDPIPE_KILL_AT", Signal::KILL).or_else(|| of("STANDPIPE_STOP_AT", Signal::STOP))
    }
}
