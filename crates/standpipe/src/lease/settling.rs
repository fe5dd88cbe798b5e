//! Settling a lease without blocking: what it used is told while others go on.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant as Local};

use standpipe_core::{Action, Answer, LeaseAnswer, Outcome};

use super::{Held, Lease};
use crate::bell::Bell;
use crate::clerk::{Errand, Progress, Slot};
use crate::desk::{Caller, Counter, Desk};
use crate::error::Error;
use crate::shared::{FIRST_RETRY, LAST_RETRY, PATIENCE};

/// A lease that is being settled: `.await` it. Dropped after it was first polled, it is still
/// settled; before that, it is settled at its estimate.
#[must_use = "nothing is settled with these figures until this is awaited"]
pub struct Settling {
    stage: Stage,
}

enum Stage {
    Begun(Box<(Lease, Action)>),
    Wrong(Error),
    Handed(Arc<Slot<Result<(), Error>>>),
    Over,
}

impl Settling {
    pub(super) fn new(lease: Lease, action: Result<Action, Error>) -> Self {
        let stage = match action {
            Ok(action) => Stage::Begun(Box::new((lease, action))),
            Err(error) => Stage::Wrong(error),
        };
        Self { stage }
    }

    fn begin(mut lease: Lease, action: Action) -> Result<Stage, Error> {
        let shared = lease.ours()?;
        let desk = lease.desk();
        // While the store is unavailable the ledger in memory answers at once.
        if !shared.store().is_remote() || desk.is_substitute() || desk.cut_off().is_some() {
            lease.end(action)?;
            return Ok(Stage::Over);
        }
        if std::mem::replace(&mut lease.held, Held::No) == Held::No {
            return Err(Error::LeaseGone { lease: lease.id.clone() });
        }
        lease.note_ended(&action);
        let (caller, bell) = (shared.caller(), Arc::<Bell>::default());
        let slot = Slot::new(Arc::clone(&bell));
        let errand = SettleErrand {
            lease,
            action: Some(action),
            caller,
            bell,
            slot: Arc::clone(&slot),
            outcome: None,
            deadline: Local::now() + PATIENCE,
            pause: FIRST_RETRY,
            timer: None,
        };
        match shared.clerk().take(&shared, Box::new(errand)) {
            Ok(()) => Ok(Stage::Handed(slot)),
            // No thread can be started: it is done here, then.
            Err(mut errand) => {
                let desk = errand.desk();
                errand.ask();
                while errand.hear(&mut desk.counter()) != Progress::Over {
                    std::thread::sleep(FIRST_RETRY);
                }
                errand.announce();
                Ok(Stage::Handed(slot))
            }
        }
    }
}

impl Future for Settling {
    type Output = Result<(), Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        match std::mem::replace(&mut this.stage, Stage::Over) {
            Stage::Begun(begun) => match Self::begin(begun.0, begun.1) {
                Ok(stage) => this.stage = stage,
                Err(error) => return Poll::Ready(Err(error)),
            },
            Stage::Wrong(error) => return Poll::Ready(Err(error)),
            other => this.stage = other,
        }
        let Stage::Handed(slot) = &this.stage else { return Poll::Ready(Ok(())) };
        let polled = slot.poll(context);
        if polled.is_ready() {
            this.stage = Stage::Over;
        }
        polled
    }
}

/// Polling from anywhere is safe: nothing inside points to itself.
impl Unpin for Settling {}

impl fmt::Debug for Settling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settling").finish_non_exhaustive()
    }
}

/// A lease that the clerk settles.
struct SettleErrand {
    lease: Lease,
    /// What is to be said, until it lies on the desk.
    action: Option<Action>,
    caller: Caller,
    bell: Arc<Bell>,
    slot: Arc<Slot<Result<(), Error>>>,
    outcome: Option<Result<(), Error>>,
    deadline: Local,
    pause: Duration,
    timer: Option<Local>,
}

impl SettleErrand {
    fn over(&mut self, outcome: Result<(), Error>) -> Progress {
        if let Some(at) = self.timer.take() {
            self.lease.guard.shared().keeper().clear_timer(at, self.caller);
        }
        self.lease.let_go();
        self.outcome = Some(outcome);
        Progress::Over
    }

    fn heard(&self, outcomes: Vec<Outcome>) -> Result<(), Error> {
        match outcomes.into_iter().next().map(|outcome| outcome.answer) {
            Some(Answer::Lease(LeaseAnswer::Gone)) | None => {
                Err(Error::LeaseGone { lease: self.lease.id.clone() })
            }
            Some(_) => Ok(()),
        }
    }
}

impl Errand for SettleErrand {
    fn announce(self: Box<Self>) {
        let Self { lease, slot, outcome, .. } = *self;
        drop(lease);
        if let Some(outcome) = outcome {
            slot.put(outcome);
        }
        slot.wake();
    }

    fn desk(&self) -> Arc<Desk> {
        self.lease.desk()
    }

    fn bell(&self) -> Arc<Bell> {
        Arc::clone(&self.bell)
    }

    fn is_wanted(&self) -> bool {
        true
    }

    fn ask(&mut self) -> Option<Progress> {
        if let Some(action) = self.action.take() {
            self.lease.desk().ask(self.caller, vec![action]);
        }
        None
    }

    fn hear(&mut self, counter: &mut Counter) -> Progress {
        match counter.answer(self.caller) {
            Ok(outcomes) => {
                let outcome = self.heard(outcomes);
                self.over(outcome)
            }
            Err(error) if error.is_transient() && Local::now() + self.pause < self.deadline => {
                let at = Local::now() + self.pause;
                self.pause = (self.pause * 2).min(LAST_RETRY);
                let shared = self.lease.guard.shared();
                if !shared.keeper().start(shared) {
                    return Progress::Again;
                }
                if let Some(before) = self.timer.replace(at) {
                    shared.keeper().clear_timer(before, self.caller);
                }
                shared.keeper().set_timer(at, self.caller, &self.bell);
                Progress::Sleeps
            }
            Err(error) => {
                counter.say_later(self.caller);
                self.over(Err(error.into()))
            }
        }
    }
}
