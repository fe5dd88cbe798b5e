//! A call was answered, and not with a refusal: what that says about the provider.

use crate::event::Key;
use crate::gate::shut;
use crate::state::State;
use crate::time::Instant;

impl State {
    /// The first sign that a call works: a commit, or one of its progress.
    pub(crate) fn answered(&mut self, key: Key, started: Instant, now: Instant) {
        let was_shut = shut(&self.facts).is_some();
        let waited_for = self.leaves_gate(key, true);
        if !self.is_calm() {
            self.take_heart(key, started, waited_for, now);
        }
        if was_shut && shut(&self.facts).is_none() {
            self.scatter(now);
        }
    }

    /// What a success undoes.
    fn take_heart(&mut self, key: Key, started: Instant, waited_for: bool, now: Instant) {
        self.heard_otherwise(Some(key));
        let trouble = &mut self.facts.trouble;
        // A call from before the last pause says nothing about how things are now.
        let after_the_pause =
            self.facts.pause.is_none() && trouble.began.is_none_or(|began| started > began);
        if after_the_pause {
            (trouble.streak, trouble.overloads) = (0, 0);
        }
        if waited_for {
            self.single_file_worked(started);
            self.take_courage();
        }
        if after_the_pause {
            self.speed_up(now);
            self.bear_more(now);
        }
    }

    /// Nothing is to be undone by a success: so it is nearly always.
    fn is_calm(&self) -> bool {
        let trouble = &self.facts.trouble;
        trouble.streak == 0
            && trouble.overloads == 0
            && trouble.sequential.is_none()
            && trouble.ramp.is_none()
            && trouble.bears.is_none()
            && self.facts.terminal.is_none()
            && !crate::gate::is_cautious(&self.facts)
    }
}
