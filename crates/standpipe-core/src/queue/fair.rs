//! Fair order: within a tier each agent is served in proportion to its weight, however many
//! tickets it has.
//!
//! A call gets a tag when it is queued: where its agent stands in virtual time, plus the largest
//! share of any limit that its cost takes, divided by the agent's weight. Tickets of a tier are
//! served in the order of their tags. The tag is part of the queue key, so lines, earmarks and
//! positions follow it without knowing of it; in order of arrival every tag is 0. Each tier has its
//! own virtual time, because a tier is served before the next. See
//! `docs/decisions/0027-fair-order.md`.
//!
//! Invariant: no agent's last tag lies more than one call ahead of the virtual time of its tier, so
//! idle agents gain nothing and busy ones owe nothing for longer than one call.

use alloc::vec::Vec;

use crate::bounds;
use crate::config::Priority;
use crate::config::compiled::{Constraint, ConstraintKind};
use crate::id::{AgentId, ConstraintId, RuleId};
use crate::lease::admission::Candidate;
use crate::name::AgentName;
use crate::outcome::Reason;
use crate::queue::ticket::{QueueKey, Ticket};
use crate::state::State;
use crate::unit::Amounts;

/// The distance in virtual time of a call that takes a whole limit, at weight 1. A call takes at
/// least one part of it, so weights stay exact to 1 % for calls above 10⁻⁷ of a limit.
const WHOLE: u64 = 1 << 40;

/// The bound of all tags, which every replica checks.
pub(crate) const TAGS: u64 = 1 << 63;
/// When the virtual time of a tier reaches this, all tags of the tier are lowered together, so that
/// they never wrap.
const LOWER_AT: u64 = 1 << 62;
/// By how much. What lies further back than this counts as equally far back.
const LOWER_BY: u64 = 1 << 61;
/// How far ahead of virtual time a tag can lie. Only the tickets of one agent reach that far.
const AHEAD: u64 = 1 << 60;

const _: () = assert!(AHEAD / WHOLE > 2 * bounds::TICKETS as u64, "all tickets have room");
const _: () = assert!(LOWER_AT + 4 * AHEAD <= TAGS, "one event moves time by less than that");

/// The place of a call in virtual time: it begins at `start` and its tag is the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FairPlace {
    pub(crate) start: u64,
    pub(crate) tag: u64,
}

impl State {
    /// The place of a new call in a tier; zero in order of arrival.
    pub(crate) fn fair_place(
        &self,
        tier: Priority,
        agent: Option<AgentId>,
        rule: Option<RuleId>,
        cost: &Amounts,
    ) -> FairPlace {
        if !self.index.compiled.fair {
            return FairPlace::default();
        }
        let own = agent.map_or(0, |agent| self.last_tag(agent, tier));
        let most = self.facts.virtual_time[tier as usize].saturating_add(AHEAD);
        let start = self.virtual_time(tier, cost).max(own).min(most);
        let weight = rule.map_or(1, |rule| self.index.compiled.agents[rule].weight);
        let length = self.largest_share(cost).div_ceil(u64::from(weight.max(1)));
        FairPlace { start, tag: start.saturating_add(length) }
    }

    /// The largest share of any limit that a cost takes.
    fn largest_share(&self, cost: &Amounts) -> u64 {
        let share = |constraint: &Constraint| {
            let spec = &constraint.spec;
            let whole = u128::from(spec.effective.max(spec.refill).max(1));
            let share = (u128::from(constraint.need(cost)) * u128::from(WHOLE)).div_ceil(whole);
            u64::try_from(share).unwrap_or(WHOLE).min(WHOLE)
        };
        let limits = self.index.compiled.constraints.iter();
        let limits = limits.filter(|constraint| constraint.kind != ConstraintKind::Gate);
        // Where calls wait for the gate only, each counts the same.
        limits.map(share).max().filter(|share| *share > 0).unwrap_or(WHOLE / 1_024)
    }

    /// The virtual time of a tier, as far as a cost is concerned. A call that waits for a limit
    /// which others do not need may be passed by them for long: who joins it there begins where it
    /// does.
    fn virtual_time(&self, tier: Priority, cost: &Amounts) -> u64 {
        let first = self.first_start(tier, cost);
        let now = self.facts.virtual_time[tier as usize];
        first.map_or(now, |first| first.min(now))
    }

    /// The earliest start among the first tickets of a tier on each constraint that a cost takes.
    fn first_start(&self, tier: Priority, cost: &Amounts) -> Option<u64> {
        let constraints = self.index.compiled.constraints.rows();
        let taken = constraints.filter(|(_, constraint)| constraint.need(cost) > 0);
        let first = taken.filter_map(|(at, _)| {
            let heads = self.competing(at, tier).map(|mut all| all.next());
            heads.into_iter().flatten().min_by_key(|(queue_key, _)| *queue_key)
        });
        first.map(|(_, ticket)| ticket.start).min()
    }

    /// The tickets of a tier in the line of a constraint, and those with units earmarked there.
    fn competing(
        &self,
        at: ConstraintId,
        tier: Priority,
    ) -> [impl Iterator<Item = (QueueKey, &Ticket)>; 2] {
        let sets = [&self.index.lines[at], &self.index.earmarks[at].holders];
        sets.map(|set| {
            let tickets = set.range(QueueKey::first_of(tier)..=QueueKey::last_of(tier));
            tickets.filter_map(|key| Some((*key, self.facts.tickets.get(key)?)))
        })
    }

    /// The greatest tag of an agent in a tier: of its calls that were admitted beside others, and
    /// of its tickets. A ticket that ended without a lease leaves none.
    fn last_tag(&self, agent: AgentId, tier: Priority) -> u64 {
        let all = (agent, QueueKey::first_of(tier))..=(agent, QueueKey::last_of(tier));
        let waiting = self.index.tickets_by_agent.range(all).next_back();
        let admitted = self.facts.agents[agent].tags[tier as usize];
        waiting.map_or(admitted, |(_, queue_key)| admitted.max(queue_key.tag))
    }

    /// Records that a call was admitted. It counts for its agent, with or without a ticket, if
    /// another agent waits for something that it takes; otherwise it takes nothing from others.
    pub(crate) fn count_fair(
        &mut self,
        agent: AgentId,
        tier: Priority,
        place: FairPlace,
        cost: &Amounts,
    ) {
        if !self.index.compiled.fair {
            return;
        }
        if self.has_competitor(agent, tier, cost) {
            let last = &mut self.facts.agents[agent].tags[tier as usize];
            *last = place.tag.max(*last);
        }
        self.pass_virtual_time(tier, place.start, cost);
        self.lower_tags(tier);
    }

    fn has_competitor(&self, agent: AgentId, tier: Priority, cost: &Amounts) -> bool {
        let constraints = self.index.compiled.constraints.rows();
        let mut taken = constraints.filter(|(_, constraint)| constraint.need(cost) > 0);
        taken.any(|(at, _)| {
            let mut sets = self.competing(at, tier).into_iter();
            sets.any(|all| all.take(bounds::FAIR_LOOKS).any(|(_, own)| own.agent != agent))
        })
    }

    /// Moves virtual time on, but not past those who still wait for what a cost takes: a call that
    /// passed them, for its floor, does not hold others back.
    fn pass_virtual_time(&mut self, tier: Priority, to: u64, cost: &Amounts) {
        let first = self.first_start(tier, cost).unwrap_or(to);
        let now = &mut self.facts.virtual_time[tier as usize];
        *now = to.min(first).max(*now);
    }

    /// Records that a ticket ended without a lease: virtual time passes it, so that the tickets
    /// behind it are not charged for it.
    pub(crate) fn pass_ended_ticket(&mut self, queue_key: QueueKey, ticket: &Ticket) {
        if self.index.compiled.fair {
            self.pass_virtual_time(queue_key.tier, queue_key.tag, &ticket.call.cost);
        }
    }

    /// Lowers all tags of a tier by the same amount, if it is time. Their order stays, but the keys
    /// of tickets change.
    pub(crate) fn lower_tags(&mut self, tier: Priority) {
        if self.facts.virtual_time[tier as usize] < LOWER_AT {
            return;
        }
        let lower = |tag: &mut u64| *tag = tag.saturating_sub(LOWER_BY);
        lower(&mut self.facts.virtual_time[tier as usize]);
        for agent in &mut self.facts.agents {
            lower(&mut agent.tags[tier as usize]);
            if let Some(promoted) = agent.promoted.as_mut().filter(|_| tier == Priority::Standard) {
                lower(&mut promoted.tag);
            }
        }
        let range = QueueKey::first_of(tier)..=QueueKey::last_of(tier);
        let keys: Vec<QueueKey> = self.facts.tickets.range(range).map(|(key, _)| *key).collect();
        for mut queue_key in keys {
            let Some(mut ticket) = self.remove_ticket(queue_key) else { continue };
            lower(&mut ticket.start);
            lower(&mut queue_key.tag);
            self.insert_ticket(queue_key, ticket);
        }
    }

    /// Gives every ticket the tag that it would have if all had been queued now, in their order:
    /// the configuration changed from one order to the other.
    pub(crate) fn retag(&mut self) {
        let mut keys: Vec<QueueKey> = self.facts.tickets.keys().copied().collect();
        keys.sort_by_key(|queue_key| (queue_key.tier, queue_key.arrival));
        for QueueKey { tier, tag, arrival } in keys {
            let Some(mut ticket) = self.remove_ticket(QueueKey { tier, tag, arrival }) else {
                continue;
            };
            let rule = self.index.agent_loads[ticket.agent].rule;
            let place = self.fair_place(tier, Some(ticket.agent), rule, &ticket.call.cost);
            ticket.start = place.start;
            let promoted = self.facts.agents[ticket.agent].promoted.as_mut();
            if let Some(promoted) = promoted.filter(|known| known.ticket == Some(ticket.key)) {
                promoted.tag = place.tag;
            }
            self.insert_ticket(QueueKey { tier, tag: place.tag, arrival }, ticket);
        }
    }

    /// The agent that fair order serves before a candidate on a constraint, if it is another one.
    pub(crate) fn behind(
        &self,
        candidate: &Candidate<'_>,
        constraint: ConstraintId,
        reason: Reason,
    ) -> Option<AgentName> {
        let ordered = self.index.compiled.fair && reason == Reason::Order;
        let first = self.index.lines[constraint].first().filter(|_| ordered)?;
        let agent = self.facts.tickets.get(first)?.agent;
        (Some(agent) != candidate.agent).then(|| self.facts.agents[agent].name.clone())
    }

    /// The place of a candidate. A promoted agent keeps the tag of its promotion.
    pub(crate) const fn place_of(candidate: &Candidate<'_>) -> FairPlace {
        FairPlace { start: candidate.start, tag: candidate.queue_key.tag }
    }
}
