//! The clerk: the thread of a process that goes to a store across a network for those who await.
//!
//! A task must not block its executor, and a call across a network may take long. So whoever awaits
//! hands an errand in. The clerk takes all that lie there, puts their questions on their desks, and
//! goes once for each desk: a thousand tasks cost the store one call. It is started when it is
//! first needed, and decides nothing.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use crate::bell::Bell;
use crate::desk::{Counter, Desk};
use crate::shared::Shared;

/// Something to be asked at a desk, in as many steps as it takes.
pub(crate) trait Errand: Send {
    /// Where it is asked.
    fn desk(&self) -> Arc<Desk>;

    /// What it is rung by when it should be seen to again.
    fn bell(&self) -> Arc<Bell>;

    /// Whether somebody still wants it done. One that nobody wants is dropped.
    fn is_wanted(&self) -> bool;

    /// Puts its question on the desk. Some progress if it has none.
    fn ask(&mut self) -> Option<Progress>;

    /// Learns what came of its question.
    fn hear(&mut self, counter: &mut Counter) -> Progress;

    /// Hands its outcome over and wakes the task that awaits it: somebody else's code, which must
    /// not run while the desk is taken. The process may end as soon as it has the outcome, so
    /// nothing of this may keep the store open by then: the last handle ends the session and
    /// writes the journal.
    fn announce(self: Box<Self>);
}

/// How far an errand is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// It is done, and its outcome is known.
    Over,
    /// There is nothing to do before its bell rings.
    Sleeps,
    /// It has more to ask, at once.
    Again,
}

/// The thread that goes to the store.
#[derive(Default)]
pub(crate) struct Clerk {
    state: Mutex<State>,
    changed: Condvar,
}

type Number = u64;

/// Errands with their numbers.
type Numbered = Vec<(Number, Box<dyn Errand>)>;

#[derive(Default)]
struct State {
    started: bool,
    stopped: bool,
    last: Number,
    errands: BTreeMap<Number, Box<dyn Errand>>,
    /// Those that are to be seen to.
    ready: Vec<Number>,
    /// Desks where a word was left that nobody waits for.
    words: Vec<Arc<Desk>>,
}

impl Clerk {
    /// Takes an errand. Gives it back if there is no thread to do it.
    pub(crate) fn take(
        &self,
        shared: &Arc<Shared>,
        errand: Box<dyn Errand>,
    ) -> Result<(), Box<dyn Errand>> {
        if !self.start(shared) {
            return Err(errand);
        }
        let mut state = self.lock();
        state.last += 1;
        let number = state.last;
        state.errands.insert(number, errand);
        state.ready.push(number);
        drop(state);
        self.changed.notify_one();
        Ok(())
    }

    /// Sends what was left at a desk. Answers whether there is a thread to do it.
    pub(crate) fn send(&self, shared: &Arc<Shared>, desk: &Arc<Desk>) -> bool {
        if !self.start(shared) {
            return false;
        }
        let mut state = self.lock();
        if !state.words.iter().any(|known| Arc::ptr_eq(known, desk)) {
            state.words.push(Arc::clone(desk));
        }
        drop(state);
        self.changed.notify_one();
        true
    }

    /// Ends the thread, as soon as it notices.
    pub(crate) fn stop(&self) {
        self.lock().stopped = true;
        self.changed.notify_one();
    }

    fn start(&self, shared: &Arc<Shared>) -> bool {
        let mut state = self.lock();
        if !state.started && !state.stopped {
            let shared = Arc::clone(shared);
            let thread = std::thread::Builder::new().name("standpipe-clerk".to_owned());
            state.started = thread.spawn(move || run(&shared)).is_ok();
        }
        state.started && !state.stopped
    }

    /// What is to be done next; none when the thread shall end.
    fn next(&self) -> Option<(Numbered, Vec<Arc<Desk>>)> {
        let mut state = self.lock();
        while state.ready.is_empty() && state.words.is_empty() && !state.stopped {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.stopped {
            return None;
        }
        let ready = std::mem::take(&mut state.ready);
        let errands = ready.into_iter().filter_map(|number| {
            let errand = state.errands.remove(&number)?;
            Some((number, errand))
        });
        let errands = errands.collect();
        Some((errands, std::mem::take(&mut state.words)))
    }

    fn put_back(&self, number: Number, errand: Box<dyn Errand>, again: bool) {
        let mut state = self.lock();
        state.errands.insert(number, errand);
        if again {
            state.ready.push(number);
        }
    }

    fn nudge(&self, number: Number) {
        self.lock().ready.push(number);
        self.changed.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn run(shared: &Arc<Shared>) {
    let clerk = shared.clerk();
    while let Some((errands, words)) = clerk.next() {
        let mut desks: Vec<(Arc<Desk>, Numbered)> = Vec::new();
        for desk in words {
            desks.push((desk, Vec::new()));
        }
        for (number, mut errand) in errands {
            if !errand.is_wanted() {
                continue;
            }
            // Before it looks, so that no ring falls between.
            let waker = Waker::from(Arc::new(Nudge { shared: Arc::clone(shared), number }));
            while errand.bell().was_rung(&waker) {}
            match errand.ask() {
                Some(progress) => settle(clerk, number, errand, progress),
                None => {
                    let desk = errand.desk();
                    match desks.iter_mut().find(|(known, _)| Arc::ptr_eq(known, &desk)) {
                        Some((_, errands)) => errands.push((number, errand)),
                        None => desks.push((desk, vec![(number, errand)])),
                    }
                }
            }
        }
        for (desk, errands) in desks {
            go(shared, &desk, errands);
        }
    }
}

/// Goes to the store for one desk.
fn go(shared: &Arc<Shared>, desk: &Arc<Desk>, errands: Numbered) {
    let mut counter = desk.counter();
    let heard: Vec<_> = errands
        .into_iter()
        .map(|(number, mut errand)| {
            let progress = errand.hear(&mut counter);
            (number, errand, progress)
        })
        .collect();
    let owing = counter.flush().is_err();
    drop(counter);
    for (number, errand, progress) in heard {
        settle(shared.clerk(), number, errand, progress);
    }
    if owing {
        shared.owes();
    }
}

fn settle(clerk: &Clerk, number: Number, errand: Box<dyn Errand>, progress: Progress) {
    match progress {
        Progress::Over => errand.announce(),
        Progress::Sleeps => clerk.put_back(number, errand, false),
        Progress::Again => clerk.put_back(number, errand, true),
    }
}

/// Tells the clerk that an errand is to be seen to.
struct Nudge {
    shared: Arc<Shared>,
    number: Number,
}

impl Wake for Nudge {
    fn wake(self: Arc<Self>) {
        self.shared.clerk().nudge(self.number);
    }
}

/// Where the outcome of an errand is laid down for whoever awaits it.
pub(crate) struct Slot<T> {
    state: Mutex<Laid<T>>,
    /// The errand's bell.
    bell: Arc<Bell>,
}

struct Laid<T> {
    outcome: Option<T>,
    waker: Option<Waker>,
    /// Nobody awaits it any more.
    left: bool,
}

impl<T> Slot<T> {
    pub(crate) fn new(bell: Arc<Bell>) -> Arc<Self> {
        let laid = Laid { outcome: None, waker: None, left: false };
        Arc::new(Self { state: Mutex::new(laid), bell })
    }

    /// Lays the outcome down. Gives it back if nobody awaits it.
    pub(crate) fn put(&self, outcome: T) -> Option<T> {
        let mut state = self.lock();
        if state.left {
            return Some(outcome);
        }
        state.outcome = Some(outcome);
        None
    }

    /// Tells whoever awaits it.
    pub(crate) fn wake(&self) {
        let waker = self.lock().waker.take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    pub(crate) fn poll(&self, context: &Context<'_>) -> Poll<T> {
        let mut state = self.lock();
        match state.outcome.take() {
            Some(outcome) => Poll::Ready(outcome),
            None => {
                state.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Nobody awaits it any more. Answers what lies there.
    pub(crate) fn leave(&self) -> Option<T> {
        let mut state = self.lock();
        state.left = true;
        let outcome = state.outcome.take();
        drop(state);
        self.bell.ring();
        outcome
    }

    pub(crate) fn is_wanted(&self) -> bool {
        !self.lock().left
    }

    fn lock(&self) -> MutexGuard<'_, Laid<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Clerk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clerk").field("errands", &self.lock().errands.len()).finish_non_exhaustive()
    }
}
