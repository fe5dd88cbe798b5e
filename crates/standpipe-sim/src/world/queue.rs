//! What is still to happen, in order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Events by their instant and, within one, by when they were put there.
#[derive(Debug)]
pub(super) struct Queue<T> {
    heap: BinaryHeap<Reverse<(u64, u64, T)>>,
    put: u64,
}

impl<T: Ord> Default for Queue<T> {
    fn default() -> Self {
        Self { heap: BinaryHeap::new(), put: 0 }
    }
}

impl<T: Ord> Queue<T> {
    pub(super) fn push(&mut self, at: u64, what: T) {
        self.put += 1;
        self.heap.push(Reverse((at, self.put, what)));
    }

    /// The next event, if it comes before an instant.
    pub(super) fn pop_by(&mut self, until: u64) -> Option<(u64, T)> {
        if self.heap.peek().is_none_or(|Reverse((at, ..))| *at >= until) {
            return None;
        }
        self.heap.pop().map(|Reverse((at, _, what))| (at, what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_instant_and_then_by_when_they_were_put() {
        let mut queue = Queue::default();
        for (at, what) in [(5, 'z'), (3, 'b'), (5, 'a'), (3, 'c')] {
            queue.push(at, what);
        }
        let popped: Vec<_> = std::iter::from_fn(|| queue.pop_by(5)).collect();
        assert_eq!(popped, [(3, 'b'), (3, 'c')]);
        assert_eq!(queue.pop_by(6), Some((5, 'z')));
    }
}
