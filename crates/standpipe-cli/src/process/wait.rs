//! Waiting for a future on the one thread there is, while signals can end the wait.

use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use crate::process::signals::Signals;

/// How a wait ended.
pub(crate) enum Ended<T> {
    /// What was waited for came.
    Ready(T),
    /// A signal asked to end first; the future was dropped, which takes everything back.
    Interrupted(i32),
}

/// Waits for the future. After `patience` of waiting `notice` is called, once.
pub(crate) fn wait_for<T>(
    future: impl Future<Output = T>,
    signals: &Signals,
    patience: Duration,
    mut notice: impl FnMut(),
) -> Ended<T> {
    let mut future = pin!(future);
    let waker = Waker::from(signals.bell());
    let notice_at = Instant::now() + patience;
    let mut told = false;
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return Ended::Ready(value);
        }
        if let Some(signal) = signals.take_ending() {
            return Ended::Interrupted(signal);
        }
        let left = notice_at.saturating_duration_since(Instant::now());
        if !told && left.is_zero() {
            told = true;
            notice();
        }
        signals.wait(if told { None } else { Some(left) });
    }
}
