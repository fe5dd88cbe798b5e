//! Wake-ups between sessions. They are hints: a waiter that misses one polls.

use std::time::Duration;

use super::{Sessions, lock};
use crate::sys;

impl Sessions {
    /// Wakes sessions whose processes listen.
    pub(crate) fn wake_sessions(&self, sessions: &[u64]) {
        for session in sessions {
            sys::fifo::notify_path(&self.wake_pipe_path(*session));
        }
    }

    /// Waits at most `timeout` until a session of this process is woken.
    pub(crate) fn wait_for_wake(&self, timeout: Duration) {
        let pipes = lock(&self.wake_pipes).clone();
        if pipes.is_empty() {
            std::thread::sleep(timeout.min(POLL_WITHOUT_PIPE));
            return;
        }
        sys::fifo::wait(&pipes, timeout);
    }

    /// Wakes a thread of this process that is in [`Sessions::wait_for_wake`].
    pub(crate) fn interrupt(&self) {
        if let Some(pipe) = lock(&self.wake_pipes).first() {
            sys::fifo::notify(pipe);
        }
    }
}

/// How long a process without a wake pipe sleeps at most.
const POLL_WITHOUT_PIPE: Duration = Duration::from_millis(50);
