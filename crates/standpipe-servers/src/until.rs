//! Waiting for something that another process does: asked often, and not for ever.

use std::time::{Duration, Instant};

/// How long a server may take for anything a test waits for. Far above what it needs, so that only
/// one that never comes fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// Asks until there is an answer; none when the time is up.
pub(crate) fn until<T>(bound: Duration, mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let began = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return Some(answer);
        }
        if began.elapsed() > bound {
            return None;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
