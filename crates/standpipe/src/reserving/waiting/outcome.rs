//! What an answer of the store means for a call: it is granted, waits, or is refused.

use std::sync::Arc;
use std::time::Duration;

use standpipe_core::{Grant, Queued, Reason, Refusal};
use standpipe_store::StoreError;

use super::notes::FirstWait;
use super::{Step, Trouble, Waiting, over};
use crate::dead;
use crate::desk::Counter;
use crate::error::Error;
use crate::keeper::look;
use crate::lease::{Around, Granted, Lease};
use crate::moment::Now;
use crate::refused::Refused;
use crate::shared::ask::has_no_limits;
use crate::shared::usage::{is_enforced, tier_asked};

impl Waiting {
    pub(super) fn granted(&mut self, counter: &mut Counter, grant: Grant, now: &Now) -> Step {
        self.left(counter);
        let waited = match self.first {
            Some(_) => now.local.saturating_duration_since(self.began),
            None => Duration::ZERO,
        };
        let instead_of = grant.instead_of.as_ref().map(|refusal| self.refused(refusal, now));
        let mut reserve = self.reserve.clone();
        reserve.ticket = None;
        let state = counter.member.replica().state();
        // With what was estimated.
        let mut tier = None;
        if let Some(lease) = state.facts().leases.get(&grant.lease) {
            tier = Some(lease.tier);
            reserve.cost = lease.call.cost.clone();
        }
        if let Some(place) = self.desk.stands_in() {
            place.note_cost(grant.lease, &reserve.cost);
        }
        let (zone, foreseen) = (state.zone(), state.advise(&reserve, now.store));
        let granted = Granted {
            key: grant.lease,
            reserve,
            expires_at: now.system(grant.expires_at),
            waited,
            settled: grant.settled,
            keeps_place: self.keeps_place,
            instead_of,
            zone,
            foreseen,
            tier,
            is_new: self.is_new(counter, &grant),
            enforced: is_enforced(counter.member.replica().state()),
            priced: counter.member.replica().state().has_prices(),
        };
        self.note_wait("admitted", waited);
        if let Some(refusal) = &grant.instead_of {
            self.note_shadow(refusal);
        }
        let (guard, desk) = (Arc::clone(&self.guard), Arc::clone(&self.desk));
        let around = Around {
            dialect: self.pool.dialect(),
            graph: Arc::clone(self.pool.tap().graph()),
            backpressure: self.backpressure.take(),
        };
        let lease = Lease::new(guard, desk, granted, around);
        over(Ok(lease))
    }

    pub(super) fn wait(&mut self, counter: &mut Counter, hold: &Queued, now: &Now) -> Step {
        if self.ticket != Some(hold.ticket) {
            self.left(counter);
            self.ticket = Some(hold.ticket);
            counter.wait(hold.ticket, self.caller, &self.bell);
            // The keeper finds out by itself how often to look from then on.
            let soon = now.local + look::FIRST;
            counter.look_at = Some(counter.look_at.map_or(soon, |at| at.min(soon)));
        }
        if self.first.is_none() {
            let state = counter.member.replica().state();
            self.tier = tier_asked(state, &self.reserve);
            self.first = Some(FirstWait::new(hold, &state.at(now.store), now));
        }
        self.ends.get_or_insert(now.store + self.reserve.patience);
        self.last =
            Some(Refused { position: Some(hold.position), ..self.refused(&hold.refusal, now) });
        let shared = self.guard.shared();
        self.kept = shared.keeper().start(shared);
        if let Some(at) = counter.look_at {
            shared.keeper().plan(at);
        }
        // Who else waits moves the instant at which it comes back; at the pause's end it is fixed.
        let pause = counter.member.replica().state().facts().pause;
        let pause = pause.filter(|_| hold.refusal.reason == Reason::Pause);
        let until = hold.refusal.until.into_iter().chain(pause).min();
        let until = until.map(|until| now.local(until));
        Step::Sleep(until.unwrap_or(self.deadline).min(self.deadline))
    }

    pub(super) fn refuse(
        &mut self,
        counter: &mut Counter,
        refusal: &Refusal,
        now: &Now,
    ) -> Result<Step, Trouble> {
        self.left(counter);
        self.tier = tier_asked(counter.member.replica().state(), &self.reserve);
        if has_no_limits(refusal) {
            let configured = self.desk.told(self.pool.tap().number()).is_some();
            if configured && !self.reminded {
                self.reminded = true;
                self.desk.forget_told();
                return Ok(Step::Sleep(now.local));
            }
            return Ok(over(Err(Error::NoLimits { pool: self.pool.name().clone() })));
        }
        if self.finds_dead(counter, refusal.reason) {
            return Ok(Step::Sleep(now.local));
        }
        let position = self.last.as_ref().and_then(|last| last.position);
        self.last = Some(self.refused(refusal, now));
        let late = !self.hasty && self.is_late(now);
        if late && !matches!(refusal.reason, Reason::Never | Reason::Terminal) {
            return Ok(self.in_vain(counter, position));
        }
        let waited = now.local.saturating_duration_since(self.began);
        let waited = if self.first.is_some() { waited } else { Duration::ZERO };
        self.note_wait("refused", waited);
        let refused = self.naming_the_stopped(self.refused(refusal, now), counter);
        Ok(over(Err(Refused { waited, ..refused }.into())))
    }

    /// A stopped process is alive and keeps what it holds: the error names it.
    fn naming_the_stopped(&self, mut refused: Refused, counter: &Counter) -> Refused {
        if !self.desk.is_substitute() && refused.waits_for_a_slot() {
            let (facts, store) = (counter.member.replica().state().facts(), self.guard.shared());
            refused.stopped_holders = dead::stopped_holders(facts, &**store.store());
        }
        refused
    }

    /// Before it is refused: what it lacks may be the dead's. Answers whether it should ask again.
    pub(super) fn finds_dead(&mut self, counter: &mut Counter, reason: Reason) -> bool {
        if self.searched || self.desk.is_substitute() || !dead::could_help(reason) {
            return false;
        }
        self.searched = true;
        dead::bury(counter, &**self.guard.shared().store())
    }

    /// Its time is up.
    pub(super) fn in_vain(&mut self, counter: &mut Counter, position: Option<usize>) -> Step {
        self.leave(counter);
        let waited = self.began.elapsed();
        self.note_wait("refused", waited);
        let last = self.last.take().map(|last| self.naming_the_stopped(last, counter));
        match last {
            Some(last) => over(Err(last.in_vain(waited, position).into())),
            None => over(Err(StoreError::transient("the store did not answer in time").into())),
        }
    }
}
