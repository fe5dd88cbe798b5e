//! Who listens at the store, where what others do is heard: one thread at a time.
//!
//! A thread that blocks listens by itself, so that it runs as soon as the store is rung, without
//! another thread between. The keeper listens for those who await, and while nobody blocks; what
//! time brings it does in any case.
//!
//! Invariant: while somebody waits here, somebody listens or was told to come; and what a thread
//! heard that may concern others has been looked at before it goes on its way.

use std::collections::BTreeMap;
use std::sync::{Arc, MutexGuard};
use std::time::Instant as Local;

use super::{Keeper, State, look};
use crate::bell::Bell;
use crate::desk::{Caller, Desk};
use crate::registry::Guard;

/// Stands for the keeper among those who listen.
pub(super) const KEEPER: Caller = 0;

/// Who listens at the store, and who could.
#[derive(Debug, Default)]
pub(super) struct Post {
    listens: Option<Caller>,
    /// The threads that block, in the order in which they came.
    blocked: BTreeMap<Caller, Arc<Bell>>,
}

impl Post {
    /// Whether nobody listens.
    pub(super) const fn is_free(&self) -> bool {
        self.listens.is_none()
    }

    /// Whether some thread blocks.
    pub(super) fn is_wanted(&self) -> bool {
        !self.blocked.is_empty()
    }

    /// Whether the store is this one's to listen at, now.
    pub(super) fn take(&mut self, caller: Caller) -> bool {
        *self.listens.get_or_insert(caller) == caller
    }

    pub(super) fn leave(&mut self, caller: Caller) {
        self.listens.take_if(|listens| *listens == caller);
    }
}

impl Keeper {
    /// A thread is about to sleep. Answers whether it is the one to listen.
    fn sits_down(&self, caller: Caller, bell: &Arc<Bell>) -> bool {
        let mut state = self.lock();
        state.post.blocked.entry(caller).or_insert_with(|| Arc::clone(bell));
        let listens = state.post.take(caller);
        // The keeper gives way, and calls.
        if state.timers.is_empty() && state.post.listens == Some(KEEPER) {
            drop(state);
            self.bell.ring();
        }
        listens
    }

    /// A thread blocks no longer.
    fn gets_up(&self, caller: Caller) {
        let mut state = self.lock();
        state.post.blocked.remove(&caller);
        state.post.leave(caller);
        self.call(state);
    }

    /// Tells somebody to come and listen, if nobody does: the keeper if anybody awaits, or else the
    /// thread that blocks the longest.
    pub(super) fn call(&self, state: MutexGuard<'_, State>) {
        if !state.post.is_free() {
            return;
        }
        let next = match state.timers.is_empty() {
            true => state.post.blocked.values().next().cloned(),
            false => state.sleeps.map(|_| Arc::clone(&self.bell)),
        };
        drop(state);
        if let Some(bell) = next {
            bell.ring();
        }
    }
}

/// The place of a thread that blocks, from its first sleep until it goes on its way.
pub(crate) struct Seat {
    guard: Arc<Guard>,
    desk: Arc<Desk>,
    caller: Caller,
    bell: Arc<Bell>,
    /// It heard something, and only its own ticket has been looked at since.
    unseen: bool,
}

impl Seat {
    pub(crate) const fn new(
        guard: Arc<Guard>,
        desk: Arc<Desk>,
        caller: Caller,
        bell: Arc<Bell>,
    ) -> Self {
        Self { guard, desk, caller, bell, unseen: false }
    }

    /// Sleeps until it is told to look, or the moment has come.
    pub(crate) fn sleep(&mut self, until: Local) {
        let shared = self.guard.shared();
        shared.keeper().stand_in(shared);
        if !shared.keeper().sits_down(self.caller, &self.bell) {
            self.bell.wait_until(until);
            return;
        }
        if self.unseen {
            self.look_for_all();
        }
        self.unseen = self.bell.listen_until(shared.store(), until);
        if !self.unseen {
            return;
        }
        // Alone it goes on at once: nobody else has to hear of it.
        if self.desk.counter().has_others(self.caller) {
            self.unseen = false;
            self.look_for_all();
        }
        let elsewhere =
            |desk: &Arc<Desk>| !Arc::ptr_eq(desk, &self.desk) && desk.may_have_waiters();
        if shared.desks().iter().any(elsewhere) {
            shared.keeper().bell.ring();
        }
    }

    /// Looks at the pool as the keeper would.
    fn look_for_all(&self) {
        let shared = self.guard.shared();
        if let Some(next) = look::attend(shared, &self.desk, true) {
            shared.keeper().plan(next);
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if self.guard.is_ours() {
            self.guard.shared().keeper().gets_up(self.caller);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Waker;
    use std::time::Duration;

    fn bells<const COUNT: usize>() -> [Arc<Bell>; COUNT] {
        std::array::from_fn(|_| Arc::default())
    }

    fn is_rung(bell: &Bell) -> bool {
        bell.was_rung(Waker::noop())
    }

    fn listens(keeper: &Keeper) -> bool {
        keeper.falls_asleep(None).unwrap().listens
    }

    fn soon() -> Local {
        Local::now() + Duration::from_secs(1_800)
    }

    #[test]
    fn who_listens_and_leaves_calls_another() {
        let (keeper, [one, two, three]) = (Keeper::default(), bells());
        assert!(keeper.sits_down(1, &one));
        assert!(!keeper.sits_down(2, &two) && !keeper.sits_down(3, &three));
        assert!(keeper.sits_down(1, &one), "it listens on");
        keeper.gets_up(1);
        assert!(is_rung(&two) && !is_rung(&three) && !is_rung(&keeper.bell));
        assert!(keeper.sits_down(2, &two));
    }

    #[test]
    fn who_is_called_and_leaves_calls_the_next() {
        let (keeper, [one, two, three]) = (Keeper::default(), bells());
        keeper.sits_down(1, &one);
        keeper.sits_down(2, &two);
        keeper.sits_down(3, &three);
        keeper.gets_up(1);
        keeper.gets_up(2);
        assert!(is_rung(&three));
    }

    #[test]
    fn who_only_waits_and_leaves_calls_nobody() {
        let (keeper, [one, two, three]) = (Keeper::default(), bells());
        keeper.sits_down(1, &one);
        keeper.sits_down(2, &two);
        keeper.sits_down(3, &three);
        keeper.gets_up(2);
        assert!(!is_rung(&one) && !is_rung(&three) && !is_rung(&keeper.bell));
    }

    #[test]
    fn the_keeper_is_called_for_those_who_await() {
        let (keeper, [one, two, future]) = (Keeper::default(), bells());
        keeper.sits_down(1, &one);
        keeper.sits_down(2, &two);
        assert!(!listens(&keeper));
        keeper.set_timer(soon(), 3, &future);
        assert!(is_rung(&keeper.bell), "it has a timer");
        keeper.wakes();
        assert!(!listens(&keeper), "a thread does");
        keeper.gets_up(1);
        assert!(is_rung(&keeper.bell) && !is_rung(&two));
        keeper.wakes();
        assert!(listens(&keeper));
    }

    #[test]
    fn the_keeper_is_called_when_somebody_begins_to_await() {
        let (keeper, [one, future]) = (Keeper::default(), bells());
        keeper.sits_down(1, &one);
        let sleep = keeper.falls_asleep(Some(Local::now())).unwrap();
        keeper.gets_up(1);
        assert!(!sleep.listens && !is_rung(&keeper.bell), "nobody waits");
        keeper.set_timer(soon(), 2, &future);
        assert!(is_rung(&keeper.bell));
    }

    #[test]
    fn the_keeper_gives_way_to_a_thread_that_blocks() {
        let (keeper, [one]) = (Keeper::default(), bells());
        assert!(listens(&keeper));
        assert!(!keeper.sits_down(1, &one));
        assert!(is_rung(&keeper.bell));
        keeper.wakes();
        assert!(!listens(&keeper));
        assert!(is_rung(&one));
        assert!(keeper.sits_down(1, &one));
    }

    #[test]
    fn the_keeper_does_not_give_way_while_somebody_awaits() {
        let (keeper, [one, future]) = (Keeper::default(), bells());
        let at = soon();
        keeper.set_timer(at, 1, &future);
        assert!(listens(&keeper));
        assert!(!keeper.sits_down(2, &one));
        assert!(!is_rung(&keeper.bell));
        keeper.clear_timer(at, 1);
        keeper.wakes();
        assert!(!listens(&keeper));
        assert!(is_rung(&one), "then it does");
    }

    #[test]
    fn what_is_planned_while_the_keeper_works_is_not_forgotten() {
        let (keeper, at) = (Keeper::default(), soon() - Duration::from_secs(60));
        keeper.plan(at);
        keeper.plan(soon());
        assert_eq!(keeper.falls_asleep(None).unwrap().until, at);
        assert!(!is_rung(&keeper.bell));
        keeper.plan(at);
        assert!(!is_rung(&keeper.bell));
        keeper.plan(at - Duration::from_secs(1));
        assert!(is_rung(&keeper.bell));
    }
}
