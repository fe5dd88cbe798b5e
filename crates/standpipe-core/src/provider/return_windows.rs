//! Returning from a pause without a herd: one call probes, then tier after tier returns, each
//! ticket at an instant of its own.
//!
//! Tickets that wait through the pause are spread over their tier's window in order. Newcomers come
//! behind them, never before their tier's window.

use crate::config::Priority;
use crate::config::policy::{ReturnWindows, TimeRange};
use crate::event::Key;
use crate::outcome::{Notice, Reason};
use crate::provider::cascade::Cascade;
use crate::provider::throttle::Throttling;
use crate::queue::ticket::QueueKey;
use crate::splitmix::splitmix;
use crate::state::State;
use crate::time::{Instant, Span};

/// How calls return after the last pause.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Returning {
    /// By tier: newcomers are not admitted before this, so that they come behind the calls that
    /// waited through the pause.
    pub newcomers: [Instant; 3],
    /// When the last pause ended by itself, while its return windows apply.
    pub pause_ended: Option<Instant>,
    /// The first call after the pause.
    pub probe: Probe,
}

/// The first call after a pause. Others follow when its answer is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Probe {
    /// There is none to wait for.
    #[default]
    Over,
    /// The next admission is the probe.
    Wanted,
    /// It is in flight.
    Sent {
        /// Its lease.
        lease: Key,
        /// When it was admitted.
        at: Instant,
    },
}

/// How long others wait for the probe's answer.
pub(crate) const PROBE: Span = Span::secs(1);

/// Newcomers are spaced as if at least this many came.
const CROWD: usize = 32;

impl State {
    pub(crate) fn windows(&self) -> Option<ReturnWindows> {
        self.facts.config.as_ref()?.policy.comeback
    }

    /// When a queue key returns from a pause with this end, as the queue stands.
    pub(crate) fn returns_at(
        &self,
        queue_key: QueueKey,
        end: Instant,
        windows: &ReturnWindows,
    ) -> Instant {
        let own = &self.index.order[queue_key.tier as usize];
        let before = own.partition_point(|other| *other < queue_key.in_tier());
        let stretch = windows.of(queue_key.tier);
        if queue_key.arrival != u64::MAX {
            let there = own.get(before) == Some(&queue_key.in_tier());
            let all = own.len() + usize::from(!there);
            return spread(end, stretch, before, all, queue_key.arrival);
        }
        // Without a ticket it returns behind everybody who has one.
        match own.back() {
            Some((_, last)) => {
                let last = spread(end, stretch, own.len() - 1, own.len(), *last);
                last + self.distance(queue_key.tier, stretch)
            }
            None => end + stretch.from,
        }
    }

    /// Ends the pause by time: every ticket gets its return instant.
    pub(crate) fn end_pause_now(&mut self, end: Instant) {
        self.count_pause(end);
        self.facts.pause = None;
        self.facts.throttling.order = None;
        self.effects.notices.push(Notice::Resumed { at: end, by: None });
        if let Some(windows) = self.windows() {
            for tier in Priority::ALL {
                self.facts.returning.newcomers[tier as usize] =
                    self.returns_at(QueueKey::last_of(tier), end, &windows);
            }
            for (queue_key, ticket) in &mut self.facts.tickets {
                let own = &self.index.order[queue_key.tier as usize];
                let before = own.partition_point(|other| *other < queue_key.in_tier());
                let stretch = windows.of(queue_key.tier);
                ticket.returns = spread(end, stretch, before, own.len(), queue_key.arrival);
            }
            self.facts.returning.pause_ended = Some(end);
            self.facts.returning.probe = Probe::Wanted;
            self.set_gate();
            self.refuse_past_deadline(Reason::ReturnWindow, end);
        }
        self.enqueue_all(end);
    }

    /// Respreads tickets when the gate opens: the first goes now, the others keep their spacing.
    /// Otherwise all who waited for one slow answer would go at the same instant.
    pub(crate) fn respread(&mut self, now: Instant) {
        let (Some(windows), Some(gate)) = (self.windows(), self.index.compiled.gate) else {
            return;
        };
        if self.index.lines[gate].len() < 2 {
            return;
        }
        let mut last = None;
        for (queue_key, ticket) in &mut self.facts.tickets {
            let stands = self.index.lines[gate].contains(queue_key);
            if !stands && ticket.returns <= now {
                // It waits for something else.
                continue;
            }
            let TimeRange { from, to } = windows.of(queue_key.tier);
            let all = self.index.order[queue_key.tier as usize].len() as u64;
            let gap = Span(to.0.saturating_sub(from.0) / all.max(1));
            let at = ticket.returns.max(last.map_or(now, |last| last + gap));
            last = Some(at);
            ticket.returns = at;
            let behind = &mut self.facts.returning.newcomers[queue_key.tier as usize];
            *behind = at.max(*behind);
            if stands {
                self.effects.wake.push(ticket.key);
            }
        }
        self.refuse_past_deadline(Reason::ReturnWindow, now);
        self.enqueue_all(now);
    }

    /// Keeps newcomers of a tier apart while return windows apply: the next one comes one gap after
    /// `from`.
    pub(crate) fn space_newcomers(&mut self, tier: Priority, from: Instant) {
        let (Some(ended), Some(windows)) = (self.facts.returning.pause_ended, self.windows())
        else {
            return;
        };
        let window = windows.of(tier);
        // An instant that is already assigned keeps its spacing also beyond the window.
        if from >= ended + window.to && from <= self.facts.clock {
            return;
        }
        let next = from + self.distance(tier, window);
        let behind = &mut self.facts.returning.newcomers[tier as usize];
        *behind = (*behind).max(next);
    }

    /// The gap between newcomers of a tier.
    fn distance(&self, tier: Priority, window: TimeRange) -> Span {
        let width = window.to.0.saturating_sub(window.from.0);
        let many = self.index.order[tier as usize].len().max(CROWD);
        Span(width / many as u64)
    }

    /// Whether calls return from a pause more slowly than the limits allow: a resume ends that.
    pub(crate) fn is_returning(&self, now: Instant) -> bool {
        let facts = &self.facts;
        let mut returns = facts.tickets.values().map(|ticket| ticket.returns);
        facts.ramp.is_some()
            || facts.cascade.sequential.is_some()
            || facts.returning.probe != Probe::Over
            || facts.returning.newcomers.iter().any(|at| *at > now)
            || returns.any(|at| at > now)
    }

    /// Clears everything a refusal left behind. What was learned of limits stays.
    pub(crate) fn clear_incident(&mut self, now: Instant) {
        let pause_began = self.facts.throttling.pause_began;
        self.facts.throttling = Throttling { pause_began, ..Throttling::default() };
        self.facts.returning = Returning::default();
        self.facts.cascade = Cascade::default();
        self.facts.ramp = None;
        self.facts.unanswered.clear();
        for ticket in self.facts.tickets.values_mut() {
            ticket.returns = Instant(0);
        }
        self.set_gate();
        self.recompile(now);
    }

    /// A new pause begins: the probe of the last one no longer counts.
    pub(crate) fn drop_probe(&mut self) {
        self.facts.returning.probe = Probe::Over;
        self.facts.returning.pause_ended = None;
        self.facts.returning.newcomers = [Instant(0); 3];
        self.facts.unanswered.clear();
        for ticket in self.facts.tickets.values_mut() {
            ticket.returns = Instant(0);
        }
        self.set_gate();
    }
}

/// The instant of the `k`-th of `n` in a window, with a small offset of its own. Windows do not
/// overlap, and the order is kept.
fn spread(end: Instant, window: TimeRange, k: usize, n: usize, arrival: u64) -> Instant {
    let width = u128::from(window.to.0.saturating_sub(window.from.0));
    // A single ticket needs no spacing: it returns when a newcomer would.
    let chance = if n > 1 { u128::from(splitmix(arrival, 0) >> 32) } else { 0 };
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
