//! Handles a call that was answered without a refusal.

use crate::event::Key;
use crate::rules::gate::shut;
use crate::state::State;
use crate::time::Instant;

impl State {
    /// Handles the first sign that a call works: a commit, or one of its progress.
    pub(crate) fn answered(&mut self, key: Key, started: Instant, now: Instant) {
        let was_shut = shut(&self.facts).is_some();
        let waited_for = self.leave_gate(key, true);
        if !self.has_nothing_to_undo() {
            self.on_success(key, started, waited_for, now);
        }
        if was_shut && shut(&self.facts).is_none() {
            self.respread(now);
        }
    }

    /// Resets what refusals have raised.
    fn on_success(&mut self, key: Key, started: Instant, waited_for: bool, now: Instant) {
        self.terminal_disproved(Some(key), now);
        // A call from before the last pause says nothing about the provider now.
        let after_the_pause = self.facts.pause.is_none()
            && self.facts.throttling.pause_began.is_none_or(|began| started > began);
        if after_the_pause {
            (self.facts.throttling.streak, self.facts.throttling.overloads) = (0, 0);
        }
        if waited_for {
            self.single_file_worked(started);
            self.double_slow_start();
        }
        if after_the_pause {
            self.raise_concurrency(now);
        }
    }

    /// Whether no refusal is remembered, which is the usual case.
    fn has_nothing_to_undo(&self) -> bool {
        self.facts.throttling.streak == 0
            && self.facts.throttling.overloads == 0
            && self.facts.cascade.sequential.is_none()
            && self.facts.learned.concurrency.is_none()
            && self.facts.terminal.is_none()
            && !crate::rules::gate::is_cautious(&self.facts)
    }
}
