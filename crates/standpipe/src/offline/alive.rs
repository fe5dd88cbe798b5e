//! How many sessions are alive on a pool, and the maximum of the last ten minutes.
//!
//! A process without the store divides the limits by that maximum, so that a session that ended
//! lately does not enlarge the shares of the others.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use standpipe_core::{Facts, Instant, bounds};

/// The most sessions that were alive at once, minute by minute.
#[derive(Debug, Default)]
pub(crate) struct AliveSessions {
    /// Each minute of this process's clock with its largest count, the oldest first.
    minutes: VecDeque<(u64, u64)>,
}

impl AliveSessions {
    /// Records how many are alive now.
    pub(crate) fn sample(&mut self, now: Duration, count: u64) {
        let minute = now.as_secs() / 60;
        match self.minutes.back_mut() {
            Some((last, most)) if *last >= minute => *most = count.max(*most),
            _ => self.minutes.push_back((minute, count)),
        }
        while self.minutes.front().is_some_and(|(first, _)| first + KEPT < minute) {
            self.minutes.pop_front();
        }
    }

    /// Returns the maximum of the last ten minutes.
    pub(crate) fn most(&self, now: Duration) -> u64 {
        let minute = now.as_secs() / 60;
        let lately = self.minutes.iter().filter(|(at, _)| at + KEPT >= minute);
        lately.map(|(_, most)| *most).max().unwrap_or_default()
    }
}

/// Returns the sessions that are alive: not ended, and not silent for too long.
pub(crate) fn alive(facts: &Facts, now: Instant) -> BTreeSet<u64> {
    let living = facts
        .sessions
        .iter()
        .filter(|(_, session)| !session.ended && now < session.last_seen + bounds::SILENCE);
    living.map(|(session, _)| *session).collect()
}

/// How many minutes are kept besides the present one.
const KEPT: u64 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_of_the_last_ten_minutes_counts() {
        let minutes = |count: u64| Duration::from_secs(60 * count);
        let mut alive = AliveSessions::default();
        assert_eq!(alive.most(minutes(0)), 0, "no sample");
        for (minute, count) in [(0, 3), (0, 8), (1, 2), (5, 4)] {
            alive.sample(minutes(minute), count);
        }
        assert_eq!(alive.most(minutes(5)), 8);
        assert_eq!(alive.most(minutes(10)), 8, "ten minutes later it still counts");
        assert_eq!(alive.most(minutes(11)), 4);
        alive.sample(minutes(20), 1);
        assert_eq!(alive.most(minutes(20)), 1);
        assert!(alive.minutes.len() <= 2, "what is too old is dropped");
    }
}
