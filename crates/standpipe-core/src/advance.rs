//! What time alone brings, in the order in which it comes.
//!
//! Every change has its own instant, so it does not matter in how many steps time passes: advancing
//! to a moment between and then on is the same as advancing at once.

use alloc::vec::Vec;

use crate::bounds;
use crate::config::Resets;
use crate::judge::Asker;
use crate::kept::KeptNow;
use crate::outcome::{Notice, Reason, Reclaim};
use crate::state::{Index, State, Timer};
use crate::tally::{Count, Reset, ResetPhase};
use crate::ticket::{Phase, Place};
use crate::time::Instant;

impl State {
    /// Brings the ledger to `now`.
    pub(crate) fn advance(&mut self, now: Instant) {
        let mut next = self.next;
        while let Some(instant) = next.filter(|next| *next <= now) {
            self.facts.clock = instant;
            self.expire_all(instant);
            self.fire(instant);
            self.serve(instant);
            next = self.next_change(instant);
        }
        self.facts.clock = now;
        self.expire_all(now);
    }

    /// The next instant after `now` at which time alone changes something.
    pub(crate) fn next_change(&self, now: Instant) -> Option<Instant> {
        let timer = self.index.timers.first().map(|(at, _)| *at);
        let silence = self.index.heard.first().map(|(heard, _)| *heard + bounds::SILENCE);
        let terminal = self.facts.terminal.and_then(|terminal| terminal.until);
        let lanes = (0..self.index.lines.len()).filter_map(|lane| self.lane_stirs(lane, now));
        let lanes = lanes.chain(self.owners_stir(now));
        let always = [timer, silence, self.facts.pause, terminal, self.gate_stirs()];
        let foreseen = [self.light_stirs(now), self.promotion_stirs()];
        let always = always.into_iter().chain(foreseen);
        always.flatten().map(|at| at.max(now)).chain(lanes).min()
    }

    /// When time alone may give the line of a lane something.
    fn lane_stirs(&self, lane: usize, now: Instant) -> Option<Instant> {
        let head = *self.index.lines[lane].first()?;
        let ticket = self.facts.tickets.get(&head)?;
        let room = self.room_comes(&self.asker_of(head, ticket), lane, now);
        if !self.index.plan.lanes[lane].floored {
            return room;
        }
        // Floors move with the owners' own use and rest; a look at each of those instants will do.
        let ageing = self.index.floor_owners.iter().filter_map(|owner| {
            let (_, meter, tally) = self.floor_meter(*owner, lane)?;
            tally.next_room(0, now, &meter.spec)
        });
        let idle = self.index.floor_owners.iter().map(|owner| self.goes_idle(*owner, lane));
        room.into_iter().chain(ageing).chain(idle).filter(|at| *at > now).min()
    }

    /// When time alone may let the owner of a floor pass: it need not stand in the line of what it
    /// lacks.
    fn owners_stir(&self, now: Instant) -> Option<Instant> {
        let places = self.index.line_owners.iter().map(|(_, place)| *place);
        let mut standing = places.filter_map(|place| {
            let ticket = self.facts.tickets.get(&place)?;
            Some(Asker { passes: true, ..self.asker_of(place, ticket) })
        });
        let first = standing.next()?;
        let lanes = 0..self.index.plan.lanes.len();
        let rooms = lanes.clone().filter_map(|lane| self.room_comes(&first, lane, now));
        let rooms = rooms.min();
        // Only a bucket's room depends on who asks.
        let bucket = |lane: &usize| matches!(self.facts.lanes[*lane].count, Count::Bucket(_));
        let buckets = lanes.filter(bucket).map(|lane| (lane, KeptNow::new(self, lane, now)));
        let buckets: Vec<_> = buckets.collect();
        if buckets.is_empty() {
            return rooms;
        }
        let of_others = standing.flat_map(|asker| {
            let rooms = buckets.iter().filter_map(move |(lane, kept)| {
                self.room_beside(&asker, *lane, kept.from(&asker), now)
            });
            rooms.min()
        });
        rooms.into_iter().chain(of_others).min()
    }

    /// When time alone next gives a lane room that may be enough for somebody.
    pub(crate) fn room_comes(
        &self,
        asker: &Asker<'_>,
        lane: usize,
        now: Instant,
    ) -> Option<Instant> {
        self.room_beside(asker, lane, self.kept_for_others(asker, lane, now), now)
    }

    fn room_beside(
        &self,
        asker: &Asker<'_>,
        lane: usize,
        kept: u64,
        now: Instant,
    ) -> Option<Instant> {
        let plan = &self.index.plan.lanes[lane];
        let need = plan.need(asker.cost);
        let before = self.aside_before(lane, self.standing(asker, lane, need, now), now);
        let want = need.saturating_add(before).saturating_add(kept);
        self.facts.lanes[lane].next_room(want, now, &plan.spec)
    }

    fn expire_all(&mut self, now: Instant) {
        for (tally, lane) in self.facts.lanes.iter_mut().zip(&self.index.plan.lanes) {
            tally.expire(now, &lane.spec);
        }
        for agent in self.index.metered.iter().map(|agent| usize::from(*agent)) {
            let rule = self.index.loads[agent].rule.map_or(0, usize::from);
            let meters = &self.index.plan.agents[rule].meters;
            for (tally, meter) in self.facts.agents[agent].meters.iter_mut().zip(meters) {
                tally.expire(now, &meter.spec);
            }
        }
        self.forget_old_ids(now);
        self.forget_old_retries(now);
    }

    /// Everything that happens at exactly this instant.
    fn fire(&mut self, now: Instant) {
        while let Some((at, timer)) = self.index.timers.first().copied() {
            if at > now {
                break;
            }
            self.index.timers.pop_first();
            match timer {
                Timer::LeaseEnds(key) => self.reclaim(key, Reclaim::Expired, now),
                Timer::TicketEnds(place) => self.end_ticket(place, Some(Reason::Deadline), now),
                Timer::TicketStirs(place) => self.stir(place, now),
                Timer::ProviderResets(lane) => self.provider_resets(usize::from(lane), now),
            }
        }
        while let Some((heard, session)) = self.index.heard.first().copied() {
            if heard + bounds::SILENCE > now {
                break;
            }
            self.end_session(session, now);
            self.forget_session(session);
        }
        self.end_pause(now);
        self.tend_gate(now);
        self.promote_all(now);
        self.mind_the_light(now);
        // Room may have come with age alone: all lines are looked at.
        for lane in 0..self.index.lines.len() {
            self.mark_dirty(lane);
        }
    }

    /// A due ticket that nobody claimed lapses; one that was held back finds its place.
    fn stir(&mut self, place: Place, now: Instant) {
        match self.facts.tickets.get(&place).map(|ticket| ticket.phase) {
            Some(Phase::Due(_)) => self.step_out(place),
            Some(_) => self.stand(place, now),
            None => {}
        }
    }

    fn end_pause(&mut self, now: Instant) {
        if self.facts.pause.is_some_and(|until| until <= now) {
            self.come_back(now);
        }
        let terminal = self.facts.terminal.and_then(|terminal| terminal.until);
        if terminal.is_some_and(|until| until <= now) {
            self.facts.terminal = None;
            self.news.notices.push(Notice::Resumed);
        }
    }

    /// The announced end of the provider's window: calls under way now may count in the next one.
    fn provider_resets(&mut self, lane: usize, _now: Instant) {
        let carried = self.charged_in_flight(lane);
        if let Some(Reset { phase: phase @ ResetPhase::Announced, .. }) =
            &mut self.facts.lanes[lane].reset
        {
            *phase = ResetPhase::Passed { carried };
        }
        self.mark_dirty(lane);
    }
}

impl Index {
    /// Remembers to look when the provider's window ends.
    pub(crate) fn watch_reset(&mut self, lane: usize, reset: &Reset) {
        let counts = self.plan.lanes[lane].resets == Resets::Provider;
        if counts && reset.phase == ResetPhase::Announced {
            let lane = u8::try_from(lane).unwrap_or(u8::MAX);
            self.timers.insert((reset.at, Timer::ProviderResets(lane)));
        }
    }
}
