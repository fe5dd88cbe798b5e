//! Polling a future on the main thread, while signals can end the wait.

use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use crate::process::signals::Signals;

/// The result of a wait.
pub(crate) enum WaitOutcome<T> {
    /// The future is ready.
    Ready(T),
    /// A terminating signal arrived first. The future was dropped, which cancels its ticket.
    Interrupted(i32),
}

/// Waits for the future. Calls `notice` once, when the wait has lasted `notice_after`.
pub(crate) fn wait_for<T>(
    future: impl Future<Output = T>,
    signals: &Signals,
    notice_after: Duration,
    mut notice: impl FnMut(),
) -> WaitOutcome<T> {
    let mut future = pin!(future);
    let waker = Waker::from(signals.waker());
    let notice_at = Instant::now() + notice_after;
    let mut noticed = false;
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return WaitOutcome::Ready(value);
        }
        if let Some(signal) = signals.take_terminating() {
            return WaitOutcome::Interrupted(signal);
        }
        let left = notice_at.saturating_duration_since(Instant::now());
        if !noticed && left.is_zero() {
            noticed = true;
            notice();
        }
        signals.wait(if noticed { None } else { Some(left) });
    }
}
