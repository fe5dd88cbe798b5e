//! Views of a call that may draw on several pools: what would be decided, and why.
//!
//! All pools decide, so no answer of one of them has an exact instant.

use standpipe_core::{AgentName, Amounts, Priority, Reserve, Unit};
use standpipe_observe::status::{Delay, Label, TicketStatus};
use standpipe_store::PoolName;

use super::Pool;
use crate::client::units::without_undeclared;
use crate::error::Error;
use crate::explain::{Explanation, Verdict};
use crate::refused::When;
use crate::request::Request;
use crate::tap::Standpipe;
use crate::wait::parts_of;

impl Pool {
    /// Returns the verdict of the first pool that does not admit the call.
    pub(crate) fn peek_now(&self, request: &Request) -> Result<Verdict, Error> {
        let mut verdict = None;
        let parts = parts_of(self, request)?;
        let several = parts.len() > 1;
        for (pool, request) in parts {
            let (store_client, client) = pool.present()?;
            let reserve = pool.resolve(&store_client, &client, &request)?;
            let next = store_client.peek(&client, &reserve)?;
            if !next.is_admitted() {
                return Ok(if several { next.of_one_pool() } else { next });
            }
            verdict = verdict.filter(|known: &Verdict| known.why().is_some()).or(Some(next));
        }
        verdict.ok_or_else(|| Error::NoLimits { pool: self.name().clone() })
    }

    pub(crate) fn explain_now(&self, request: &Request) -> Result<Explanation, Error> {
        let (request, holds) = self.like_the_waiting_call(request)?;
        let (store_client, client) = self.present()?;
        let reserve = self.resolve(&store_client, &client, &request)?;
        let mut explanation = store_client.explain(&client, &reserve)?;
        explanation.set_delay(self.delay_of(&explanation));
        if explanation.advice.is_some() {
            explanation.advice = self.advise_now(&request)?;
        }
        let mut others = Vec::new();
        for (pool, request) in parts_of(self, &request)? {
            if pool.name() != self.name() {
                let (store_client, client) = pool.present()?;
                let reserve = pool.resolve(&store_client, &client, &request)?;
                others.push(store_client.explain(&client, &reserve)?);
            }
        }
        Ok(explanation.with_others(others, &|pool| holds.iter().any(|held| held == pool)))
    }

    /// Returns what delays the call that an explanation is about, if it waits.
    fn delay_of(&self, explanation: &Explanation) -> Option<Delay> {
        explanation.waits_ms?;
        let tap = Standpipe::of(std::sync::Arc::clone(self.tap()));
        let seen = tap.read_snapshot(std::slice::from_ref(self)).ok()?;
        let mut tickets = seen.pools.first()?.tickets.iter();
        tickets.find(|ticket| ticket.agent == explanation.agent)?.delay.clone()
    }

    /// Returns a question that is about a call of the agent that waits already, with the other
    /// pools of that call, and the pools on which the call keeps its units meanwhile.
    fn like_the_waiting_call(&self, request: &Request) -> Result<(Request, Vec<String>), Error> {
        let mut request = request.clone();
        let agent = request.resolve(self.name(), self.dialect(), self.tap().agent())?.agent;
        let own = |status: &crate::PoolStatus| {
            let mut tickets = status.tickets.iter();
            tickets.find(|ticket| ticket.agent == agent.as_str()).cloned()
        };
        let tap = Standpipe::of(std::sync::Arc::clone(self.tap()));
        let read = |pools: &[Self]| tap.read_snapshot(pools).map(|snapshot| snapshot.pools);
        let waiting = read(std::slice::from_ref(self))?.iter().find_map(own);
        let Some(waiting) = waiting.filter(|ticket| request.is_plain() && !ticket.also.is_empty())
        else {
            return Ok((request, Vec::new()));
        };
        let others: Vec<PoolName> =
            waiting.also.iter().filter_map(|name| name.parse().ok()).collect();
        let pools: Vec<Self> = others.iter().map(|name| tap.existing_pool(name)).collect();
        let on = waiting.on.as_deref().unwrap_or(self.name().as_str());
        let holds = read(&[pools, vec![self.clone()]].concat())?;
        let holds = holds.iter().filter(|pool| {
            let is_its = |ticket: &TicketStatus| {
                ticket.holds && ticket.on.as_deref() == Some(on) && ticket.agent == waiting.agent
            };
            pool.tickets.iter().any(is_its)
        });
        let holds = holds.map(|pool| pool.pool.to_string()).collect();
        if !request.has_also() {
            request = others.iter().fold(request, |request, name| request.also(name.as_str()));
        }
        Ok((request, holds))
    }

    /// Returns when this pool would admit a call that waits on another one. `None` if that is now,
    /// or if the pool cannot be read.
    pub(crate) fn bound_of(&self, ticket: &TicketStatus) -> Option<When> {
        let cost =
            ticket.cost.iter().filter_map(|(name, units)| Some((Unit::named(name)?, *units)));
        let cost = Amounts::new(cost.collect::<Vec<_>>()).ok()?;
        let priority = match ticket.priority {
            Label::Known(priority) => Some(priority),
            Label::Unknown => None::<Priority>,
        };
        let agent = AgentName::new(&ticket.agent)?;
        let (store_client, client) = self.present().ok()?;
        let verdict = store_client.read(&client, |state, now, _| {
            let counted = without_undeclared(state, &cost, self.own_limits());
            let call = Reserve { priority, ..Reserve::new(agent.clone(), counted) };
            Verdict::of(self.name(), state, &call, now)
        });
        Some(verdict.ok()??.why()?.when())
    }
}
