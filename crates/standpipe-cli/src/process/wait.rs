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

/// Waits for the future. When the wait has lasted one of the times of `notice_after`, which are in
/// order, calls `notice` with it.
pub(crate) fn wait_for<T>(
    future: impl Future<Output = T>,
    signals: &Signals,
    notice_after: &[Duration],
    mut notice: impl FnMut(Duration),
) -> WaitOutcome<T> {
    let mut future = pin!(future);
    let waker = Waker::from(signals.waker());
    let began = Instant::now();
    let mut notices = notice_after.iter().copied().peekable();
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return WaitOutcome::Ready(value);
        }
        if let Some(signal) = signals.take_terminating() {
            return WaitOutcome::Interrupted(signal);
        }
        while let Some(after) = notices.next_if(|after| *after <= began.elapsed()) {
            notice(after);
        }
        signals.wait(notices.peek().map(|after| after.saturating_sub(began.elapsed())));
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    #[test]
    fn each_notice_is_given_once_and_in_order() {
        let signals = Signals::listen().unwrap();
        let (short, long) = (Duration::ZERO, Duration::from_micros(1));
        let mut given = Vec::new();
        let mut polls = 0;
        let future = poll_fn(|context| {
            polls += 1;
            context.waker().wake_by_ref();
            if polls == 50 { Poll::Ready(7) } else { Poll::Pending }
        });
        let never = Duration::from_secs(3_600);
        let outcome = wait_for(future, &signals, &[short, long, never], |after| given.push(after));
        assert!(matches!(outcome, WaitOutcome::Ready(7)));
        signals.restore_default_action();
        assert_eq!(given, [short, long]);
    }
}
