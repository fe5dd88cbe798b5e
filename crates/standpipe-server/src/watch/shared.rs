//! A reading that simultaneous callers share.
//!
//! A caller gets the result of a reading that began after it asked, so it always sees its own
//! writes; however many ask at once, at most one reading runs and one more follows it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Mutex;
use tokio::task::JoinError;

/// A reading that simultaneous callers share.
#[derive(Debug)]
pub(crate) struct SharedReading<T> {
    /// The number of readings that have begun.
    begun: Arc<AtomicU64>,
    /// The latest result and the number of its reading. Locked while a reading runs.
    latest: Arc<Mutex<Option<(u64, T)>>>,
}

impl<T> Default for SharedReading<T> {
    fn default() -> Self {
        Self { begun: Arc::default(), latest: Arc::default() }
    }
}

impl<T: Clone + Send + 'static> SharedReading<T> {
    /// Waits for a reading that begins from now on, and begins it if no other caller does. A caller
    /// that stops waiting does not interrupt the reading.
    pub(crate) async fn join<R>(&self, read: impl FnOnce() -> R) -> Result<T, JoinError>
    where
        R: Future<Output = T> + Send + 'static,
    {
        let before = self.begun.load(Ordering::Acquire);
        let mut latest = Arc::clone(&self.latest).lock_owned().await;
        if let Some((number, result)) = &*latest
            && *number > before
        {
            return Ok(result.clone());
        }
        let number = self.begun.fetch_add(1, Ordering::AcqRel) + 1;
        let reading = read();
        let task = tokio::spawn(async move {
            let result = reading.await;
            *latest = Some((number, result.clone()));
            result
        });
        task.await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::future::join_all;
    use tokio::sync::Semaphore;

    #[tokio::test]
    async fn simultaneous_callers_share_two_readings_at_most() {
        let reading = SharedReading::<u64>::default();
        let count = Arc::new(AtomicU64::new(0));
        let gate = Arc::new(Semaphore::new(0));
        let ask = || {
            let (count, gate) = (Arc::clone(&count), Arc::clone(&gate));
            reading.join(move || async move {
                let _open = gate.acquire().await;
                count.fetch_add(1, Ordering::Relaxed) + 1
            })
        };
        let callers = join_all((0..50).map(|_| ask()));
        let open = async {
            // Every caller is polled once before the gate opens.
            tokio::task::yield_now().await;
            gate.add_permits(1);
        };
        let (results, ()) = tokio::join!(callers, open);
        assert!(results.iter().all(|result| *result.as_ref().unwrap() <= 2), "{results:?}");
        assert!(count.load(Ordering::Relaxed) <= 2);
        let before = count.load(Ordering::Relaxed);
        assert_eq!(ask().await.unwrap(), before + 1, "a later caller gets a later reading");
    }
}
