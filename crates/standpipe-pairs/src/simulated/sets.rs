//! Calls on a pool within another one, as the library makes them: the inner pool first, then its
//! parent; when the last one has granted, the other one's charge is dated to that instant, or that
//! pool is asked again. A set takes several steps, so that its process can die after any of them.

use standpipe_core::{Action, Answer, Key, LeaseAnswer, Span};

use super::calls::{Ask, Reply};
use super::{Bug, PATIENT, World, words};
use crate::setup::{CHILD, PARENT};

/// A call on its way to its two leases, or with both.
pub(super) struct SetCall {
    call: usize,
    /// The lease on the pool, and when it was granted or dated.
    child: Option<(Key, u64)>,
    /// The same on the parent.
    parent: Option<(Key, u64)>,
    /// The ticket on the pool that it waits for.
    ticket: Option<Key>,
    granted: bool,
}

/// How many calls on two pools a process has at once.
const SETS: usize = 4;
/// How many steps a call on two pools takes at most if it does not wait.
const STEPS: usize = 6;

impl World {
    /// Begins a call on two pools, or takes one further, or calls on the parent alone.
    pub(super) fn step_sets(&mut self, at: usize) -> Result<(), String> {
        let (Some(child), Some(parent)) = (self.pool_number(CHILD), self.pool_number(PARENT))
        else {
            return Ok(());
        };
        if self.extras.below(3) == 0 {
            self.ask(at, Ask::of(parent))?;
        }
        if self.processes[at].sets.len() < SETS && self.extras.below(2) == 0 {
            let timeout = if self.extras.below(4) == 0 { 0 } else { PATIENT };
            let call = self.record(at, Ask { timeout, ..Ask::of(child) });
            let (child, parent, ticket) = (None, None, None);
            self.processes[at].sets.push(SetCall { call, child, parent, ticket, granted: false });
        }
        for _ in 0..2 {
            let sets = self.processes[at].sets.len() as u64;
            if sets > 0 {
                let which = self.extras.below(sets) as usize;
                self.advance_set(at, which)?;
            }
        }
        Ok(())
    }

    /// Takes every call on two pools to its end, or to where it waits.
    pub(super) fn end_sets(&mut self, at: usize) -> Result<(), String> {
        for _ in 0..STEPS {
            for which in (0..self.processes[at].sets.len()).rev() {
                self.advance_set(at, which)?;
            }
        }
        Ok(())
    }

    fn advance_set(&mut self, at: usize, which: usize) -> Result<(), String> {
        let set = self.processes[at].sets.swap_remove(which);
        let left = if set.granted { self.settle_set(at, set) } else { self.take_set(at, set) };
        self.processes[at].sets.extend(left?);
        Ok(())
    }

    /// Asks for what is missing. Returns the call unless it was refused.
    fn take_set(&mut self, at: usize, mut set: SetCall) -> Result<Option<SetCall>, String> {
        let pool = if set.child.is_none() { CHILD } else { PARENT };
        let number = self.pool_number(pool).ok_or("no such pool")?;
        // A call that holds the parent must not wait for the pool within it.
        let reply = match set.parent {
            Some(_) => self.reserve_for(at, number, None, set.call, Span::ZERO)?,
            None => self.reserve(at, number, set.ticket.take(), set.call)?,
        };
        match reply {
            Reply::Waits(ticket) => set.ticket = Some(ticket),
            Reply::Granted(lease) => {
                let taken = if pool == CHILD { &mut set.child } else { &mut set.parent };
                *taken = Some((lease, self.now));
                self.complete_set(at, &mut set)?;
            }
            Reply::Refused(refused) => {
                for (name, lease) in [(CHILD, set.child.take()), (PARENT, set.parent.take())] {
                    let (Some((lease, _)), Some(number)) = (lease, self.pool_number(name)) else {
                        continue;
                    };
                    self.end_lease(at, number, lease, true)?;
                }
                let waited = self.now - self.calls[set.call].asked;
                if pool == PARENT || waited >= self.calls[set.call].timeout * 1_000 {
                    self.answered(set.call, Some(refused));
                    return Ok(None);
                }
            }
        }
        Ok(Some(set))
    }

    /// Dates both charges to now if both pools have granted. A lease that is no more is asked for
    /// again.
    fn complete_set(&mut self, at: usize, set: &mut SetCall) -> Result<(), String> {
        if self.bug == Some(Bug::NoParent) && set.child.is_some() {
            set.granted = true;
            self.answered(set.call, None);
            return Ok(());
        }
        if set.child.is_none() || set.parent.is_none() {
            return Ok(());
        }
        let mut whole = true;
        for (name, taken) in [(CHILD, &mut set.child), (PARENT, &mut set.parent)] {
            let (Some((lease, since)), Some(number)) = (*taken, self.pool_number(name)) else {
                continue;
            };
            if since == self.now || self.bug == Some(Bug::Undated) {
                continue;
            }
            let redate = vec![Action::Redate { lease }];
            let outcomes = self.processes[at].members[number].submit(redate).map_err(words)?;
            let answer = outcomes.first().map(|outcome| &outcome.answer);
            let lives = matches!(answer, Some(Answer::Lease(LeaseAnswer::Lives(_))));
            *taken = lives.then_some((lease, self.now));
            whole &= lives;
        }
        if whole {
            set.granted = true;
            self.answered(set.call, None);
        }
        Ok(())
    }

    /// Settles the call on the pool, and in a later step on its parent.
    fn settle_set(&mut self, at: usize, mut set: SetCall) -> Result<Option<SetCall>, String> {
        let logged = &mut self.calls[set.call];
        (logged.held_until, logged.settled) = (logged.held_until.min(self.now), true);
        let (name, lease) = match set.child.take() {
            Some((lease, _)) => (CHILD, Some(lease)),
            None => (PARENT, set.parent.take().map(|(lease, _)| lease)),
        };
        let skips = name == PARENT && self.bug == Some(Bug::ParentUnsettled);
        if let (Some(lease), Some(number)) = (lease.filter(|_| !skips), self.pool_number(name)) {
            self.end_lease(at, number, lease, false)?;
        }
        Ok((name == CHILD).then_some(set))
    }
}
