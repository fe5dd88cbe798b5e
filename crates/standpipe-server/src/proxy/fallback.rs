//! Which pool and model a try of a call uses: a route for its task, less output, or a fallback.
//!
//! Nothing is rewritten unless the pool of the model that the client named has `rewrite = true`,
//! and only to models of the same provider. The answer's headers state every change.

use std::time::Duration;

use standpipe::config::Settings;

use standpipe::observe::Verdict;
use standpipe::{Pool, PoolName, Remedy, Request};

use super::estimate::Effect;
use super::hold::{Call, Original};
use super::rewrite::{with_max_output, with_model};
use crate::http::problem::Problem;

/// A call that waits longer uses a fallback: the horizon of the ledger's own forecasts.
const LONG_WAIT_MS: u64 = 5_000;
/// The output is capped only if at least this part of what the client asked for is left.
const LEAST_SHARE: u64 = 4;
/// About as many bytes are a token.
const BYTES_PER_TOKEN: u64 = 4;

impl Call {
    /// Decides what the next try calls, beginning with what the client asked for. `has_waited`
    /// means that it waited long for that.
    pub(crate) async fn retarget(&mut self, has_waited: bool) -> Result<(), Problem> {
        self.restore();
        let tap = self.state.tap();
        let Some(settings) = tap.settings().pools.get(self.pool.name()) else { return Ok(()) };
        if !settings.rewrite || !self.format.is_model() {
            return Ok(());
        }
        let task = self.identified.task.as_ref();
        if let Some(route) = task.and_then(|task| tap.settings().routes.get(task)) {
            let targets = self.targets(tap.settings(), route);
            if let Some(target) = self.first_with_room(&targets).await?.or(targets.first()) {
                self.switch(tap.pool(target.0.as_str())?, &target.1);
                return Ok(());
            }
        }
        if self.cap_output().await? || !(has_waited || self.waits_long().await?) {
            return Ok(());
        }
        let targets = self.targets(tap.settings(), &settings.fallback);
        if let Some(target) = self.first_with_room(&targets).await? {
            self.switch(tap.pool(target.0.as_str())?, &target.1);
        }
        Ok(())
    }

    /// Resolves when a call has waited long for its own pool and a fallback has room.
    pub(crate) async fn fallback_has_room(&self) {
        let tap = self.state.tap();
        let targets = match tap.settings().pools.get(self.pool.name()) {
            Some(settings) if settings.rewrite && self.format.is_model() => {
                self.targets(tap.settings(), &settings.fallback)
            }
            _ => Vec::new(),
        };
        // What was rewritten once stays where it is until it is refused.
        if targets.is_empty() || self.original.is_some() {
            std::future::pending::<()>().await;
        }
        loop {
            tokio::time::sleep(Duration::from_millis(LONG_WAIT_MS)).await;
            if matches!(self.first_with_room(&targets).await, Ok(Some(_))) {
                return;
            }
        }
    }

    /// The pools of a chain that calls of this provider can use, each with the model to name: the
    /// first of its `models` that is no pattern.
    fn targets(&self, settings: &Settings, chain: &[PoolName]) -> Vec<(PoolName, String)> {
        let provider = self.identified.upstream.name.as_str();
        let target = |name: &PoolName| {
            let pool = settings.pools.get(name)?;
            let first = name.as_str().split('/').next();
            let same = pool.provider.as_deref().or(first) == Some(provider);
            let model = pool.models.iter().find(|model| same && !model.contains('*'))?;
            (name != self.pool.name()).then(|| (name.clone(), model.clone()))
        };
        chain.iter().filter_map(target).collect()
    }

    async fn first_with_room<'a>(
        &self,
        targets: &'a [(PoolName, String)],
    ) -> Result<Option<&'a (PoolName, String)>, Problem> {
        let tap = self.state.tap();
        for target in targets {
            let pool = tap.pool(target.0.as_str())?;
            if self.state.awaited(pool.peek(&self.request())).await?.is_admitted() {
                return Ok(Some(target));
            }
        }
        Ok(None)
    }

    /// Whether a call would wait long, or for an unknown time, or not be admitted at all.
    async fn waits_long(&self) -> Result<bool, Problem> {
        let verdict = self.state.awaited(self.pool.peek(&self.request())).await?;
        Ok(match verdict {
            Verdict::Waits(refused) => {
                let when = refused.when();
                when.until_ms.or(when.not_before_ms).is_none_or(|ms| ms > LONG_WAIT_MS)
            }
            verdict => !verdict.is_admitted(),
        })
    }

    /// Asks for a shorter answer if the ledger forecasts a long wait that this avoids.
    async fn cap_output(&mut self) -> Result<bool, Problem> {
        let Some(wanted) = self.facts.max_output else { return Ok(false) };
        let Some(advice) = self.state.awaited(self.pool.advise(&self.request())).await? else {
            return Ok(false);
        };
        let to = advice.try_this.iter().find_map(|remedy| match remedy {
            Remedy::CapOutput { to } => Some(*to),
            _ => None,
        });
        // A limit of all tokens counts the input as well.
        let input = match advice.limit.starts_with("output_tokens") {
            true => 0,
            false => self.facts.text_bytes.div_ceil(BYTES_PER_TOKEN),
        };
        let Some(to) = to.and_then(|to| to.checked_sub(input)) else { return Ok(false) };
        if to == 0 || to < wanted / LEAST_SHARE {
            return Ok(false);
        }
        let Some(body) = with_max_output(&self.body, to) else { return Ok(false) };
        self.keep_original();
        self.body = body;
        self.facts.max_output = Some(to);
        Ok(true)
    }

    /// Uses another pool and model, if the model can be changed.
    fn switch(&mut self, pool: Pool, model: &str) {
        let changed = with_model(self.format, &self.body, &self.identified.path, model);
        let Some((body, path)) = changed else { return };
        self.keep_original();
        self.pool = pool;
        (self.body, self.identified.path) = (body, path);
        self.facts.model = Some(model.to_owned());
        // The prompt is cached per model.
        let name = self.pool.name().as_str();
        self.cached = self.state.prompt_caches.call(name, &self.caller, self.facts.text_bytes);
    }

    fn keep_original(&mut self) {
        if self.original.is_none() {
            self.original = Some(Original {
                pool: self.pool.clone(),
                body: self.body.clone(),
                path: self.identified.path.clone(),
                model: self.facts.model.clone(),
                max_output: self.facts.max_output,
                cached: self.cached.clone(),
            });
        }
    }

    /// Takes back what an earlier try changed.
    fn restore(&mut self) {
        let Some(original) = self.original.take() else { return };
        self.pool = original.pool;
        self.body = original.body;
        self.identified.path = original.path;
        self.facts.model = original.model;
        self.facts.max_output = original.max_output;
        self.cached = original.cached;
    }

    /// The request to the ledger for this call.
    pub(crate) fn request(&self) -> Request {
        let later = self.cached.as_ref().filter(|call| call.is_later);
        let input = later.and_then(|call| self.state.prompt_caches.estimate(call));
        self.facts.request(&self.identified, self.format, self.effect(), input)
    }

    pub(crate) fn effect(&self) -> Effect {
        Effect::of(self.format, &self.parts.method, &self.facts)
    }
}
