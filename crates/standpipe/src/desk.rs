//! The desk of one pool in this process: the one member that speaks to the store, and who waits
//! here.
//!
//! Callers put what they want into the inbox and take turns at the counter. Whoever's turn it is
//! sends everything that lies there in one step, also what an earlier attempt left unanswered; the
//! answers lie ready for the others. So a crowd of callers costs the store one call, no answer is
//! given to the wrong caller, and nobody loses a place in the queue because of a hiccup.

mod contact;
mod fallback;
mod inbox;
mod turn;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant as Local;

use standpipe_core::{Action, Answer, Configured, Decision, Found, Key, Outcome};
use standpipe_store::{Log, Participant, PoolName, StoreError};

pub(crate) use self::contact::{Contact, Uptime};
use self::inbox::{Asked, Inbox};
pub(crate) use self::turn::Turn;
use crate::bell::Bell;
use crate::journal::{What, Writer};
use crate::moment::Now;
use crate::notices;
use crate::offline::{OfflineFallback, Sharing};

/// Who at a desk an answer is for.
pub(crate) type Caller = u64;

/// The desk of one pool in this process.
pub(crate) struct Desk {
    pool: PoolName,
    /// Leases that live with this process's session.
    held: AtomicUsize,
    /// What came of the files that taps of this process told the pool.
    told: Mutex<BTreeMap<u64, Configured>>,
    inbox: Arc<Inbox>,
    /// Where calls are decided on while the store is away.
    cut_off: Mutex<Option<Arc<OfflineFallback>>>,
    /// What configurations of the pool say about an unavailable store.
    opens: AtomicBool,
    shares: AtomicBool,
    /// Of such a place: the desk it stands in for, and that one once the store is back.
    stands_in_for: Option<Arc<Self>>,
    moved: AtomicBool,
    counter: Mutex<Counter>,
}

/// What callers at a desk take turns at.
pub(crate) struct Counter {
    pool: PoolName,
    journal: Arc<Writer>,
    pub(crate) member: Participant<Box<dyn Log + Send>>,
    /// By ticket, and then by caller: two may wait with the same id.
    waiters: BTreeMap<(Key, Caller), Arc<Bell>>,
    inbox: Arc<Inbox>,
    /// Answers that their callers have not fetched yet.
    answered: BTreeMap<Caller, Result<Vec<Outcome>, StoreError>>,
    /// Who is told to look when this turn ends.
    rings: Vec<Arc<Bell>>,
    /// What is still to be said, when the desk was too busy to say it.
    later: Vec<Action>,
    /// When the store last took a write.
    pub(crate) contact: Contact,
    /// What a share of the limits will be computed from, if the pool falls back to one.
    pub(crate) sharing: Option<Sharing>,
    active_at: Option<Local>,
    /// When the keeper looks again.
    pub(crate) look_at: Option<Local>,
    /// When it last tested who lives, and up to whom.
    pub(crate) tested: Option<Local>,
    pub(crate) tested_up_to: usize,
    /// When it says the next time that this process lives.
    pub(crate) beat_at: Option<Local>,
}

impl Desk {
    pub(crate) fn new(
        pool: PoolName,
        member: Participant<Box<dyn Log + Send>>,
        journal: Arc<Writer>,
        uptime: Uptime,
    ) -> Self {
        let inbox = Arc::new(Inbox::default());
        let counter = Counter {
            pool: pool.clone(),
            journal,
            member,
            waiters: BTreeMap::new(),
            inbox: Arc::clone(&inbox),
            answered: BTreeMap::new(),
            rings: Vec::new(),
            later: Vec::new(),
            contact: Contact::new(uptime),
            sharing: None,
            active_at: None,
            look_at: None,
            tested: None,
            tested_up_to: 0,
            beat_at: None,
        };
        Self {
            pool,
            held: AtomicUsize::new(0),
            told: Mutex::default(),
            inbox,
            cut_off: Mutex::default(),
            opens: AtomicBool::new(false),
            shares: AtomicBool::new(false),
            stands_in_for: None,
            moved: AtomicBool::new(false),
            counter: Mutex::new(counter),
        }
    }

    pub(crate) const fn pool(&self) -> &PoolName {
        &self.pool
    }

    /// The desk, when it is one's turn. A caller that panicked left it as its last whole step did.
    pub(crate) fn counter(&self) -> Turn<'_> {
        Turn::new(self.counter.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A caller wants this to be sent; it fetches its answer with [`Counter::answer`]. Nothing
    /// means that it only wants to know what is new.
    pub(crate) fn ask(&self, caller: Caller, actions: Vec<Action>) {
        self.inbox.lock().push(Asked { caller, actions });
    }

    /// This is to be sent with whatever is sent next; nobody waits for an answer.
    pub(crate) fn leave_word(&self, action: Action) {
        self.ask(NOBODY, vec![action]);
    }

    /// Whether somebody may wait here; who is at the desk just now may be about to.
    pub(crate) fn may_have_waiters(&self) -> bool {
        match self.counter.try_lock() {
            Ok(counter) => counter.has_waiters(),
            Err(_) => true,
        }
    }

    /// What came of a tap's file.
    pub(crate) fn told(&self, tap: u64) -> Option<Configured> {
        self.lock_told().get(&tap).cloned()
    }

    pub(crate) fn was_told(&self, tap: u64, configured: Configured) {
        let mut told = self.lock_told();
        told.insert(tap, configured);
        // A tap that is closed does not come back; to tell a pool once more does no harm.
        while told.len() > TOLD {
            told.pop_first();
        }
    }

    /// The pool knows nothing any more: what it was told is told again.
    pub(crate) fn forget_told(&self) {
        self.lock_told().clear();
    }

    pub(crate) fn hold(&self) {
        self.held.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn let_go(&self) {
        let less = |held: usize| held.checked_sub(1);
        // What was taken over meanwhile is counted elsewhere.
        let _ = self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    pub(crate) fn holds_leases(&self) -> bool {
        self.held.load(Ordering::Relaxed) > 0
    }

    fn lock_told(&self) -> MutexGuard<'_, BTreeMap<u64, Configured>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counter {
    /// The store's clock and this process's, as the last answer has them.
    pub(crate) fn now(&self) -> Now {
        Now::at(self.member.replica().now())
    }

    /// What came of what a caller asked for. After a transient error it is still under way, and the
    /// caller comes again or leaves with [`Counter::give_up`].
    pub(crate) fn answer(&mut self, caller: Caller) -> Result<Vec<Outcome>, StoreError> {
        let sent = match self.answered.contains_key(&caller) {
            true => Ok(()),
            false => self.send(),
        };
        match self.answered.remove(&caller) {
            Some(answer) => answer,
            // It only wanted to know what is new, and an earlier attempt failed.
            None => sent.and_then(|()| self.member.refresh()).map(|()| Vec::new()),
        }
    }

    /// Sends this, or keeps it to be sent later. Answers whether it was sent.
    pub(crate) fn tell(&mut self, action: Action) -> bool {
        self.tell_all([action])
    }

    /// The same for several, in one step.
    pub(crate) fn tell_all(&mut self, actions: impl IntoIterator<Item = Action>) -> bool {
        self.later.extend(actions);
        self.flush().is_ok()
    }

    /// Whether there is something to be sent that nobody is about to send.
    pub(crate) fn has_pending(&self) -> bool {
        let left_word = |asked: &Asked| asked.caller == NOBODY;
        !self.later.is_empty()
            || self.member.has_pending()
            || self.inbox.lock().iter().any(left_word)
    }

    /// Sends what nobody awaits, if there is such, and what somebody does.
    pub(crate) fn flush(&mut self) -> Result<(), StoreError> {
        let under_way = self.member.unanswered_events().next().is_some();
        if self.has_pending() || under_way { self.send() } else { Ok(()) }
    }

    /// The caller no longer waits for an answer, but wants what it asked for to be sent all the
    /// same.
    pub(crate) fn say_later(&mut self, caller: Caller) {
        let unsent = self.inbox.take_back(caller);
        self.give_up(caller);
        self.later.extend(unsent);
    }

    /// The caller no longer waits for an answer. What it asked for is given back; everything else
    /// it said is still sent.
    pub(crate) fn give_up(&mut self, caller: Caller) {
        self.inbox.take_back(caller);
        self.member.give_up_on(caller);
        for outcome in self.answered.remove(&caller).and_then(Result::ok).into_iter().flatten() {
            match outcome.answer {
                Answer::Decided(Decision::Admit(grant)) if !grant.settled => {
                    self.member.cancel_later(grant.lease);
                }
                Answer::Decided(Decision::Wait(hold)) => self.member.cancel_later(hold.ticket),
                _ => {}
            }
        }
    }

    /// Somebody waits here for a ticket.
    pub(crate) fn wait(&mut self, ticket: Key, caller: Caller, bell: &Arc<Bell>) {
        self.waiters.insert((ticket, caller), Arc::clone(bell));
    }

    /// Somebody no longer does.
    pub(crate) fn leave(&mut self, ticket: Key, caller: Caller) {
        self.waiters.remove(&(ticket, caller));
    }

    pub(crate) fn has_waiters(&self) -> bool {
        !self.waiters.is_empty()
    }

    /// Whether somebody besides this caller waits here.
    pub(crate) fn has_others(&self, caller: Caller) -> bool {
        self.waiters.keys().any(|(_, waiter)| *waiter != caller)
    }

    /// The tickets somebody waits for here.
    pub(crate) fn tickets(&self) -> impl Iterator<Item = Key> {
        self.waiters.keys().map(|(ticket, _)| *ticket)
    }

    /// Tells those who wait for a ticket to look, at the end of this turn.
    pub(crate) fn ring(&mut self, ticket: Key) {
        let callers = (ticket, Caller::MIN)..=(ticket, Caller::MAX);
        self.rings.extend(self.waiters.range(callers).map(|(_, bell)| Arc::clone(bell)));
    }

    /// Whether a ticket is this process's to cancel: one with an id may have been taken over.
    pub(crate) fn is_ours(&self, ticket: Key) -> bool {
        let state = self.member.replica().state();
        if state.find(ticket) != Found::Ticket {
            return true;
        }
        let mut tickets = state.facts().tickets.values();
        let found = tickets.find(|known| known.key == ticket);
        found.is_none_or(|found| found.session.is_none_or(|own| own == self.member.session()))
    }

    /// Reads what others did, and writes down what had to be put back.
    pub(crate) fn refresh(&mut self) -> Result<(), StoreError> {
        self.member.refresh()?;
        self.note_put_back();
        Ok(())
    }

    /// When it last sent something that came through.
    pub(crate) const fn active_at(&self) -> Option<Local> {
        self.active_at
    }

    fn note_put_back(&mut self) {
        if let Some(count) = self.member.take_restored() {
            let what = format!(
                "the store lost its latest entries; {count} of this process's were put back"
            );
            self.journal.note(&self.pool, What::Store { what });
        }
    }

    /// This is to be sent with whatever is sent next.
    pub(crate) fn later(&mut self, action: Action) {
        self.later.push(action);
    }

    /// Whether the answer to a caller lies ready.
    pub(crate) fn has_answer(&self, caller: Caller) -> bool {
        self.answered.contains_key(&caller)
    }

    /// Sends something, what is owed or else a beat: whether the store takes writes.
    pub(crate) fn probe_write(&mut self) -> bool {
        // After minutes of silence the ledger no longer knows this session and would take what it
        // has already for something new: read first what of it came through.
        let under_way = self.member.unanswered_events().next().is_some();
        if under_way && self.member.refresh().is_err() {
            return false;
        }
        let unsent = !self.later.is_empty() || self.member.unanswered_events().next().is_some();
        if unsent {
            return self.flush().is_ok();
        }
        self.tell(Action::Heartbeat { lease: None, ttl: None })
    }

    /// Those who wait here are told to look.
    pub(crate) fn ring_all(&mut self) {
        self.rings.extend(self.waiters.values().cloned());
    }

    /// Sends everything that was asked for, and lays the answers ready. What nobody awaits goes in
    /// bounded batches: it may be a long outage's.
    fn send(&mut self) -> Result<(), StoreError> {
        loop {
            self.send_batch()?;
            if self.later.is_empty() {
                return Ok(());
            }
        }
    }

    fn send_batch(&mut self) -> Result<(), StoreError> {
        // What earlier attempts left under way goes first, alone if there is much of it.
        if self.member.unanswered_events().count() > MOST_WORDS {
            let sent = self.member.submit_for(Vec::new());
            self.heard(&[], sent)?;
        }
        let asked = std::mem::take(&mut *self.inbox.lock());
        let callers: Vec<Caller> = asked.iter().map(|asked| asked.caller).collect();
        let words = self.later.drain(..MOST_WORDS.min(self.later.len()));
        let words: Vec<Action> = words.collect();
        let words = words.into_iter().map(|action| (NOBODY, action));
        let questions = asked.into_iter().flat_map(|Asked { caller, actions }| {
            actions.into_iter().map(move |action| (caller, action))
        });
        let events: Vec<(Caller, Action)> = words.chain(questions).collect();
        let sent = self.member.submit_for(events);
        self.heard(&callers, sent)
    }

    /// What an attempt to send came to.
    fn heard(
        &mut self,
        callers: &[Caller],
        sent: Result<Vec<(Caller, Outcome)>, StoreError>,
    ) -> Result<(), StoreError> {
        let store = self.member.replica().now();
        self.contact.note(self.member.last_written(), store, sent.as_ref().err());
        match sent {
            Ok(answers) => {
                self.active_at = Some(Local::now());
                self.note_put_back();
                let unheard = self.member.take_unclaimed_outcomes();
                self.spread(unheard.iter().chain(answers.iter().map(|(_, outcome)| outcome)));
                // Also those who only wanted to know what is new.
                for caller in callers {
                    self.answered.entry(*caller).or_insert_with(|| Ok(Vec::new()));
                }
                for (caller, outcome) in answers {
                    let answer = self.answered.entry(caller).or_insert_with(|| Ok(Vec::new()));
                    if let Ok(outcomes) = answer {
                        outcomes.push(outcome);
                    }
                }
                self.answered.remove(&NOBODY);
                Ok(())
            }
            Err(error) if error.is_transient() => {
                self.member.give_up_on(NOBODY);
                Err(error)
            }
            Err(error) => {
                let waiting: Vec<Caller> = self.member.callers().collect();
                for caller in waiting.iter().chain(callers) {
                    self.answered.insert(*caller, Err(error.clone()));
                }
                self.answered.remove(&NOBODY);
                self.member.give_up();
                Err(error)
            }
        }
    }

    /// Everybody concerned learns what happened.
    fn spread<'a>(&mut self, outcomes: impl Iterator<Item = &'a Outcome>) {
        let now = self.now();
        for outcome in outcomes {
            for ticket in &outcome.wake {
                self.ring(*ticket);
            }
            for notice in &outcome.notices {
                if let Some(what) = notices::event(&self.pool, notice, &now) {
                    self.journal.note(&self.pool, what);
                }
            }
        }
    }
}

/// How much that nobody awaits is sent in one step.
const MOST_WORDS: usize = 1_024;

/// For how many taps it is remembered what came of their files.
const TOLD: usize = 64;

/// Stands for no caller at all.
const NOBODY: Caller = 0;

impl fmt::Debug for Desk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Desk").field("pool", &self.pool).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
