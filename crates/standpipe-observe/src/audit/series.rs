//! Amounts by second: how many in all, how many in the busiest stretch, how many on the average.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::amount::percent;

/// An average, to a tenth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rate {
    /// Ten times the average.
    pub tenths: u64,
}

/// Amounts by second since 1970.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Series {
    /// In order, each second once, once it was [`Series::sorted`].
    seconds: Vec<(u64, u64)>,
}

impl Series {
    pub(super) fn add(&mut self, second: u64, amount: u64) {
        if amount > 0 {
            self.seconds.push((second, amount));
        }
    }

    /// Adds an amount that came about with these calls, as evenly as they came.
    pub(super) fn spread(&mut self, amount: u64, calls: &[(u64, u64)]) {
        let all: u128 = calls.iter().map(|(_, calls)| u128::from(*calls)).sum();
        let part = |so_far: u128| {
            let part = u128::from(amount) * so_far / all.max(1);
            u64::try_from(part).unwrap_or(u64::MAX)
        };
        let mut so_far = 0;
        for (second, calls) in calls {
            let before = part(so_far);
            so_far += u128::from(*calls);
            self.add(*second, part(so_far) - before);
        }
    }

    /// In order, each second once.
    pub(super) fn sorted(mut self) -> Self {
        self.seconds.sort_unstable();
        self.seconds.dedup_by(|(second, amount), (kept, total)| {
            let same = second == kept;
            if same {
                *total = total.saturating_add(*amount);
            }
            same
        });
        self
    }

    /// All of them together.
    pub(super) fn sum<'a>(of: impl IntoIterator<Item = &'a Self>) -> Self {
        let seconds = of.into_iter().flat_map(|series| &series.seconds).copied().collect();
        Self { seconds }.sorted()
    }

    /// Another total, spread as evenly as this one.
    pub(super) fn with_total(&self, total: u64) -> Self {
        let mut series = Self::default();
        series.spread(total, &self.seconds);
        series
    }

    pub(super) fn total(&self) -> u64 {
        self.seconds.iter().fold(0, |total, (_, amount)| total.saturating_add(*amount))
    }

    /// The first and the last second in which there was anything.
    pub(super) fn ends(&self) -> Option<(u64, u64)> {
        Some((self.seconds.first()?.0, self.seconds.last()?.0))
    }

    /// The most in any stretch of so many milliseconds, and the second in which it begins. A
    /// stretch that is no whole number of seconds is measured over the next longer that is.
    pub(super) fn peak(&self, period_ms: u64) -> (u64, Option<u64>) {
        let length = period_ms.div_ceil(1_000).max(1);
        let (mut most, mut at, mut inside, mut first) = (0, None, 0_u64, 0);
        for (second, amount) in &self.seconds {
            inside = inside.saturating_add(*amount);
            while let Some((oldest, leaves)) = self.seconds.get(first)
                && oldest.saturating_add(length) <= *second
            {
                inside = inside.saturating_sub(*leaves);
                first += 1;
            }
            if inside > most {
                (most, at) = (inside, self.seconds.get(first).map(|(second, _)| *second));
            }
        }
        (scaled_up(most, period_ms, length * 1_000), at)
    }

    /// The average in so many milliseconds, over the time in which there was anything at all: whole
    /// minutes, or periods where those are longer. An agent that runs ten minutes a day
    /// competes, while it runs, as much as one that never stops.
    pub(super) fn average(&self, period_ms: u64) -> Rate {
        let granule = (period_ms / 1_000).max(60);
        // Each begins with a call: those of the clock would count a minute that is touched by two
        // of them twice.
        let (mut active, mut end) = (0_u128, 0);
        for (second, _) in &self.seconds {
            if active == 0 || *second >= end {
                (active, end) = (active + 1, second.saturating_add(granule));
            }
        }
        let whole = active * u128::from(granule) * 1_000;
        let tenths = u128::from(self.total()) * u128::from(period_ms) * 10;
        let rounded = (tenths + whole / 2).checked_div(whole).unwrap_or(0);
        Rate { tenths: u64::try_from(rounded).unwrap_or(u64::MAX) }
    }
}

fn scaled_up(amount: u64, more: u64, less: u64) -> u64 {
    let scaled = (u128::from(amount) * u128::from(more)).div_ceil(u128::from(less.max(1)));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

impl Rate {
    /// That many percent of a whole it is, rounded down.
    pub(super) fn percent_of(self, whole: u64) -> u64 {
        percent(u128::from(self.tenths), u128::from(whole) * 10)
    }

    /// Both together.
    pub(super) const fn plus(self, other: Self) -> Self {
        Self { tenths: self.tenths.saturating_add(other.tenths) }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.tenths / 10, self.tenths % 10) {
            (whole, 0) => write!(f, "{whole}"),
            (whole, tenth) => write!(f, "{whole}.{tenth}"),
        }
    }
}

impl Serialize for Rate {
    /// As a number.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.tenths.is_multiple_of(10) {
            return serializer.serialize_u64(self.tenths / 10);
        }
        let number = self.to_string().parse().map_err(serde::ser::Error::custom)?;
        serializer.serialize_f64(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(amounts: &[(u64, u64)]) -> Series {
        let mut series = Series::default();
        amounts.iter().for_each(|(second, amount)| series.add(*second, *amount));
        series.sorted()
    }

    #[test]
    fn the_busiest_stretch_is_found_wherever_it_begins() {
        let calls = series(&[(0, 5), (59, 10), (60, 10), (118, 1), (119, 90)]);
        assert_eq!(calls.peak(60_000), (101, Some(60)));
        assert_eq!(calls.peak(1_000), (90, Some(119)));
        assert_eq!(calls.peak(120_000), (116, Some(0)));
        assert_eq!(Series::default().peak(60_000), (0, None));
    }

    #[test]
    fn a_period_that_is_no_whole_second_is_measured_over_the_next_longer() {
        let calls = series(&[(7, 30), (8, 2)]);
        assert_eq!(calls.peak(100).0, 3, "30 in a second are 3 in a tenth of it");
        assert_eq!(calls.peak(1_500).0, 24, "32 in two seconds are 24 in one and a half");
    }

    #[test]
    fn an_average_is_over_the_minutes_in_which_there_was_anything() {
        let calls = series(&[(0, 10), (30, 10), (61, 1), (86_400, 1)]);
        assert_eq!(calls.average(60_000).to_string(), "7.3");
        assert_eq!(calls.average(2_000).to_string(), "0.2");
        assert_eq!(calls.average(3_600_000).to_string(), "11");
        assert_eq!(Series::default().average(60_000), Rate::default());
        let within_one = series(&[(55, 20), (65, 20)]);
        assert_eq!(within_one.average(60_000).to_string(), "40", "whatever the clock shows");
    }

    #[test]
    fn an_amount_is_spread_as_the_calls_came_and_nothing_is_lost() {
        let mut units = Series::default();
        units.spread(10, &[(1, 1), (5, 2)]);
        assert_eq!(units, series(&[(1, 3), (5, 7)]));
        units.spread(u64::MAX, &[(9, u32::MAX.into()), (10, u32::MAX.into())]);
        assert_eq!(units.sorted().total(), u64::MAX);
    }

    #[test]
    fn the_same_second_of_several_is_one() {
        let both = Series::sum([&series(&[(1, 1), (2, 2)]), &series(&[(2, 3), (0, 1)])]);
        assert_eq!(both, series(&[(0, 1), (1, 1), (2, 5)]));
        assert_eq!(both.ends(), Some((0, 2)));
        assert_eq!(both.with_total(2 * both.total()).total(), 2 * both.total());
        assert_eq!(both.with_total(0), Series::default());
    }

    #[test]
    fn a_rate_is_a_number() {
        assert_eq!(serde_json::to_string(&Rate { tenths: 224 }).unwrap(), "22.4");
        assert_eq!(serde_json::to_string(&Rate { tenths: 220 }).unwrap(), "22");
        assert_eq!(Rate { tenths: 964 }.percent_of(100), 96);
        assert_eq!(Rate { tenths: 5 }.percent_of(0), 0);
    }
}
