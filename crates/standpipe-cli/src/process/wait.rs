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

/// Waits for the future, and calls `notice` every so often with how long the wait has lasted.
pub(crate) fn wait_for<T>(
    future: impl Future<Output = T>,
    signals: &Signals,
    every: Duration,
    mut notice: impl FnMut(Duration),
) -> WaitOutcome<T> {
    let mut future = pin!(future);
    let waker = Waker::from(signals.waker());
    let began = Instant::now();
    let mut next = every;
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return WaitOutcome::Ready(value);
        }
        if let Some(signal) = signals.take_terminating() {
            return WaitOutcome::Interrupted(signal);
        }
        if began.elapsed() >= next {
            notice(began.elapsed());
            // A notice takes time, and a suspended process has missed some.
            next = began.elapsed() + every;
        }
        signals.wait(Some(next.saturating_sub(began.elapsed())));
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    fn notices(every: Duration) -> Vec<Duration> {
        let signals = Signals::listen().unwrap();
        let mut given = Vec::new();
        let mut polls = 0;
        let future = poll_fn(|context| {
            polls += 1;
            context.waker().wake_by_ref();
            if polls == 50 { Poll::Ready(7) } else { Poll::Pending }
        });
        let outcome = wait_for(future, &signals, every, |after| given.push(after));
        assert!(matches!(outcome, WaitOutcome::Ready(7)));
        signals.restore_default_action();
        given
    }

    #[test]
    fn notices_are_given_again_and_again_and_not_before_their_time() {
        let given = notices(Duration::ZERO);
        assert_eq!(given.len(), 49, "one after each poll but the last");
        assert!(given.is_sorted());
        assert_eq!(notices(Duration::from_secs(3_600)), []);
    }
}
