//! One call on its way to a lease, a step at a time.
//!
//! A step is submitted ([`WaitState::submit`]) and its outcome received
//! ([`WaitState::receive`]); between the two the caller decides which thread talks to the store.
//! The first step carries the pool's configuration and the reserve together.

mod leave;
mod notes;
mod offline;
mod outcome;
mod prepare;
mod store_failed;
mod wait_log;

use std::sync::Arc;
use std::time::{Duration, Instant as Local};

use standpipe_core::Decision;
use standpipe_core::{
    Action, Configured, Instant, Key, Limit, Phase, Priority, Reason, Refusal, Reserve, Span,
};
use standpipe_store::{PoolName, StoreError};

use self::wait_log::WaitLog;
use crate::client::notify::Notify;
use crate::client::registry::StoreHandle;
use crate::client::store_client::FIRST_RETRY;
use crate::client::{CallerId, Dispatcher, PoolClient};
use crate::error::Error;
use crate::lease::Lease;
use crate::maintenance::wake_listener::ParkGuard;
use crate::moment::{Now, span};
use crate::pool::Pool;
use crate::refused::Refused;
use crate::request::Request;
use crate::routing::workflow::Backpressure;

/// The result of a step.
pub(super) enum Step {
    /// The wait is over. Boxed because it is the rarest and the largest.
    Done(Box<Result<Lease, Error>>),
    /// Nothing to do before this instant, unless the waiter is notified.
    Sleep(Local),
    /// There is more to submit at once.
    Again,
    /// The step would have had to wait, and this turn must not: a thread that may block takes it.
    Blocked,
}

/// What was submitted and has no outcome yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pending {
    /// A read of the pool before its first reserve.
    Prepare,
    /// A read of the ticket.
    Look,
    /// A reserve, or the claim of a ticket, behind so many configurations.
    Reserve { configurations: usize },
}

/// One call on its way to a lease.
pub(super) struct WaitState {
    handle: Arc<StoreHandle>,
    client: Arc<PoolClient>,
    pool: Pool,
    reserve: Reserve,
    /// The limits that came with the request.
    limits: Vec<Limit>,
    /// What the pool made of them.
    limits_result: Option<Configured>,
    caller: CallerId,
    notify: Arc<Notify>,
    began: Local,
    /// When the call came to this pool, later than it began if it was on others before.
    entered: Local,
    /// The pool that is reserved after this one for the same call.
    next: Option<PoolName>,
    /// When the caller's time is up, by the clock of this process and, once it is queued, by the
    /// store's. Only the store's clock counts while the machine is suspended.
    deadline: Local,
    ends: Option<Instant>,
    /// Whether the caller never waits.
    no_wait: bool,
    /// Whether the place is kept for the next request with the same id.
    keeps_place: bool,
    ticket: Option<Key>,
    /// The last refusal.
    last: Option<Refused>,
    waits: WaitLog,
    /// The agents that held the slots when the call was refused at once, a few at most.
    held_by: Vec<String>,
    /// The tier of the call, once it was queued or refused.
    tier: Option<Priority>,
    pending: Option<Pending>,
    /// Whether the pool was read before the first reserve, where that is needed.
    prepared: bool,
    /// Whether the pool has no configuration and learns its limits from the provider.
    learns: bool,
    /// Whether the next step claims the ticket.
    claims: bool,
    /// When the last reserve was submitted.
    asked_at: Local,
    /// The clocks at the last answer of the store.
    answered_at: Option<Now>,
    /// Whether the configuration was sent again because the pool had lost it.
    reconfigured: bool,
    /// Whether dead sessions were looked for before a refusal.
    searched: bool,
    retry: Duration,
    /// Since when a local store has not answered.
    failing_since: Option<Local>,
    wakes_at: Option<Local>,
    timer: Option<Local>,
    /// Whether the maintenance thread notifies this waiter.
    maintained: bool,
    over: bool,
    /// An agent upstream is throttled.
    backpressure: Option<Backpressure>,
    /// Whether the agent upstream is not throttled any more, which the next claim reports.
    hold_over: bool,
    span: tracing::Span,
}

/// Why a step did not lead to a decision.
enum StepError {
    Store(StoreError),
    Other(Error),
}

impl WaitState {
    pub(super) fn new(pool: Pool, request: Request, began: Local) -> Result<Self, Error> {
        // A timeout beyond what the ledger can represent is as long as the ledger can.
        let timeout = crate::moment::micros(span(request.patience()));
        let keeps_place = request.is_kept();
        let (mut reserve, limits) =
            request.into_reserve(pool.name(), pool.dialect(), pool.tap().agent())?;
        reserve.priority = reserve.priority.or_else(|| pool.agent_priority(&reserve.agent));
        let (handle, client) = pool.connect()?;
        handle.store_client().maintenance().run_inline_if_due(handle.store_client());
        let span = tracing::debug_span!("reserve", pool = %pool.name(), agent = %reserve.agent);
        Ok(Self {
            span,
            caller: handle.store_client().caller(),
            handle,
            client,
            pool,
            tier: reserve.priority,
            reserve,
            limits,
            limits_result: None,
            notify: Arc::default(),
            began,
            entered: Local::now(),
            next: None,
            deadline: began + timeout,
            ends: None,
            no_wait: timeout.is_zero(),
            keeps_place,
            ticket: None,
            last: None,
            waits: WaitLog::default(),
            held_by: Vec::new(),
            pending: None,
            prepared: false,
            learns: false,
            claims: false,
            asked_at: began,
            answered_at: None,
            reconfigured: false,
            searched: false,
            retry: FIRST_RETRY,
            failing_since: None,
            wakes_at: None,
            timer: None,
            maintained: false,
            over: false,
            backpressure: None,
            hold_over: false,
        })
    }

    /// Sets the pool that is reserved after this one for the same call.
    pub(super) fn before(mut self, next: Option<PoolName>) -> Self {
        self.next = next;
        self
    }

    pub(super) const fn handle(&self) -> &Arc<StoreHandle> {
        &self.handle
    }

    pub(super) const fn client(&self) -> &Arc<PoolClient> {
        &self.client
    }

    pub(super) const fn notify(&self) -> &Arc<Notify> {
        &self.notify
    }

    /// Returns where the caller's thread sleeps.
    pub(super) fn park(&self) -> ParkGuard {
        let (handle, client) = (Arc::clone(&self.handle), Arc::clone(&self.client));
        ParkGuard::new(handle, client, self.caller, Arc::clone(&self.notify))
    }

    /// Returns whether the maintenance thread notifies this waiter.
    pub(super) const fn is_maintained(&self) -> bool {
        self.maintained
    }

    /// Returns whether the call waits for a pause to end.
    pub(super) fn is_paused(&self) -> bool {
        self.ticket.is_some() && self.last.as_ref().is_some_and(|last| last.reason == Reason::Pause)
    }

    /// Returns whether its next instant lies ahead.
    pub(super) fn sleeps(&self) -> bool {
        self.wakes_at.is_some_and(|at| Local::now() < at)
    }

    /// Takes a step on this thread, which may block.
    pub(super) fn step(&mut self) -> Step {
        if let Some(step) = self.submit() {
            return step;
        }
        let client = Arc::clone(&self.client);
        self.receive(&mut client.dispatcher())
    }

    /// Takes a step that never blocks this thread.
    pub(super) fn try_step(&mut self) -> Step {
        let store_client = self.handle.store_client();
        let crosses_network = store_client.store().is_remote() && !self.client.is_offline();
        if crosses_network || self.reads_backpressure() {
            return Step::Blocked;
        }
        if let Some(step) = self.submit() {
            return step;
        }
        let client = Arc::clone(&self.client);
        self.receive(&mut client.short_turn())
    }

    /// Submits what the call wants to be sent. Returns a step if that is nothing.
    pub(super) fn submit(&mut self) -> Option<Step> {
        if !self.handle.is_ours() {
            self.over = true;
            return Some(done(Err(forked_parent())));
        }
        self.leave_offline();
        if self.pending.is_some() {
            return None;
        }
        if self.ticket.is_some() && !self.claims {
            self.submit_read(Pending::Look);
            return None;
        }
        if self.ticket.is_none() && !self.client.is_offline() {
            self.stay_offline();
        }
        let mut actions = Vec::new();
        if self.ticket.is_none() && !self.client.is_offline() {
            if self.must_prepare() {
                self.submit_read(Pending::Prepare);
                return None;
            }
            match self.configurations() {
                Ok(configurations) => actions.extend(configurations),
                Err(error) => return Some(self.failed(error)),
            }
            self.read_backpressure();
        }
        let configurations = actions.len();
        actions.push(Action::Reserve(Box::new(self.next_reserve())));
        self.claims = false;
        self.asked_at = Local::now();
        self.pending = Some(Pending::Reserve { configurations });
        self.client.submit(self.caller, actions);
        None
    }

    fn submit_read(&mut self, pending: Pending) {
        self.pending = Some(pending);
        self.client.submit(self.caller, Vec::new());
    }

    /// Returns the reserve, or the claim of the ticket, as it is sent next.
    fn next_reserve(&mut self) -> Reserve {
        self.reserve.ticket = self.ticket;
        if self.ticket.is_some() {
            // How long a call is held was counted from its first reserve.
            self.reserve.hold = std::mem::take(&mut self.hold_over).then_some(Span::ZERO);
        }
        self.reserve.patience = self.time_left();
        self.reserve.clone()
    }

    /// Receives the outcome of what was submitted.
    pub(super) fn receive(&mut self, dispatcher: &mut Dispatcher) -> Step {
        if self.client.resumed().is_some() && !dispatcher.has_answer(self.caller) {
            // The store would never learn of a decision that this ledger makes now.
            dispatcher.give_up(self.caller);
            (self.pending, self.wakes_at) = (None, None);
            return Step::Again;
        }
        let decided = match dispatcher.answer(self.caller) {
            Err(_) if dispatcher.was_blocked() => return Step::Blocked,
            Err(error) => Err(StepError::Store(error)),
            Ok(outcomes) => {
                self.answered_at = Some(dispatcher.now());
                self.retry = FIRST_RETRY;
                self.failing_since = None;
                match self.pending.take() {
                    Some(Pending::Reserve { configurations }) => {
                        self.decided(dispatcher, outcomes, configurations)
                    }
                    Some(Pending::Prepare) => self.prepare(dispatcher),
                    Some(Pending::Look) | None => self.looked(dispatcher),
                }
            }
        };
        let step = match decided {
            Ok(step) => step,
            Err(StepError::Store(error)) if error.is_transient() => {
                self.store_failed(dispatcher, error)
            }
            Err(StepError::Store(error)) => done(Err(error.into())),
            Err(StepError::Other(error)) => done(Err(error)),
        };
        self.proceed(step)
    }

    /// Ends the wait with an error that needs no answer of the store.
    fn failed(&mut self, error: Error) -> Step {
        self.proceed(done(Err(error)))
    }

    /// Records the result of a step.
    fn proceed(&mut self, step: Step) -> Step {
        let span = self.span.clone();
        let _entered = span.enter();
        match &step {
            Step::Done(outcome) => {
                match &**outcome {
                    Ok(lease) => {
                        // Whoever knows the id of a lease can settle it: it is not logged.
                        tracing::debug!(waited = ?lease.waited(), "admitted");
                        lease.note_admitted(self.waited_here(lease.waited()));
                    }
                    Err(error) => {
                        tracing::debug!(%error, "not admitted");
                        self.note_denied(error);
                    }
                }
                self.handle.store_client().journal_messages(self.pool.name());
                self.finish();
            }
            Step::Sleep(until) => self.wakes_at = Some(*until),
            Step::Again | Step::Blocked => self.wakes_at = None,
        }
        step
    }

    /// Makes the maintenance thread notify this waiter at an instant.
    pub(super) fn set_timer(&mut self, at: Local) -> Result<(), Error> {
        let store_client = self.handle.store_client();
        if !store_client.maintenance().start(store_client) {
            return Err(no_thread());
        }
        if let Some(before) = self.timer.replace(at) {
            store_client.maintenance().clear_timer(before, self.caller);
        }
        store_client.maintenance().set_timer(at, self.caller, &self.notify);
        Ok(())
    }

    fn is_late(&self, now: &Now) -> bool {
        now.local >= self.deadline || self.ends.is_some_and(|ends| now.store >= ends)
    }

    fn time_left(&self) -> Span {
        let local = span(self.deadline.saturating_duration_since(Local::now()));
        match (self.ends, &self.answered_at) {
            (Some(ends), Some(answered)) => {
                let since = span(answered.local.elapsed());
                local.min(ends.since(answered.store + since))
            }
            _ => local,
        }
    }

    /// Returns whether the next step reads which agents upstream are throttled.
    fn reads_backpressure(&self) -> bool {
        let graph = self.pool.tap().graph();
        let is_named = !Request::is_part(&self.reserve, self.pool.name());
        is_named && self.ticket.is_none() && graph.upstream_of(&self.reserve.agent).is_some()
    }

    /// Reads which agent upstream is throttled, before the first reserve.
    fn read_backpressure(&mut self) {
        if Request::is_part(&self.reserve, self.pool.name()) {
            return;
        }
        let store_client = self.handle.store_client();
        if let Some(seen) = store_client.pressure(self.pool.tap().graph(), &self.reserve.agent) {
            self.reserve.hold = self.reserve.hold.max(seen.hold);
            self.backpressure = Some(seen.backpressure);
        }
    }

    /// Returns whether the call was held for an agent upstream that is not throttled any more.
    fn hold_ended(&self) -> bool {
        let (store_client, graph) = (self.handle.store_client(), self.pool.tap().graph());
        let pressed =
            || store_client.pressure(graph, &self.reserve.agent).and_then(|seen| seen.hold);
        self.backpressure.is_some() && pressed().is_none()
    }

    /// Looks at the ticket in a replica that has just been read.
    fn looked(&mut self, dispatcher: &mut Dispatcher) -> Result<Step, StepError> {
        let Some(ticket) = self.ticket else { return Ok(Step::Again) };
        let now = dispatcher.now();
        let state = dispatcher.participant.replica().state().at(now.store);
        let mut tickets = state.facts().tickets.values();
        let lapsed = tickets.find(|known| known.key == ticket);
        let lapsed = lapsed.is_none_or(|known| known.phase == Phase::Lapsed);
        self.reserve.ticket = Some(ticket);
        let decision = state.peek(&self.reserve, now.store);
        drop(state);
        match decision {
            Decision::Wait(hold) if self.is_late(&now) => {
                if self.reclaims_dead(dispatcher, hold.refusal.reason) {
                    return self.looked(dispatcher);
                }
                self.last = Some(self.refused(dispatcher, &hold.refusal, &now));
                return Ok(self.timed_out(dispatcher, Some(hold.position)));
            }
            // The claim reports that no agent upstream is throttled any more.
            Decision::Wait(hold) if hold.refusal.reason == Reason::Hold && self.hold_ended() => {
                self.hold_over = true;
            }
            Decision::Wait(hold) if !lapsed => return Ok(self.wait(dispatcher, &hold, &now)),
            _ => {}
        }
        self.claims = true;
        Ok(Step::Again)
    }

    fn refused(&self, dispatcher: &Dispatcher, refusal: &Refusal, now: &Now) -> Refused {
        let backpressure = self.backpressure.clone();
        let state = dispatcher.participant.replica().state();
        let refused = Refused::new(self.pool.name(), refusal, state, now);
        Refused { backpressure, ..refused.of_call(&self.reserve, refusal, state, now) }
    }

    /// Ends the wait: its timer is not needed any more.
    fn finish(&mut self) {
        self.over = true;
        if let Some(at) = self.timer.take() {
            self.handle.store_client().maintenance().clear_timer(at, self.caller);
        }
    }
}

/// A child process after a fork does not continue the calls of its parent.
pub(super) fn forked_parent() -> Error {
    Error::invalid("this call was made by the parent process", "reserve again after the fork")
}

pub(super) fn no_thread() -> Error {
    let what = "no thread can be started to wait with; wait with `blocking`, or raise the limit on \
                threads";
    StoreError::unusable(what).into()
}

fn done(outcome: Result<Lease, Error>) -> Step {
    Step::Done(Box::new(outcome))
}
