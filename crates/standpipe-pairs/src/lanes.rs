//! Many pairs side by side.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::drive::{self, Pair, Verdict};

/// Runs pairs in so many lanes, and reports each when it is done.
pub fn run(
    pairs: &[Pair],
    lanes: usize,
    program: &Path,
    done: &(dyn Fn(usize, &Pair, &Verdict) + Sync),
) -> Vec<(Pair, Verdict)> {
    let next = AtomicUsize::new(0);
    let verdicts = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..lanes.max(1) {
            scope.spawn(|| {
                while let Some(pair) = pairs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    // A server that does not start is a panic; the other pairs go on.
                    let run = || drive::run(pair, program);
                    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
                    let verdict = caught.unwrap_or_else(|_| Verdict {
                        trouble: Some("the harness panicked".to_owned()),
                        ..Verdict::default()
                    });
                    if let Ok(mut verdicts) = verdicts.lock() {
                        done(verdicts.len() + 1, pair, &verdict);
                        verdicts.push((pair.clone(), verdict));
                    }
                }
            });
        }
    });
    verdicts.into_inner().unwrap_or_default()
}
