//! One call on its way to a lease, a step at a time.

mod notes;
mod offline;
mod outcome;

use std::sync::Arc;
use std::time::{Duration, Instant as Local};

use standpipe_core::{
    Action, Answer, Decision, Instant, Key, Outcome, Phase, Priority, Reason, Refusal, Reserve,
    Span,
};
use standpipe_store::StoreError;

use self::notes::FirstWait;
use super::bell;
use crate::bell::Bell;
use crate::desk::{Caller, Counter, Desk};
use crate::error::Error;
use crate::keeper::post::Seat;
use crate::lease::Lease;
use crate::moment::{Now, span};
use crate::pool::Pool;
use crate::refused::Refused;
use crate::registry::Guard;
use crate::request::Request;
use crate::shared::{FIRST_RETRY, LAST_RETRY};
use crate::workflow::Backpressure;

/// What a step came to.
pub(super) enum Step {
    /// It is over; boxed because it is the rarer and the larger.
    Over(Box<Result<Lease, Error>>),
    /// Nothing to do before then, unless somebody rings.
    Sleep(Local),
    /// It has more to ask, at once.
    Again,
}

/// One call on its way to a lease.
pub(super) struct Waiting {
    guard: Arc<Guard>,
    desk: Arc<Desk>,
    pool: Pool,
    reserve: Reserve,
    caller: Caller,
    bell: Arc<Bell>,
    began: Local,
    /// When its time is up, by this process's clock and, once it has asked, by the store's: only
    /// the store's counts while the machine sleeps.
    deadline: Local,
    ends: Option<Instant>,
    /// It never waits.
    hasty: bool,
    /// Somebody may come back for it with its id.
    keeps_place: bool,
    ticket: Option<Key>,
    /// What it was last told, and what it was first told.
    last: Option<Refused>,
    first: Option<FirstWait>,
    /// The tier it is in, once it was told to wait or refused.
    tier: Option<Priority>,
    /// It has asked for a lease and the store has not answered.
    unanswered: bool,
    /// Its ticket is to be claimed: a look has shown that.
    claims: bool,
    /// When it last heard of the store.
    heard: Option<Now>,
    /// The file's configuration was sent again because the pool had none.
    reminded: bool,
    /// It was looked who is dead before it is refused.
    searched: bool,
    retry: Duration,
    wakes_at: Option<Local>,
    timer: Option<Local>,
    kept: bool,
    over: bool,
    /// Somebody upstream is throttled.
    backpressure: Option<Backpressure>,
    /// Nobody is any more: its next claim says so.
    freed: bool,
}

/// Why a step did not come to a decision.
enum Trouble {
    Store(StoreError),
    Other(Error),
}

impl Waiting {
    pub(super) fn new(pool: &Pool, request: &Request, began: Local) -> Result<Self, Error> {
        let reserve = request.resolve(pool.name(), pool.dialect(), pool.tap().agent())?;
        let guard = pool.tap().guard()?;
        guard.shared().keeper().stand_in(guard.shared());
        let desk = guard.shared().desk(pool.name())?;
        let caller = guard.shared().caller();
        // What is longer than any span the ledger knows is no further away than that.
        let patience = crate::moment::micros(span(request.patience()));
        let reserve_tier = reserve.priority;
        Ok(Self {
            guard,
            desk,
            pool: pool.clone(),
            reserve,
            caller,
            bell: bell(),
            began,
            deadline: began + patience,
            ends: None,
            hasty: patience.is_zero(),
            keeps_place: request.is_kept(),
            ticket: None,
            last: None,
            first: None,
            tier: reserve_tier,
            unanswered: false,
            claims: false,
            heard: None,
            reminded: false,
            searched: false,
            retry: FIRST_RETRY,
            wakes_at: None,
            timer: None,
            kept: false,
            over: false,
            backpressure: None,
            freed: false,
        })
    }

    pub(super) const fn guard(&self) -> &Arc<Guard> {
        &self.guard
    }

    pub(super) const fn desk(&self) -> &Arc<Desk> {
        &self.desk
    }

    pub(super) fn is_remote(&self) -> bool {
        self.guard.shared().store().is_remote()
    }

    pub(super) const fn bell(&self) -> &Arc<Bell> {
        &self.bell
    }

    /// Where its thread sleeps.
    pub(super) fn seat(&self) -> Seat {
        let (guard, desk) = (Arc::clone(&self.guard), Arc::clone(&self.desk));
        Seat::new(guard, desk, self.caller, Arc::clone(&self.bell))
    }

    /// Whether a keeper rings when it should look.
    pub(super) const fn is_kept(&self) -> bool {
        self.kept
    }

    /// Whether its next moment lies ahead.
    pub(super) fn sleeps(&self) -> bool {
        self.wakes_at.is_some_and(|at| Local::now() < at)
    }

    /// Asks, or asks again.
    pub(super) fn step(&mut self) -> Step {
        if let Some(step) = self.ask() {
            return step;
        }
        let desk = Arc::clone(&self.desk);
        self.hear(&mut desk.counter())
    }

    /// Puts its question on the desk. Some step if it has none.
    pub(super) fn ask(&mut self) -> Option<Step> {
        if !self.guard.is_ours() {
            self.over = true;
            return Some(over(Err(parents())));
        }
        self.comes_back();
        if self.unanswered {
            return None;
        }
        if self.ticket.is_some() && !self.claims {
            self.desk.ask(self.caller, Vec::new());
            return None;
        }
        if self.ticket.is_none() && !self.desk.is_substitute() {
            self.stays_offline();
        }
        if self.ticket.is_none() && !self.desk.is_substitute() {
            if let Err(trouble) = self.configure() {
                let desk = Arc::clone(&self.desk);
                return Some(self.took(&mut desk.counter(), Err(trouble)));
            }
            self.look_upstream();
        }
        self.reserve.ticket = self.ticket;
        if self.ticket.is_some() {
            // How long it is held was counted from when it first asked.
            self.reserve.hold = std::mem::take(&mut self.freed).then_some(Span::ZERO);
        }
        self.reserve.patience = self.left_of_its_time();
        (self.unanswered, self.claims) = (true, false);
        self.desk.ask(self.caller, vec![Action::Reserve(Box::new(self.reserve.clone()))]);
        None
    }

    /// Learns what came of its question.
    pub(super) fn hear(&mut self, counter: &mut Counter) -> Step {
        if self.desk.moved_to().is_some() && !counter.has_answer(self.caller) {
            // Whatever this ledger decided now, the store would not learn of.
            counter.give_up(self.caller);
            (self.unanswered, self.wakes_at) = (false, None);
            return Step::Again;
        }
        let answered = counter.answer(self.caller);
        let decided = match answered {
            Err(error) => Err(Trouble::Store(error)),
            Ok(outcomes) => {
                self.heard = Some(counter.now());
                self.retry = FIRST_RETRY;
                match std::mem::take(&mut self.unanswered) {
                    true => self.decided(counter, outcomes),
                    false => self.looked(counter),
                }
            }
        };
        self.took(counter, decided)
    }

    /// What a step came to, whatever was in its way.
    fn took(&mut self, counter: &mut Counter, decided: Result<Step, Trouble>) -> Step {
        let step = match decided {
            Ok(step) => step,
            Err(Trouble::Store(error)) if error.is_transient() => self.setback(counter, error),
            Err(Trouble::Store(error)) => over(Err(error.into())),
            Err(Trouble::Other(error)) => over(Err(error)),
        };
        match &step {
            Step::Over(outcome) => {
                match &**outcome {
                    Ok(lease) => lease.note_admitted(),
                    Err(error) => self.note_denied(error),
                }
                self.guard.shared().hear_news(self.pool.name());
                self.finish();
            }
            Step::Sleep(until) => self.wakes_at = Some(*until),
            Step::Again => self.wakes_at = None,
        }
        step
    }

    /// The keeper rings at that moment.
    pub(super) fn set_timer(&mut self, at: Local) -> Result<(), Error> {
        let shared = self.guard.shared();
        if !shared.keeper().start(shared) {
            return Err(no_thread());
        }
        if let Some(before) = self.timer.replace(at) {
            shared.keeper().clear_timer(before, self.caller);
        }
        shared.keeper().set_timer(at, self.caller, &self.bell);
        Ok(())
    }

    fn is_late(&self, now: &Now) -> bool {
        now.local >= self.deadline || self.ends.is_some_and(|ends| now.store >= ends)
    }

    fn left_of_its_time(&self) -> Span {
        let local = span(self.deadline.saturating_duration_since(Local::now()));
        match (self.ends, &self.heard) {
            (Some(ends), Some(heard)) => {
                let since = span(heard.local.elapsed());
                local.min(ends.since(heard.store + since))
            }
            _ => local,
        }
    }

    /// Learns who upstream is throttled, before the first ask.
    fn look_upstream(&mut self) {
        let shared = self.guard.shared();
        if let Some(seen) = shared.pressure(self.pool.tap().graph(), &self.reserve.agent) {
            self.reserve.hold = self.reserve.hold.max(seen.hold);
            self.backpressure = Some(seen.told);
        }
    }

    /// Whether it was held for somebody upstream who is throttled no more.
    fn is_free_again(&self) -> bool {
        let (shared, graph) = (self.guard.shared(), self.pool.tap().graph());
        let pressed = || shared.pressure(graph, &self.reserve.agent).and_then(|seen| seen.hold);
        self.backpressure.is_some() && pressed().is_none()
    }

    /// Tells the pool what the file says, and checks the units of the cost, before the first ask.
    fn configure(&self) -> Result<(), Trouble> {
        let configured =
            self.pool.configure_from_file(Duration::ZERO, &self.guard, &self.desk).and_then(|_| {
                let (cost, own) = (&self.reserve.cost, self.pool.own_limits());
                self.guard.shared().check_units(&self.desk, cost, own, None)
            });
        match configured {
            Ok(()) => Ok(()),
            Err(Error::Store(error)) => Err(Trouble::Store(error)),
            Err(error) => Err(Trouble::Other(error)),
        }
    }

    /// A look at its ticket, in a replica that has just read everything.
    fn looked(&mut self, counter: &mut Counter) -> Result<Step, Trouble> {
        let Some(ticket) = self.ticket else { return Ok(Step::Again) };
        let now = counter.now();
        let state = counter.member.replica().state().at(now.store);
        let mut tickets = state.facts().tickets.values();
        let lapsed = tickets.find(|known| known.key == ticket);
        let lapsed = lapsed.is_none_or(|known| known.phase == Phase::Lapsed);
        self.reserve.ticket = Some(ticket);
        let decision = state.peek(&self.reserve, now.store);
        drop(state);
        match decision {
            Decision::Wait(hold) if self.is_late(&now) => {
                if self.finds_dead(counter, hold.refusal.reason) {
                    return self.looked(counter);
                }
                self.last = Some(self.refused(&hold.refusal, &now));
                return Ok(self.in_vain(counter, Some(hold.position)));
            }
            // Nobody upstream is throttled any more: it says so with its claim.
            Decision::Wait(hold) if hold.refusal.reason == Reason::Hold && self.is_free_again() => {
                self.freed = true;
            }
            Decision::Wait(hold) if !lapsed => return Ok(self.wait(counter, &hold, &now)),
            _ => {}
        }
        self.claims = true;
        Ok(Step::Again)
    }

    /// What came of its reserve or its claim.
    fn decided(&mut self, counter: &mut Counter, outcomes: Vec<Outcome>) -> Result<Step, Trouble> {
        let now = counter.now();
        match outcomes.into_iter().next().map(|outcome| outcome.answer) {
            Some(Answer::Decided(Decision::Admit(grant))) => Ok(self.granted(counter, grant, &now)),
            Some(Answer::Decided(Decision::Wait(hold))) => Ok(self.wait(counter, &hold, &now)),
            Some(Answer::Decided(Decision::Refuse(refusal))) => {
                self.refuse(counter, &refusal, &now)
            }
            _ => Err(Trouble::Store(StoreError::transient(
                "the store did not say what came of the call",
            ))),
        }
    }

    /// The store did not answer. It is asked again until the caller's time is up.
    fn setback(&mut self, counter: &mut Counter, error: StoreError) -> Step {
        let now = Local::now();
        if let Some(step) = self.goes_away(counter) {
            return step;
        }
        if self.desk.falls_back() {
            // The keeper finds out whether the store takes writes.
            self.guard.shared().owes();
        }
        if now >= self.deadline {
            self.leave(counter);
            return over(Err(error.into()));
        }
        let at = (now + self.retry).min(self.deadline);
        self.retry = (self.retry * 2).min(LAST_RETRY);
        Step::Sleep(at)
    }

    fn refused(&self, refusal: &Refusal, now: &Now) -> Refused {
        let backpressure = self.backpressure.clone();
        Refused { backpressure, ..Refused::new(self.pool.name(), refusal, now) }
    }

    /// Nobody rings for it at the desk any more.
    fn left(&mut self, counter: &mut Counter) {
        if let Some(ticket) = self.ticket.take() {
            counter.leave(ticket, self.caller);
        }
    }

    /// Gives up its place, and whatever the store may have given it meanwhile.
    fn leave(&mut self, counter: &mut Counter) {
        let ticket = self.ticket;
        self.left(counter);
        counter.give_up(self.caller);
        let cancelled = match ticket.filter(|ticket| counter.is_ours(*ticket)) {
            Some(ticket) => counter.tell(Action::Cancel { lease: ticket }),
            None => counter.flush().is_ok(),
        };
        if !cancelled {
            self.guard.shared().owes();
        }
    }

    fn leave_all(&mut self) {
        let desk = Arc::clone(&self.desk);
        let mut counter = desk.counter();
        self.leave(&mut counter);
    }

    fn finish(&mut self) {
        self.over = true;
        if let Some(at) = self.timer.take() {
            self.guard.shared().keeper().clear_timer(at, self.caller);
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if self.over || !self.guard.is_ours() {
            return;
        }
        if self.keeps_place && self.ticket.is_some() && !self.unanswered {
            let desk = Arc::clone(&self.desk);
            self.left(&mut desk.counter());
        } else if self.ticket.is_some() || self.unanswered {
            self.leave_all();
            self.note_wait("cancelled", self.began.elapsed());
        }
        self.finish();
    }
}

/// A child process after a fork does not go on with what its parent began.
pub(super) fn parents() -> Error {
    Error::invalid("this call was asked for by the parent process", "reserve anew after the fork")
}

pub(super) fn no_thread() -> Error {
    let what = "no thread can be started to wait with; wait with `blocking`, or raise the limit on \
                threads";
    StoreError::unusable(what).into()
}

fn over(outcome: Result<Lease, Error>) -> Step {
    Step::Over(Box::new(outcome))
}
