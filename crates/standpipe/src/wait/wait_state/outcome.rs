//! What a decision of the ledger means for a call: it is granted, waits, or is refused.
//!
//! Before a call is refused for want of units, dead sessions are reported once, because their units
//! may be enough.

use std::sync::Arc;
use std::time::Duration;

use standpipe_core::{Breaker, Grant, Queued, Reason, Refusal, Span};
use standpipe_store::StoreError;

use super::wait_log::{Look, WaitEnd};
use super::{Step, StepError, WaitState, done};
use crate::client::Dispatcher;
use crate::client::usage::{is_enforced, requested_tier};
use crate::client::view::has_no_limits;
use crate::error::Error;
use crate::lease::{Granted, Lease, LeaseContext};
use crate::maintenance::attend;
use crate::maintenance::liveness;
use crate::moment::Now;
use crate::pool::Pool;
use crate::refused::Refused;
use crate::status::slot_holders;

impl WaitState {
    pub(super) fn granted(&mut self, dispatcher: &mut Dispatcher, grant: Grant, now: &Now) -> Step {
        self.left(dispatcher);
        let waited = match self.waits.is_empty() {
            true => Duration::ZERO,
            false => now.local.saturating_duration_since(self.began),
        };
        let instead_of =
            grant.instead_of.as_ref().map(|refusal| self.refused(dispatcher, refusal, now));
        let mut reserve = self.reserve.clone();
        reserve.ticket = None;
        let state = dispatcher.participant.replica().state();
        // The lease's cost includes the estimates.
        let (mut tier, mut started) = (None, now.store);
        if let Some(lease) = state.facts().leases.get(&grant.lease) {
            (tier, started) = (Some(lease.tier), lease.started);
            reserve.cost = lease.call.cost.clone();
        }
        // What others append later is not in this state yet.
        let was_shared = state.facts().agents.len() > 1 || state.facts().leases.len() > 1;
        let config = state.facts().config.as_ref();
        let slack = config.map_or(Span::ZERO, |config| config.slack);
        let parent = config.and_then(|config| config.within.as_ref());
        let parent = parent.and_then(|name| name.as_str().parse().ok());
        let parent = parent.map(|name| Pool::new(Arc::clone(self.pool.tap()), name));
        if let Some(fallback) = self.client.enclosing_fallback() {
            fallback.note_cost(grant.lease, &reserve.cost);
        }
        let zone = state.zone();
        // Advice costs a forecast over every limit, so the breaker is checked first.
        let pre_emptive = state.breaker(now.store) == Breaker::PreEmptive;
        let forecast = pre_emptive.then(|| state.advise(&reserve, now.store)).flatten();
        let granted = Granted {
            key: grant.lease,
            reserve,
            expires_at: now.system(grant.expires_at),
            waited,
            settled: grant.settled,
            keeps_place: self.keeps_place,
            instead_of,
            zone,
            forecast,
            tier,
            is_new: self.is_new(dispatcher, &grant),
            enforced: is_enforced(dispatcher.participant.replica().state()),
            priced: dispatcher.participant.replica().state().has_prices(),
            limits_result: self.limits_result.take(),
            was_shared,
            started,
            asked_at: self.asked_at,
            slack,
            parent: parent.map(Box::new),
        };
        let end = self.next.take().map_or(WaitEnd::Admitted, WaitEnd::Continued);
        self.note_wait(end, waited);
        if let Some(refusal) = &grant.instead_of {
            self.note_shadow(refusal);
        }
        let (handle, client) = (Arc::clone(&self.handle), Arc::clone(&self.client));
        let context = LeaseContext {
            dialect: self.pool.dialect(),
            graph: Arc::clone(self.pool.tap().graph()),
            backpressure: self.backpressure.take(),
        };
        let lease = Lease::new(handle, client, granted, context);
        done(Ok(lease))
    }

    pub(super) fn wait(&mut self, dispatcher: &mut Dispatcher, hold: &Queued, now: &Now) -> Step {
        if self.ticket != Some(hold.ticket) {
            self.left(dispatcher);
            self.ticket = Some(hold.ticket);
            dispatcher.wait(hold.ticket, self.caller, &self.notify);
            // The maintenance thread decides how often to check from then on.
            let soon = now.local + attend::FIRST;
            dispatcher.look_at = Some(dispatcher.look_at.map_or(soon, |at| at.min(soon)));
        }
        if self.waits.is_empty() {
            let reason = hold.refusal.reason.as_str();
            self.span.in_scope(|| tracing::debug!(reason, position = hold.position, "waiting"));
            self.tier = requested_tier(dispatcher.participant.replica().state(), &self.reserve);
        }
        let state = dispatcher.participant.replica().state();
        let look = Look { queued: hold, state, cost: &self.reserve.cost };
        self.waits.look(look, now, self.entered);
        self.ends.get_or_insert(now.store + self.reserve.patience);
        self.last = Some(Refused {
            position: Some(hold.position),
            ..self.refused(dispatcher, &hold.refusal, now)
        });
        let store_client = self.handle.store_client();
        self.maintained = store_client.maintenance().start(store_client);
        if let Some(at) = dispatcher.look_at {
            store_client.maintenance().plan(at);
        }
        // The return after a pause depends on the other waiters, who may change; at the pause's end
        // it is fixed.
        let pause = dispatcher.participant.replica().state().facts().pause;
        let pause = pause.filter(|_| hold.refusal.reason == Reason::Pause);
        let until = hold.refusal.until.into_iter().chain(pause).min();
        let until = until.map(|until| now.local(until));
        Step::Sleep(until.unwrap_or(self.deadline).min(self.deadline))
    }

    pub(super) fn refuse(
        &mut self,
        dispatcher: &mut Dispatcher,
        refusal: &Refusal,
        now: &Now,
    ) -> Result<Step, StepError> {
        self.left(dispatcher);
        self.tier = requested_tier(dispatcher.participant.replica().state(), &self.reserve);
        if has_no_limits(refusal) {
            let configured = self.client.configured(self.pool.tap().number()).is_some();
            if configured && !self.reconfigured {
                self.reconfigured = true;
                self.client.forget_configured();
                return Ok(Step::Sleep(now.local));
            }
            return Ok(done(Err(Error::NoLimits { pool: self.pool.name().clone() })));
        }
        if self.reclaims_dead(dispatcher, refusal.reason) {
            return Ok(Step::Sleep(now.local));
        }
        let position = self.last.as_ref().and_then(|last| last.position);
        self.last = Some(self.refused(dispatcher, refusal, now));
        let late = !self.no_wait && self.is_late(now);
        if late && !matches!(refusal.reason, Reason::Never | Reason::Terminal) {
            return Ok(self.timed_out(dispatcher, position));
        }
        let waited = now.local.saturating_duration_since(self.began);
        let waited = if self.waits.is_empty() { Duration::ZERO } else { waited };
        self.note_wait(WaitEnd::Refused(refusal.reason), waited);
        if self.waits.is_empty() {
            self.held_by = slot_holders(dispatcher.participant.replica().state(), refusal);
        }
        let refused = self.name_stopped_holders(self.refused(dispatcher, refusal, now), dispatcher);
        Ok(done(Err(Refused { waited, ..refused }.into())))
    }

    /// A stopped process is alive and keeps what it holds: the error names it.
    fn name_stopped_holders(&self, mut refused: Refused, dispatcher: &Dispatcher) -> Refused {
        if !self.client.is_offline() && refused.waits_for_a_slot() {
            let (facts, store) =
                (dispatcher.participant.replica().state().facts(), self.handle.store_client());
            refused.stopped_holders = liveness::stopped_holders(facts, &**store.store());
        }
        refused
    }

    /// Reports dead sessions once before the call is refused, because they may hold what it lacks.
    /// Returns whether the call should try again.
    pub(super) fn reclaims_dead(&mut self, dispatcher: &mut Dispatcher, reason: Reason) -> bool {
        if self.searched || self.client.is_offline() || !liveness::may_free_units(reason) {
            return false;
        }
        self.searched = true;
        liveness::report_dead(dispatcher, &**self.handle.store_client().store())
    }

    /// Ends the wait because the caller's time is up.
    pub(super) fn timed_out(
        &mut self,
        dispatcher: &mut Dispatcher,
        position: Option<usize>,
    ) -> Step {
        self.leave(dispatcher);
        let waited = self.began.elapsed();
        self.note_wait(WaitEnd::Refused(Reason::Deadline), waited);
        let last = self.last.take().map(|last| self.name_stopped_holders(last, dispatcher));
        match last {
            Some(last) => done(Err(last.in_vain(waited, position).into())),
            None => done(Err(StoreError::transient("the store did not answer in time").into())),
        }
    }
}
