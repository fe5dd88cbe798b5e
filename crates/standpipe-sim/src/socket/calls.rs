//! What is decided about calls and written down of them. All of it happens under one lock, together
//! with reading the clock: the order of the log is the order of the decisions.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::ServerOptions;
use super::log::{Logged, kind};
use crate::provider::{Arrival, Call, CallId, Provider, Reply, Rule, Used, Verdict};

/// The most calls that are written down. Beyond that calls are answered with 503: a call that is
/// missing in the log would be worse.
const MOST_CALLS: usize = 1 << 20;
/// The most keys and paths that are counted apart.
const MOST_METERED: usize = 1_024;

/// The providers behind each key and path, and the log.
#[derive(Debug)]
pub(super) struct Calls {
    /// A provider without a call so far.
    fresh: Provider,
    /// The same for the paths that have rules of their own.
    paths: BTreeMap<String, Provider>,
    metered: BTreeMap<Metered, Provider>,
    per_model: bool,
    /// Values of `x-refuse-once` that have been obeyed.
    refused_once: BTreeSet<String>,
    log: Vec<Logged>,
}

/// What is counted apart: key, path and model.
type Metered = (String, String, String);

/// A call as it came over the wire.
#[derive(Clone, Debug, Default)]
pub(super) struct Asked {
    pub(super) key: String,
    pub(super) path: String,
    pub(super) agent: String,
    pub(super) model: String,
    pub(super) lease: String,
    pub(super) call: Call,
}

/// What was decided about a call.
#[derive(Debug)]
pub(super) enum DecisionRecord {
    /// It is being served.
    Accepted(Ticket),
    /// It is over.
    Refused(Reply),
    /// There is no room to write it down.
    Full,
}

/// A call that is being served.
#[derive(Debug)]
pub(super) struct Ticket {
    metered: Metered,
    id: CallId,
    /// Its index in the log.
    at: usize,
}

impl Calls {
    pub(super) fn new(options: &ServerOptions) -> Self {
        let provider = |rules: &Vec<Rule>| {
            Provider::new(options.shape, rules.clone(), options.seed).with(options.options.clone())
        };
        let paths = options.paths.iter().map(|(path, rules)| (path.clone(), provider(rules)));
        Self {
            fresh: provider(&options.rules),
            paths: paths.collect(),
            metered: BTreeMap::new(),
            per_model: options.per_model,
            refused_once: BTreeSet::new(),
            log: Vec::new(),
        }
    }

    pub(super) fn log(&self) -> &[Logged] {
        &self.log
    }

    /// Decides about a call now, and writes it down.
    pub(super) fn arrive(&mut self, now: u64, asked: Asked) -> DecisionRecord {
        let model = if self.per_model { asked.model.clone() } else { String::new() };
        let metered = (asked.key.clone(), asked.path.clone(), model);
        let is_full = self.metered.len() >= MOST_METERED && !self.metered.contains_key(&metered);
        if is_full || self.log.len() >= MOST_CALLS {
            return DecisionRecord::Full;
        }
        let fresh = self.paths.get(&asked.path).unwrap_or(&self.fresh);
        let provider = self.metered.entry(metered.clone()).or_insert_with(|| fresh.clone());
        let arrival = provider.arrive(now, &asked.call);
        let verdict = provider.record().calls.last().map_or(Verdict::Accepted, |seen| seen.verdict);
        let refused_by = verdict.refused_by();
        let rule = refused_by.and_then(|rule| provider.rules().get(rule)).map(kind);
        let (status, finished) = match &arrival {
            Arrival::Accepted(_) => (None, None),
            Arrival::Refused(reply) => (Some(reply.status), Some(now)),
        };
        let Asked { key, path, agent, model, lease, call } = asked;
        let number = self.log.len() as u64 + 1;
        self.log.push(Logged {
            number,
            key,
            path,
            agent,
            model,
            lease,
            call,
            arrived: now,
            verdict,
            refused_by,
            rule,
            status,
            finished,
        });
        match arrival {
            Arrival::Accepted(id) => {
                DecisionRecord::Accepted(Ticket { metered, id, at: self.log.len() - 1 })
            }
            Arrival::Refused(reply) => DecisionRecord::Refused(reply),
        }
    }

    /// Refuses a call that asks for it (`x-refuse-once: SECONDS NAME`), the first time it does: as
    /// Anthropic does, with the seconds as `retry-after`.
    pub(super) fn refuse_once(&mut self, now: u64, asked: &Asked, wish: &str) -> Option<Reply> {
        let is_new = self.refused_once.len() < MOST_METERED && self.log.len() < MOST_CALLS;
        if !is_new || !self.refused_once.insert(wish.to_owned()) {
            return None;
        }
        let seconds = wish.split(' ').next().unwrap_or_default().to_owned();
        let error = json!({"type": "rate_limit_error", "message": "refused as asked for"});
        let headers = vec![("retry-after".to_owned(), seconds)];
        self.log.push(Logged {
            number: self.log.len() as u64 + 1,
            key: asked.key.clone(),
            path: asked.path.clone(),
            agent: asked.agent.clone(),
            model: asked.model.clone(),
            lease: asked.lease.clone(),
            call: asked.call,
            arrived: now,
            verdict: Verdict::Accepted,
            refused_by: None,
            rule: None,
            status: Some(429),
            finished: Some(now),
        });
        let body = json!({"type": "error", "error": error}).to_string().into_bytes();
        Some(Reply { status: 429, headers, body })
    }

    /// A call that was being served is over, with a failure or without.
    pub(super) fn finish(
        &mut self,
        now: u64,
        ticket: &Ticket,
        used: Used,
        failure: Option<u16>,
    ) -> Option<Reply> {
        let reply = self.metered.get_mut(&ticket.metered)?.finish(now, ticket.id, used);
        let logged = self.log.get_mut(ticket.at)?;
        logged.status = failure.or(Some(reply.status));
        logged.finished = Some(now);
        Some(reply)
    }
}
