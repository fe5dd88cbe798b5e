//! Coming back after a pause without a herd: one call first, then tier after tier, each ticket at
//! an instant of its own.
//!
//! Who waits through the pause is spread over its tier's window in order. Who comes when the pause
//! is over goes behind them, never before its tier's window.

use crate::config::Priority;
use crate::judge::Asker;
use crate::mix::mix;
use crate::outcome::{Notice, Reason};
use crate::policy::{ReturnWindows, Stretch};
use crate::state::State;
use crate::ticket::Place;
use crate::time::{Instant, Span};
use crate::trouble::{Probe, Ramp, Trouble};

/// Others follow the first call after so long, if its answer is not known before.
pub(crate) const PROBE: Span = Span::secs(1);

/// Newcomers share a window as if at least so many came.
const CROWD: usize = 32;

/// A rate is halved so often at most: a 64th is slow enough for anybody.
const MOST_HALVINGS: u8 = 6;

impl State {
    pub(crate) fn windows(&self) -> Option<ReturnWindows> {
        self.facts.config.as_ref()?.policy.comeback
    }

    /// When nothing of its own holds a call back any more: pause, return window, hold.
    pub(crate) fn own_reasons_end(&self, asker: &Asker<'_>, now: Instant) -> Instant {
        let returns = match (self.facts.pause, self.windows()) {
            (Some(end), Some(windows)) => self.returns_at(asker.place, end, &windows),
            (Some(end), None) => end,
            (None, _) => asker.returns,
        };
        now.max(returns).max(asker.holds)
    }

    /// When a place comes back from a pause that ends then, as the queue stands.
    fn returns_at(&self, place: Place, end: Instant, windows: &ReturnWindows) -> Instant {
        let own = &self.index.order[place.tier as usize];
        let before = own.partition_point(|arrival| *arrival < place.arrival);
        let stretch = windows.of(place.tier);
        if place.arrival != u64::MAX {
            let there = own.get(before) == Some(&place.arrival);
            let all = own.len() + usize::from(!there);
            return spread(end, stretch, before, all, place.arrival);
        }
        // Without a ticket it comes behind all who have one.
        match own.back() {
            Some(last) => {
                let last = spread(end, stretch, own.len() - 1, own.len(), *last);
                last + self.distance(place.tier, stretch)
            }
            None => end + stretch.from,
        }
    }

    /// The pause is over by itself: everybody gets an instant to come back at.
    pub(crate) fn come_back(&mut self, end: Instant) {
        self.count_pause(end);
        self.facts.pause = None;
        self.news.notices.push(Notice::Resumed);
        if let Some(windows) = self.windows() {
            for tier in Priority::ALL {
                self.facts.trouble.behind[tier as usize] =
                    self.returns_at(Place::last_of(tier), end, &windows);
            }
            for (place, ticket) in &mut self.facts.tickets {
                let own = &self.index.order[place.tier as usize];
                let before = own.partition_point(|arrival| *arrival < place.arrival);
                let stretch = windows.of(place.tier);
                ticket.returns = spread(end, stretch, before, own.len(), place.arrival);
            }
            self.facts.trouble.ended = Some(end);
            self.facts.trouble.probe = Probe::Wanted;
            self.set_gate();
            self.turn_away_those_too_late(Reason::ReturnWindow, end);
        }
        self.stand_all(end);
    }

    /// The gate has opened. Of those who stood at it the first goes now, and whoever comes after
    /// keeps the distance it has when coming back from a pause: else all who had to wait for one
    /// slow answer would go in the same instant.
    pub(crate) fn scatter(&mut self, now: Instant) {
        let (Some(windows), Some(gate)) = (self.windows(), self.index.plan.gate) else { return };
        if self.index.lines[gate].len() < 2 {
            return;
        }
        let mut last = None;
        for (place, ticket) in &mut self.facts.tickets {
            let stands = self.index.lines[gate].contains(place);
            if !stands && ticket.returns <= now {
                // It waits for something else.
                continue;
            }
            let Stretch { from, to } = windows.of(place.tier);
            let all = self.index.order[place.tier as usize].len() as u64;
            let gap = Span(to.0.saturating_sub(from.0) / all.max(1));
            let at = ticket.returns.max(last.map_or(now, |last| last + gap));
            last = Some(at);
            ticket.returns = at;
            let behind = &mut self.facts.trouble.behind[place.tier as usize];
            *behind = at.max(*behind);
            if stands {
                self.news.wake.push(ticket.key);
            }
        }
        self.turn_away_those_too_late(Reason::ReturnWindow, now);
        self.stand_all(now);
    }

    /// Somebody of this tier was let in or got its instant while the windows count: whoever comes
    /// next keeps a distance, or all who come then would come together.
    pub(crate) fn keep_distance(&mut self, tier: Priority, from: Instant) {
        let (Some(ended), Some(windows)) = (self.facts.trouble.ended, self.windows()) else {
            return;
        };
        let window = windows.of(tier);
        // Who has its instant already keeps its distance also beyond the window.
        if from >= ended + window.to && from <= self.facts.clock {
            return;
        }
        let next = from + self.distance(tier, window);
        let behind = &mut self.facts.trouble.behind[tier as usize];
        *behind = (*behind).max(next);
    }

    /// How far apart those of a tier come who have no place of their own in its window.
    fn distance(&self, tier: Priority, window: Stretch) -> Span {
        let width = window.to.0.saturating_sub(window.from.0);
        let many = self.index.order[tier as usize].len().max(CROWD);
        Span(width / many as u64)
    }

    /// Everything that a refusal left behind is lifted; what was learned of limits stays.
    pub(crate) fn lift(&mut self, now: Instant) {
        let trouble = core::mem::take(&mut self.facts.trouble);
        self.facts.trouble = Trouble {
            began: trouble.began,
            bears: trouble.bears,
            told: trouble.told,
            courage: trouble.courage,
            admissions: trouble.admissions,
            retries: trouble.retries,
            ..Trouble::default()
        };
        for ticket in self.facts.tickets.values_mut() {
            ticket.returns = Instant(0);
        }
        self.set_gate();
        self.retune(now);
    }

    /// A new pause: whoever was sent ahead is no longer waited for.
    pub(crate) fn call_off_the_probe(&mut self) {
        self.facts.trouble.probe = Probe::Over;
        self.facts.trouble.ended = None;
        self.facts.trouble.behind = [Instant(0); 3];
        self.facts.trouble.unanswered.clear();
        for ticket in self.facts.tickets.values_mut() {
            ticket.returns = Instant(0);
        }
        self.set_gate();
    }

    /// After a refusal the shortest rates begin at half. One that grew too fast is halved again
    /// each time. Nobody is admitted before `from`, so the way back begins there.
    pub(crate) fn slow_down(&mut self, again: bool, from: Instant) {
        if self.windows().is_none() {
            return;
        }
        let (before, paced) =
            self.facts.trouble.ramp.map_or((0, false), |ramp| (ramp.halvings, ramp.paced));
        let halvings = if again { before + 1 } else { before.max(1) };
        let (halvings, paced) = (halvings.min(MOST_HALVINGS), paced || again);
        self.facts.trouble.ramp = Some(Ramp { halvings, since: from, paced });
    }

    /// A success after a period: the rates are doubled, up to the whole.
    pub(crate) fn speed_up(&mut self, now: Instant) {
        let Some(ramp) = self.facts.trouble.ramp else { return };
        let Some(period) = self.index.plan.shortest_period() else {
            self.facts.trouble.ramp = None;
            return;
        };
        let steps = now.since(ramp.since).0 / period.0.max(1);
        if steps == 0 {
            return;
        }
        let halvings = u64::from(ramp.halvings).saturating_sub(steps);
        let since = ramp.since + Span(steps.saturating_mul(period.0));
        let left = u8::try_from(halvings).ok().filter(|left| *left > 0);
        self.facts.trouble.ramp = left.map(|halvings| Ramp { halvings, since, paced: ramp.paced });
        self.retune(now);
    }
}

/// The instant of the `k`-th of `n` in a window, with a little chance of its own: windows do not
/// overlap, and nobody passes anybody.
fn spread(end: Instant, window: Stretch, k: usize, n: usize, arrival: u64) -> Instant {
    let width = u128::from(window.to.0.saturating_sub(window.from.0));
    // One alone has nobody to keep away from: it comes when one without a ticket would.
    let chance = if n > 1 { u128::from(mix(arrival, 0) >> 32) } else { 0 };
    let share = ((k as u128) << 32) + chance;
    let offset = width * share / ((n.max(1) as u128) << 32);
    end + window.from + Span(u64::try_from(offset).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_never_overlap_and_keep_the_order() {
        let end = Instant(1_000_000);
        for n in [1, 2, 7, 50, 4_096] {
            let mut last = end;
            for tier in Priority::ALL {
                let window = ReturnWindows::USUAL.of(tier);
                for k in 0..n {
                    let at = spread(end, window, k, n, k as u64 * 31 + 5);
                    assert!(at >= last, "{n} in {tier:?}: {k} comes before the one before");
                    assert!(at >= end + window.from && at < end + window.to);
                    last = at;
                }
            }
        }
    }
}
