//! What happens before the first reserve of a call: the pool's configuration goes with it, and
//! units that no limit counts are rejected.
//!
//! A call with an invalid configuration or unit is never admitted, and one that can never fit
//! leaves the pool's limits as they are. `outcome` continues with the decision.

use std::time::Duration;

use standpipe_core::{
    Action, Answer, Configure, Configured, Decision, Outcome, PoolConfig, Reason, Reserve, Source,
};
use standpipe_store::StoreError;

use super::wait_log::WaitEnd;
use super::{Step, StepError, WaitState, done};
use crate::client::Dispatcher;
use crate::client::store_client::source_name;
use crate::client::units;
use crate::client::usage::requested_tier;
use crate::error::Error;
use crate::refused::Refused;
use crate::request::Request;

impl WaitState {
    /// Returns whether the pool must be read before the first reserve: to know whether it has a
    /// configuration, or whether it counts the units of the cost.
    pub(super) fn must_prepare(&mut self) -> bool {
        if self.prepared {
            return false;
        }
        let tap = self.pool.tap();
        let unknown = self.client.configured(tap.number()).is_none();
        let learns = unknown && self.limits.is_empty() && !self.pool.is_declared();
        let learns = learns && self.pool.learns();
        let own = [self.pool.own_limits(), &self.limits].concat();
        let custom = units::custom(&self.reserve.cost, &own);
        let known = custom.is_empty()
            || self.client.try_dispatcher().is_some_and(|dispatcher| {
                units::are_declared(dispatcher.participant.replica().state(), &custom)
            });
        self.prepared = !learns && known && !self.may_tighten();
        !self.prepared
    }

    /// Returns whether the limits that came with the request may change the pool, and the call may
    /// be too large for it. One unit fits every limit.
    fn may_tighten(&self) -> bool {
        let Reserve { cost, at_most, bytes, .. } = &self.reserve;
        let is_small = bytes.is_none() && at_most.iter().next().is_none();
        if self.limits.is_empty() || (is_small && cost.iter().all(|(_, amount)| amount <= 1)) {
            return false;
        }
        let limits =
            Configure { source: Source::Code, config: self.pool.usual(self.limits.clone()) };
        let changes = self.client.try_dispatcher().map(|dispatcher| {
            let state = dispatcher.participant.replica().state();
            state.would_configure(&limits, dispatcher.now().store)
        });
        changes != Some(false)
    }

    /// Refuses a call that can never fit before its limits are sent: they would stay, and apply to
    /// every caller of the pool.
    fn refuse_impossible(
        &mut self,
        dispatcher: &mut Dispatcher,
    ) -> Result<Option<Step>, StepError> {
        if self.limits.is_empty() {
            return Ok(None);
        }
        let now = dispatcher.now();
        let mut state = dispatcher.participant.replica().state().clone();
        for action in self.configurations().map_err(StepError::Other)? {
            if let Action::Configure(configure) = action {
                state = state.configured(&configure, now.store);
            }
        }
        match state.peek(&self.reserve, now.store) {
            Decision::Refuse(refusal) if refusal.reason == Reason::Never => {
                self.tier = requested_tier(&state, &self.reserve);
                self.note_wait(WaitEnd::Refused(refusal.reason), Duration::ZERO);
                let refused = Refused::new(self.pool.name(), &refusal, &state, &now);
                let refused = refused.of_call(&self.reserve, &refusal, &state, &now);
                Ok(Some(done(Err(refused.into()))))
            }
            _ => Ok(None),
        }
    }

    /// Looks at the pool after that read.
    pub(super) fn prepare(&mut self, dispatcher: &mut Dispatcher) -> Result<Step, StepError> {
        self.prepared = true;
        let state = dispatcher.participant.replica().state();
        let tap = self.pool.tap();
        if self.limits.is_empty() && !self.pool.is_declared() && self.pool.learns() {
            match self.pool.has_rules(state) {
                true => self.client.set_configured(tap.number(), Configured::Same),
                false => self.learns = true,
            }
        }
        let own = [self.pool.own_limits(), &self.limits].concat();
        if Request::is_part(&self.reserve, self.pool.name()) {
            // Units of the named pool that this one does not count.
            self.reserve.cost = units::without_undeclared(state, &self.reserve.cost, &own);
            self.reserve.at_most = units::without_undeclared(state, &self.reserve.at_most, &own);
            return Ok(Step::Again);
        }
        units::check(state, &self.reserve.cost, &own, None, self.pool.name())
            .map_err(StepError::Other)?;
        Ok(self.refuse_impossible(dispatcher)?.unwrap_or(Step::Again))
    }

    /// Returns the configurations that go with the reserve: that of the file, once per tap and
    /// pool, and the limits that came with the request.
    pub(super) fn configurations(&self) -> Result<Vec<Action>, Error> {
        let (tap, store_client) = (self.pool.tap(), self.handle.store_client());
        self.pool.set_fallback(store_client, &self.client);
        let mut all = Vec::new();
        if self.client.configured(tap.number()).is_none() {
            if let Some(config) = tap.settings().pool_config(self.pool.name()) {
                all.push((tap.settings().source(), config));
            } else if self.learns {
                all.push((Source::Code, self.pool.usual(Vec::new())));
            }
        }
        if !self.limits.is_empty() {
            all.push((Source::Code, self.pool.usual(self.limits.clone())));
        }
        let checked = all.into_iter().map(|(source, config): (Source, PoolConfig)| {
            // An invalid configuration must not be found out after the call is admitted.
            let name = self.pool.name();
            config.check().map_err(|wrong| crate::pool::invalid_config(name, &wrong))?;
            Ok(Action::Configure(Box::new(Configure { source, config })))
        });
        checked.collect()
    }

    /// Receives the outcome of a reserve or a claim, and of the configurations before it.
    pub(super) fn decided(
        &mut self,
        dispatcher: &mut Dispatcher,
        outcomes: Vec<Outcome>,
        configurations: usize,
    ) -> Result<Step, StepError> {
        let now = dispatcher.now();
        let mut answers = outcomes.into_iter().map(|outcome| outcome.answer);
        for index in 0..configurations {
            if let Some(Answer::Configured(result)) = answers.next() {
                self.note_configured(result, index + 1 == configurations);
            }
        }
        match answers.next() {
            Some(Answer::Decided(Decision::Admit(grant))) => {
                Ok(self.granted(dispatcher, grant, &now))
            }
            Some(Answer::Decided(Decision::Wait(queued))) => {
                Ok(self.wait(dispatcher, &queued, &now))
            }
            Some(Answer::Decided(Decision::Refuse(refusal))) => {
                self.refuse(dispatcher, &refusal, &now)
            }
            _ => Err(StepError::Store(StoreError::transient(
                "the store did not return the outcome of the call",
            ))),
        }
    }

    fn note_configured(&mut self, result: Configured, is_last: bool) {
        let of_request = is_last && !self.limits.is_empty();
        let source = match of_request || self.learns {
            true => Source::Code,
            false => self.pool.tap().settings().source(),
        };
        let source = match self.learns && !of_request {
            true => "built-in defaults",
            false => source_name(&source),
        };
        let store_client = self.handle.store_client();
        store_client.journal_configured(self.pool.name(), &result, source);
        match of_request {
            true => self.limits_result = Some(result),
            false => self.client.set_configured(self.pool.tap().number(), result),
        }
    }
}
