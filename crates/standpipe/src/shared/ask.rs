//! Questions that change nothing, and the beats that keep leases alive.

use std::collections::BTreeMap;
use std::sync::Arc;

use standpipe_core::{Action, AgentName, Decision, LeaseOwner, Queued, Reason, Refusal, Reserve};
use standpipe_core::{Amounts, Priority, State};

use super::Shared;
use crate::advice::Advice;
use crate::dead;
use crate::desk::{Counter, Desk};
use crate::error::Error;
use crate::explain::{Explanation, No, Step, Verdict};
use crate::moment::Now;
use crate::refused::{Refused, limit_text};
use crate::status::PoolStatus;
use crate::when::When;

impl Shared {
    /// Reads what others did, and answers from the pool as it is now.
    pub(crate) fn read<T>(
        self: &Arc<Self>,
        desk: &Desk,
        answer: impl FnOnce(&State, &Now, &Counter) -> T,
    ) -> Result<T, Error> {
        self.keeper.stand_in(self);
        let mut counter = desk.counter();
        counter.member.refresh()?;
        let (counter, now) = (&*counter, counter.now());
        let state = counter.member.replica().state().at(now.store);
        Ok(answer(&state, &now, counter))
    }

    /// Looks for something in what this process knows already, and reads what others did only when
    /// it is not there. For what does not change by time.
    pub(crate) fn find<T>(
        &self,
        desk: &Desk,
        look: impl Fn(&State) -> Option<T>,
    ) -> Result<Option<T>, Error> {
        let mut counter = desk.counter();
        if let Some(found) = look(counter.member.replica().state()) {
            return Ok(Some(found));
        }
        counter.member.refresh()?;
        Ok(look(counter.member.replica().state()))
    }

    /// [`Shared::read`] without the dead. That they are is only said if it can be: who looks at a
    /// pool does not wait for it.
    fn read_living<T>(
        self: &Arc<Self>,
        desk: &Desk,
        answer: impl FnOnce(&State, &Now, &Counter) -> T,
    ) -> Result<T, Error> {
        // While the store is away only this process is there.
        if !desk.is_substitute() {
            let mut counter = desk.counter();
            counter.refresh()?;
            dead::bury(&mut counter, &**self.store());
        }
        self.read(desk, answer)
    }

    pub(crate) fn peek(self: &Arc<Self>, desk: &Desk, reserve: &Reserve) -> Result<Verdict, Error> {
        self.read_living(desk, |state, now, _| verdict(desk, state, reserve, now))?
    }

    pub(crate) fn explain(
        self: &Arc<Self>,
        desk: &Desk,
        reserve: &Reserve,
    ) -> Result<Explanation, Error> {
        self.read_living(desk, |state, now, _| {
            let verdict = verdict(desk, state, reserve, now)?;
            let judged = state.admission_steps(reserve, now.store);
            Ok(Explanation {
                pool: desk.pool().to_string(),
                agent: reserve.agent.to_string(),
                priority: tier_word(judged.tier),
                cost: figures(&judged.cost),
                zone: state.zone().as_str(),
                breaker: state.breaker(now.store).as_str(),
                advice: state.advise(reserve, now.store).as_ref().map(Advice::of),
                verdict: verdict.as_str(),
                why: verdict.why().cloned(),
                steps: steps(&judged.refusals, now),
                limits: PoolStatus::limits_of(state, now),
                waiting: PoolStatus::waiting(state, &reserve.agent, now, &**self.store()),
            })
        })?
    }

    pub(crate) fn status(
        self: &Arc<Self>,
        desk: &Desk,
        provider: Option<String>,
    ) -> Result<PoolStatus, Error> {
        if let Some(place) = desk.cut_off() {
            let mut status = self.status(&place.desk, provider)?;
            status.cut_off = Some(place.status());
            return Ok(status);
        }
        self.read_living(desk, |state, now, counter| {
            let replica = counter.member.replica();
            let mut status = PoolStatus::of(desk.pool(), state, now, &**self.store());
            status.provider = provider;
            status.position = replica.position().number;
            status.skipped = replica.skipped();
            status
        })
    }

    /// Extends every lease of an agent that lives by itself.
    pub(crate) fn beat_for(
        self: &Arc<Self>,
        desk: &Desk,
        agent: &AgentName,
    ) -> Result<usize, Error> {
        let beats: Vec<Action> = self.read(desk, |state, _, _| {
            let facts = state.facts();
            let leases = facts.leases.iter().filter(|(_, lease)| {
                let its = facts.agents.get(usize::from(lease.agent));
                let alone = matches!(lease.owner, LeaseOwner::Ttl { .. });
                alone && its.is_some_and(|known| known.name == *agent)
            });
            let beat = |key| Action::Heartbeat { lease: Some(key), ttl: None };
            leases.map(|(key, _)| beat(*key)).collect()
        })?;
        let count = beats.len();
        if count > 0 {
            self.settle(desk, beats)?;
        }
        Ok(count)
    }
}

fn verdict(desk: &Desk, state: &State, reserve: &Reserve, now: &Now) -> Result<Verdict, Error> {
    let refused = |refusal: &Refusal| Box::new(Refused::new(desk.pool(), refusal, now));
    Ok(match state.peek(reserve, now.store) {
        Decision::Admit(grant) => {
            Verdict::Admitted { instead_of: grant.instead_of.as_ref().map(refused) }
        }
        Decision::Wait(Queued { refusal, position, .. }) => {
            let mut waits = refused(&refusal);
            waits.position = Some(position);
            Verdict::Waits(waits)
        }
        Decision::Refuse(refusal) if has_no_limits(&refusal) => {
            return Err(Error::NoLimits { pool: desk.pool().clone() });
        }
        Decision::Refuse(refusal) => Verdict::Refused(refused(&refusal)),
    })
}

/// A pool that was never told its limits says so with a limit that has no name.
pub(crate) fn has_no_limits(refusal: &Refusal) -> bool {
    refusal.reason == Reason::Never && refusal.limit.is_none()
}

fn steps(refusals: &[Refusal], now: &Now) -> Vec<Step> {
    let noes = |reasons: &[Reason]| {
        let named = refusals.iter().filter(|refusal| reasons.contains(&refusal.reason));
        named.map(|refusal| no(refusal, now)).collect()
    };
    let own = [Reason::Pause, Reason::ReturnWindow, Reason::Zone, Reason::Hold];
    let room = [
        Reason::Limit,
        Reason::Floor,
        Reason::Pace,
        Reason::Probe,
        Reason::Sequential,
        Reason::Learning,
    ];
    let never = [Reason::Never, Reason::RetryBudget];
    let names = [
        ("terminal", "did the provider say stop for good?", noes(&[Reason::Terminal])),
        ("never", "is it larger than a limit, or one retry too many?", noes(&never)),
        ("not yet", "does anything of its own hold it back?", noes(&own)),
        (
            "not these units",
            "does it give way, or is its cap reached?",
            noes(&[Reason::Yield, Reason::Cap]),
        ),
        ("not before them", "did somebody come first?", noes(&[Reason::Order])),
        ("not now", "is there room on every limit?", noes(&room)),
    ];
    let numbered = (1..).zip(names);
    numbered.map(|(number, (name, question, noes))| Step { number, name, question, noes }).collect()
}

fn no(refusal: &Refusal, now: &Now) -> No {
    No {
        reason: refusal.reason.as_str(),
        limit: refusal.limit.as_ref().map(limit_text),
        short_by: refusal.short_by,
        when: When::of(refusal, now),
    }
}

/// Figures by the names of their units.
pub(crate) fn figures(amounts: &Amounts) -> BTreeMap<String, u64> {
    amounts.iter().map(|(unit, amount)| (unit.name().to_owned(), amount)).collect()
}

/// The word for a tier, the same on every face.
pub(crate) const fn tier_word(tier: Priority) -> &'static str {
    match tier {
        Priority::Critical => "critical",
        Priority::Standard => "standard",
        Priority::Background => "background",
    }
}
