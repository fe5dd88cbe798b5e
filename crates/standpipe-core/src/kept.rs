//! What is kept on a lane for others than the asker, where it is asked often: at instants ahead,
//! and by many at once.
//!
//! Instants ahead are asked in ascending order. What time does to the owners of floors is followed
//! once, however often is asked: leases end one after the other, and when an owner goes idle is
//! worked out only when it is near.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::iter::Peekable;

use crate::agent::AgentId;
use crate::config::Priority;
use crate::judge::Asker;
use crate::lease::{Lease, Target};
use crate::plan::Meter;
use crate::state::State;
use crate::tally::Tally;
use crate::ticket::Place;
use crate::time::Instant;

type Endings<'a> = Box<dyn Iterator<Item = (Instant, &'a Lease)> + 'a>;

/// The owners of floors on a lane, as they will be.
pub(crate) struct KeptAhead<'a> {
    state: &'a State,
    lane: usize,
    /// By agent.
    owners: Vec<Owner<'a>>,
    endings: Peekable<Endings<'a>>,
}

/// One of them.
struct Owner<'a> {
    agent: AgentId,
    number: usize,
    meter: &'a Meter,
    tally: Cow<'a, Tally>,
    /// It goes idle at one of these instants or between.
    idle: (Instant, Instant),
}

impl<'a> KeptAhead<'a> {
    /// As of now. Owners with tickets count as served.
    pub(crate) fn new(state: &'a State, asker: &Asker<'_>, lane: usize) -> Self {
        let mut owners = Vec::new();
        let mut all_end = None;
        for agent in state.index.floor_owners.iter().copied() {
            let load = state.index.loads[usize::from(agent)];
            let own = Some(agent) == asker.agent || state.tier_of(agent) > asker.tier();
            if own || load.tickets > 0 {
                continue;
            }
            let Some((number, meter, tally)) = state.floor_meter(agent, lane) else { continue };
            let mut idle = (state.goes_idle(agent, lane), state.goes_idle(agent, lane));
            if load.leases > 0 {
                let all = *all_end.get_or_insert_with(|| state.all_end_between());
                let (first, last) = all.unwrap_or((Instant::NEVER, Instant::NEVER));
                let after = state.index.plan.lanes[lane].idle_after();
                idle = (idle.0.max(first + after), idle.1.max(last + after));
            }
            owners.push(Owner { agent, number, meter, tally: Cow::Borrowed(tally), idle });
        }
        let endings: Endings<'a> = Box::new(state.endings());
        Self { state, lane, owners, endings: endings.peekable() }
    }

    /// What is kept at an instant, and an instant before which no owner that is active then goes
    /// idle.
    pub(crate) fn kept_at(&mut self, at: Instant) -> (u64, Option<Instant>) {
        let (state, lane) = (self.state, self.lane);
        self.owners.retain_mut(|owner| {
            owner.come_to(at, state, lane);
            at < owner.idle.0
        });
        if self.owners.iter().any(|owner| owner.tally.held > 0) {
            self.end_leases(at);
        }
        let unfilled = |owner: &Owner<'_>| {
            owner.meter.floor.saturating_sub(owner.tally.taken_at(at, &owner.meter.spec))
        };
        let kept = self.owners.iter().map(unfilled).fold(0, u64::saturating_add);
        (kept, self.owners.iter().map(|owner| owner.idle.0).min())
    }

    /// What owners hold of leases that end by an instant is charged.
    fn end_leases(&mut self, at: Instant) {
        while let Some((ends, lease)) = self.endings.next_if(|(ends, _)| *ends <= at) {
            let found = self.owners.binary_search_by_key(&lease.agent, |owner| owner.agent);
            let Some(owner) = found.ok().and_then(|at| self.owners.get_mut(at)) else { continue };
            let units = lease.holds(Target::Meter(u8::try_from(owner.number).unwrap_or(u8::MAX)));
            if units > 0 {
                owner.tally.to_mut().holding_ends(ends, units, &owner.meter.spec);
            }
        }
    }
}

impl Owner<'_> {
    /// When it goes idle has to be known exactly once it may have.
    fn come_to(&mut self, at: Instant, state: &State, lane: usize) {
        let (first, last) = self.idle;
        if at >= last {
            self.idle = (last, last);
        } else if at >= first {
            let ends = state.last_ending_of(self.agent).unwrap_or(first);
            let exact = ends + state.index.plan.lanes[lane].idle_after();
            let exact = exact.max(state.goes_idle(self.agent, lane));
            self.idle = (exact, exact);
        }
    }
}

/// The owners of floors on a lane as they are now, for many askers.
pub(crate) struct KeptNow {
    /// What those keep for whom it does not matter who asks, by tier.
    whoever_asks: [u64; 3],
    /// By agent; none of a lane without floors.
    owners: Vec<Unfilled>,
}

/// An owner whose floor is not filled.
struct Unfilled {
    agent: AgentId,
    tier: Priority,
    units: u64,
    /// Not active but for those who come after its first ticket.
    first: Option<Place>,
    /// What is set aside for it, and where: that is withheld already from those behind.
    aside: Vec<(Place, u64)>,
}

impl KeptNow {
    pub(crate) fn new(state: &State, lane: usize, now: Instant) -> Self {
        let floored = state.index.plan.lanes[lane].floored;
        let owners = state.index.floor_owners.iter().copied().filter(|_| floored);
        let owners = owners.filter_map(|agent| {
            let units = Some(state.unfilled(agent, lane, now)).filter(|units| *units > 0)?;
            let busy = state.is_busy(agent, lane, now);
            let first = if busy { None } else { Some(state.tickets_of(agent).next()?) };
            Some(Unfilled { agent, tier: state.tier_of(agent), units, first, aside: Vec::new() })
        });
        let mut kept = Self { whoever_asks: [0; 3], owners: owners.collect() };
        for place in state.index.asides[lane].holders.iter().filter(|_| floored) {
            let Some(ticket) = state.facts.tickets.get(place) else { continue };
            let found = kept.owners.binary_search_by_key(&ticket.agent, |owner| owner.agent);
            if let Some(owner) = found.ok().and_then(|at| kept.owners.get_mut(at)) {
                owner.aside.push((*place, state.need_of_ticket(lane, *place)));
            }
        }
        for owner in kept.owners.iter().filter(|owner| owner.is_for_all()) {
            kept.whoever_asks[owner.tier as usize] += owner.units;
        }
        kept
    }

    /// The same as [`State::kept_for_others`].
    pub(crate) fn from(&self, asker: &Asker<'_>) -> u64 {
        if asker.tier() == Priority::Critical {
            return 0;
        }
        let all: u64 = self.whoever_asks[..=asker.tier() as usize].iter().sum();
        let binds = |owner: &&Unfilled| owner.tier <= asker.tier();
        let own = self.owners.iter().find(|owner| Some(owner.agent) == asker.agent);
        let own = own.filter(|owner| owner.is_for_all()).filter(binds);
        let some = self.owners.iter().filter(|owner| !owner.is_for_all()).filter(binds);
        let some = some.filter(|owner| Some(owner.agent) != asker.agent);
        let some: u64 = some.map(|owner| owner.kept_from(asker.place)).sum();
        all - own.map_or(0, |owner| owner.units) + some
    }
}

impl Unfilled {
    /// Whether it keeps the same from whoever asks.
    const fn is_for_all(&self) -> bool {
        self.first.is_none() && self.aside.is_empty()
    }

    fn kept_from(&self, place: Place) -> u64 {
        if self.first.is_some_and(|first| first >= place) {
            return 0;
        }
        let before = self.aside.iter().filter(|(at, _)| *at < place);
        self.units.saturating_sub(before.map(|(_, units)| *units).sum())
    }
}
