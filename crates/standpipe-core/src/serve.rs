//! How tickets move: into lines, to the front, to due, and back when somebody stands before them.
//!
//! A ticket stands in one line at a time. When room comes to the head of a line its units are set
//! aside and it moves on to what it still lacks; lacking nothing it is due. What is set aside is
//! withheld only from those behind. In lines everybody goes by tier and arrival; the owner of a
//! floor passes only when it can pass everywhere at once.
//!
//! Invariant, after [`State::serve`]: on no lane is more set aside than is free (but for one call
//! that passes alone), and no head of a line could be given what it stands for.

use alloc::vec::Vec;

use crate::bounds;
use crate::judge::{Asker, Lack, Standing};
use crate::outcome::{Notice, Reason};
use crate::state::{State, lanes_of};
use crate::ticket::{Phase, Place, Ticket};
use crate::time::{Instant, Span};

impl State {
    /// Gives what came free to those who stand in line, in order, until nothing moves.
    pub(crate) fn serve(&mut self, now: Instant) {
        self.look_at_late_ones(now);
        loop {
            while self.index.dirty != 0 {
                let lane = self.index.dirty.trailing_zeros() as usize;
                self.index.dirty &= !(1 << lane);
                self.serve_lane(lane, now);
            }
            let Some(owner) = self.owner_who_passes(now) else { break };
            self.make_due(owner, now);
        }
        self.wake_those_who_come_earlier();
    }

    fn serve_lane(&mut self, lane: usize, now: Instant) {
        self.take_back_excess(lane, now);
        while let Some(head) = self.index.lines[lane].first().copied() {
            if self.ticket_lack(head, lane, now).is_none() {
                self.set_aside(head, lane);
                self.move_on(head, now);
                self.take_back_excess(lane, now);
            } else if self.is_too_late(head, now) {
                self.step_out(head);
                self.set_phase(head, Phase::TooLate);
            } else {
                self.take_back_behind(head, lane, now);
                return;
            }
        }
    }

    /// Somebody in line whose agent's floor lets it pass, so that it lacks nothing at all.
    fn owner_who_passes(&self, now: Instant) -> Option<Place> {
        let passes = |place: &Place| {
            let Some(ticket) = self.facts.tickets.get(place) else { return false };
            let asker = Asker { passes: true, ..self.asker_of(*place, ticket) };
            let owned = self.index.floor_owners.contains(&ticket.agent);
            let lacks =
                |lane: usize| ticket.aside & (1 << lane) == 0 && self.says_no(&asker, lane, now);
            let lanes = 0..self.index.lines.len();
            owned && matches!(ticket.phase, Phase::Line(_)) && !lanes.into_iter().any(lacks)
        };
        let lanes = 0..self.index.lines.len();
        let heads = lanes.clone().filter_map(|lane| self.index.lines[lane].first().copied());
        let others = lanes.flat_map(|lane| self.covered_in_line(lane, now));
        heads.chain(others).filter(passes).min()
    }

    /// Those in the line of a lane whom their agent's floor may let pass there. Whoever else is in
    /// it comes after its head.
    fn covered_in_line(&self, lane: usize, now: Instant) -> impl Iterator<Item = Place> {
        let (plan, tally) = (&self.index.plan.lanes[lane], &self.facts.lanes[lane]);
        let gives = tally.free_at(now, &plan.spec) > 0 || tally.probe_open_at(now, &plan.spec);
        let line = &self.index.lines[lane];
        let open = plan.floored && gives && !line.is_empty();
        let owners = self.index.floor_owners.iter().copied().filter(move |_| open);
        let unfilled = owners.filter(move |owner| self.unfilled(*owner, lane, now) > 0);
        let its = unfilled.flat_map(|owner| self.tickets_of(owner));
        its.filter(|place| line.contains(place))
    }

    /// Whether a ticket can no longer be served before its deadline.
    fn is_too_late(&self, place: Place, now: Instant) -> bool {
        let Some(ticket) = self.facts.tickets.get(&place) else { return false };
        let instant = self.admitted_at(&self.asker_of(place, ticket), now);
        instant.is_none_or(|at| at > ticket.deadline)
    }

    fn ticket_lack(&self, place: Place, lane: usize, now: Instant) -> Option<Lack> {
        let ticket = self.facts.tickets.get(&place)?;
        self.lack(&self.asker_of(place, ticket), lane, now)
    }

    pub(crate) fn asker_of<'a>(&self, place: Place, ticket: &'a Ticket) -> Asker<'a> {
        let rule = self.index.loads[usize::from(ticket.agent)].rule;
        let passes = matches!(ticket.phase, Phase::Due(_));
        let (cost, returns, holds) = (&ticket.call.cost, ticket.returns, ticket.holds);
        Asker { agent: Some(ticket.agent), rule, cost, place, passes, returns, holds }
    }

    /// A ticket that is nowhere yet, or again, finds its place.
    pub(crate) fn stand(&mut self, place: Place, now: Instant) {
        self.step_out(place);
        let Some(ticket) = self.facts.tickets.get(&place) else { return };
        let asker = self.asker_of(place, ticket);
        if let Some(refusal) = self.not_yet(&asker, now) {
            let until = self.own_reason_ends(&asker, refusal.reason, now);
            self.set_phase(place, Phase::Held { reason: refusal.reason, until });
            return;
        }
        if self.is_too_late(place, now) {
            self.set_phase(place, Phase::TooLate);
        } else {
            self.move_on(place, now);
        }
    }

    /// When the reason of its own that holds a ticket back is over.
    fn own_reason_ends(&self, asker: &Asker<'_>, reason: Reason, now: Instant) -> Instant {
        match (reason, self.facts.pause) {
            (Reason::Pause, Some(until)) => until,
            (Reason::ReturnWindow, _) => asker.returns,
            (Reason::Hold, _) => asker.holds,
            (Reason::Zone | Reason::Yield, _) => {
                self.light_lets_pass(asker, now).max(now + Span(1))
            }
            _ => self.cap_fits(asker, now).max(now + Span(1)),
        }
    }

    /// To the next line, or to due.
    pub(crate) fn move_on(&mut self, place: Place, now: Instant) {
        let Some(ticket) = self.facts.tickets.get(&place) else { return };
        match self.line_for(&self.asker_of(place, ticket), ticket.aside, now) {
            Some(lane) => {
                self.set_phase(place, Phase::Line(u8::try_from(lane).unwrap_or(u8::MAX)));
                self.mark_dirty(lane);
            }
            None => self.make_due(place, now),
        }
    }

    /// It lacks nothing: everything is set aside for it.
    fn make_due(&mut self, place: Place, now: Instant) {
        let Some(ticket) = self.facts.tickets.get(&place) else { return };
        let (key, aside) = (ticket.key, ticket.aside);
        for lane in 0..self.index.plan.lanes.len() {
            if aside & (1 << lane) == 0 {
                self.set_aside(place, lane);
                self.mark_dirty(lane);
            }
        }
        self.set_phase(place, Phase::Due(now));
        self.news.wake.push(key);
    }

    fn set_phase(&mut self, place: Place, phase: Phase) {
        let Some(ticket) = self.facts.tickets.get_mut(&place) else { return };
        self.index.remove_phase(place, ticket);
        ticket.phase = phase;
        self.index.add_phase(place, ticket);
    }

    fn set_aside(&mut self, place: Place, lane: usize) {
        let Some(ticket) = self.facts.tickets.get_mut(&place) else { return };
        let need = self.index.plan.lanes[lane].need(&ticket.call.cost);
        if need > 0 && ticket.aside & (1 << lane) == 0 {
            ticket.aside |= 1 << lane;
            self.index.asides[lane].by_tier[place.tier as usize] += need;
            self.index.asides[lane].holders.insert(place);
        }
    }

    fn give_up_aside(&mut self, place: Place, lane: usize) {
        let Some(ticket) = self.facts.tickets.get_mut(&place) else { return };
        if ticket.aside & (1 << lane) != 0 {
            ticket.aside &= !(1 << lane);
            let need = self.index.plan.lanes[lane].need(&ticket.call.cost);
            self.index.asides[lane].by_tier[place.tier as usize] -= need;
            self.index.asides[lane].holders.remove(&place);
            self.mark_dirty(lane);
        }
    }

    /// Out of every line, nothing set aside: it blocks nobody.
    pub(crate) fn step_out(&mut self, place: Place) {
        let Some(ticket) = self.facts.tickets.get(&place) else { return };
        if let Phase::Line(lane) = ticket.phase {
            self.mark_dirty(usize::from(lane));
        }
        let aside = self.facts.tickets[&place].aside;
        for lane in lanes_of(aside) {
            self.give_up_aside(place, lane);
        }
        self.set_phase(place, Phase::Lapsed);
    }

    /// Whoever stands before takes what was set aside for those behind: from the last backwards.
    fn take_back_excess(&mut self, lane: usize, now: Instant) {
        let spec = &self.index.plan.lanes[lane].spec;
        let tally = &self.facts.lanes[lane];
        let free = tally.free_at(now, spec);
        let alone = tally.is_empty_at(now, spec) || tally.probe_open_at(now, spec);
        loop {
            let aside = &self.index.asides[lane];
            let all: u64 = aside.by_tier.iter().sum();
            let passes_alone = alone && aside.holders.len() == 1;
            if all <= free || passes_alone {
                return;
            }
            let Some(last) = self.last_holder(lane, now) else { return };
            self.take_back(last, lane);
        }
    }

    /// While somebody stands in a line, nobody behind has units of it set aside.
    fn take_back_behind(&mut self, head: Place, lane: usize, now: Instant) {
        while let Some(last) = self.last_holder(lane, now) {
            if self.standing_of_ticket(last, lane, now) < Standing::of(head) {
                return;
            }
            self.take_back(last, lane);
        }
    }

    /// A ticket gives up what it had of a lane; was it due, it stands in line again.
    fn take_back(&mut self, place: Place, lane: usize) {
        self.give_up_aside(place, lane);
        if let Some(Phase::Due(_)) = self.facts.tickets.get(&place).map(|ticket| ticket.phase) {
            self.set_phase(place, Phase::Line(u8::try_from(lane).unwrap_or(u8::MAX)));
        }
    }

    /// Who of those with units set aside on a lane stands behind all others there.
    fn last_holder(&self, lane: usize, now: Instant) -> Option<Place> {
        let holders = &self.index.asides[lane].holders;
        if self.index.plan.lanes[lane].floored {
            // In the lowest tier, who has a floor to pass with stands before who has not.
            let last = holders.last()?;
            let mut tier = holders.range(Place::first_of(last.tier)..).rev();
            let behind = |place: &&Place| !self.standing_of_ticket(**place, lane, now).covered;
            tier.find(behind).or(Some(last)).copied()
        } else {
            holders.last().copied()
        }
    }

    /// Units came back: some of those who had no hope before their deadline may have now.
    fn look_at_late_ones(&mut self, now: Instant) {
        if self.index.returned == 0 || self.index.too_late.is_empty() {
            return;
        }
        let mut after = None;
        for _ in 0..bounds::TOO_LATE_LOOKS {
            let next = match after {
                None => self.index.too_late.first().copied(),
                Some(last) => self.index.too_late.range(next_to(last)..).next().copied(),
            };
            let Some(place) = next else { return };
            self.stand(place, now);
            after = Some(place);
        }
    }

    fn wake_those_who_come_earlier(&mut self) {
        let returned = core::mem::take(&mut self.index.returned);
        // Those held back are in no line, but may now come as soon as what holds them is over.
        if returned != 0 && self.facts.pause.is_some() {
            let first = self.facts.tickets.values().take(bounds::WAKE_EARLIER);
            self.news.wake.extend(first.map(|ticket| ticket.key));
        }
        for lane in lanes_of(returned) {
            for place in self.index.lines[lane].iter().take(bounds::WAKE_EARLIER) {
                if let Some(ticket) = self.facts.tickets.get(place) {
                    self.news.wake.push(ticket.key);
                }
            }
        }
    }

    /// Everybody finds their place anew, in order: after a pause began or ended. Those who lapsed
    /// block nobody until they are claimed.
    pub(crate) fn stand_all(&mut self, now: Instant) {
        let waiting = self.facts.tickets.iter().filter(|(_, ticket)| ticket.phase != Phase::Lapsed);
        let places: Vec<Place> = waiting.map(|(place, _)| *place).collect();
        self.stand_these(&places, now);
    }

    pub(crate) fn stand_these(&mut self, places: &[Place], now: Instant) {
        for place in places {
            self.step_out(*place);
        }
        for place in places {
            self.stand(*place, now);
        }
    }

    /// Those who are meant are told at once that it is no use to wait.
    pub(crate) fn end_tickets(
        &mut self,
        why: Reason,
        now: Instant,
        meant: impl Fn(&Ticket) -> bool,
    ) {
        let tickets = self.facts.tickets.iter().filter(|(_, ticket)| meant(ticket));
        let places: Vec<Place> = tickets.map(|(place, _)| *place).collect();
        for place in places {
            self.news.wake.push(self.facts.tickets[&place].key);
            self.end_ticket(place, Some(why), now);
        }
    }

    /// A ticket is over without a lease.
    pub(crate) fn end_ticket(&mut self, place: Place, why: Option<Reason>, now: Instant) {
        self.step_out(place);
        let Some(ticket) = self.facts.tickets.remove(&place) else { return };
        self.index.remove_ticket(place, &ticket);
        self.seen_active(ticket.agent, now);
        self.tier_was_active(place.tier, now);
        self.denied_ticket_ended(ticket.agent, ticket.key, now);
        self.id_unused(ticket.agent, ticket.call.id.as_ref(), ticket.key);
        if let Some(why) = why {
            let agent = self.facts.agents[usize::from(ticket.agent)].name.clone();
            let waited = now.since(ticket.since);
            self.news.notices.push(Notice::TicketEnded { ticket: ticket.key, agent, why, waited });
        }
    }
}

const fn next_to(place: Place) -> Place {
    Place { tier: place.tier, arrival: place.arrival.saturating_add(1) }
}
