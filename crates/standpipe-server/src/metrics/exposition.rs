//! The text format: families of samples with help, type and escaped labels.
//!
//! Values are exact: integers or decimals made from integers, never floats.

use std::fmt::{self, Display, Write};

use super::labels::Label;

/// The text, built family by family.
#[derive(Debug, Default)]
pub(super) struct Exposition {
    text: String,
    families: Vec<FamilyInfo>,
}

/// A declared metric. The name is without `standpipe_`.
#[derive(Clone, Copy, Debug)]
pub(super) struct FamilyInfo {
    pub(super) name: &'static str,
    pub(super) kind: &'static str,
    pub(super) labels: &'static [Label],
    pub(super) help: &'static str,
}

/// The samples of one name, which are contiguous in the text.
#[derive(Debug)]
pub(super) struct Family<'a> {
    text: &'a mut String,
    name: &'static str,
    labels: &'static [Label],
}

/// The values of a sample's labels, in the order in which its family declares them.
pub(super) type Values<'a> = &'a [&'a str];

impl Exposition {
    /// A value that rises and falls. The name is without `standpipe_`.
    pub(super) fn gauge(
        &mut self,
        name: &'static str,
        labels: &'static [Label],
        help: &'static str,
    ) -> Family<'_> {
        self.family(FamilyInfo { name, kind: "gauge", labels, help })
    }

    /// A value that only grows while the daemon runs; its name ends with `_total`.
    pub(super) fn counter(
        &mut self,
        name: &'static str,
        labels: &'static [Label],
        help: &'static str,
    ) -> Family<'_> {
        self.family(FamilyInfo { name, kind: "counter", labels, help })
    }

    /// A distribution.
    pub(super) fn histogram(
        &mut self,
        name: &'static str,
        labels: &'static [Label],
        help: &'static str,
    ) -> Family<'_> {
        self.family(FamilyInfo { name, kind: "histogram", labels, help })
    }

    fn family(&mut self, info: FamilyInfo) -> Family<'_> {
        let FamilyInfo { name, kind, labels, help } = info;
        self.families.push(info);
        let text = &mut self.text;
        // Writing to a string does not fail.
        let _ = writeln!(text, "# HELP standpipe_{name} {help}\n# TYPE standpipe_{name} {kind}");
        Family { text, name, labels }
    }

    /// Every metric so far.
    pub(super) fn families(&self) -> &[FamilyInfo] {
        &self.families
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }
}

impl Family<'_> {
    /// One sample.
    pub(super) fn put(&mut self, values: Values<'_>, value: impl Display) {
        self.line("", values, None, &value);
    }

    /// A sample that is 0 or 1.
    pub(super) fn put_flag(&mut self, values: Values<'_>, is: bool) {
        self.put(values, u8::from(is));
    }

    /// One histogram. `counts` has one count per bucket, not cumulative, and one beyond the last.
    pub(super) fn put_counts<B: Display>(
        &mut self,
        values: Values<'_>,
        bounds: impl Iterator<Item = B>,
        counts: &[u64],
        sum: impl Display,
    ) {
        let mut all = 0_u64;
        let mut counts = counts.iter();
        for bound in bounds {
            all = all.saturating_add(counts.next().copied().unwrap_or(0));
            self.line("_bucket", values, Some(&bound), &all);
        }
        all = counts.fold(all, |all, more| all.saturating_add(*more));
        self.line("_bucket", values, Some(&"+Inf"), &all);
        self.line("_sum", values, None, &sum);
        self.line("_count", values, None, &all);
    }

    fn line(
        &mut self,
        suffix: &str,
        values: Values<'_>,
        bound: Option<&dyn Display>,
        value: &dyn Display,
    ) {
        let _ = write!(self.text, "standpipe_{}{suffix}", self.name);
        let mut before = '{';
        debug_assert_eq!(self.labels.len(), values.len(), "{}", self.name);
        for (label, value) in self.labels.iter().zip(values) {
            let _ = write!(self.text, "{before}{}=\"{}\"", label.name, Escaped(value));
            before = ',';
        }
        if let Some(bound) = bound {
            let _ = write!(self.text, "{before}le=\"{bound}\"");
            before = ',';
        }
        let close = if before == ',' { "}" } else { "" };
        let _ = writeln!(self.text, "{close} {value}");
    }
}

/// A label's value, escaped.
struct Escaped<'a>(&'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for letter in self.0.chars() {
            match letter {
                '\\' => f.write_str("\\\\")?,
                '"' => f.write_str("\\\"")?,
                '\n' => f.write_str("\\n")?,
                other => f.write_char(other)?,
            }
        }
        Ok(())
    }
}

/// A value in parts of which `PER` are one: milliseconds as seconds, thousandths as ratios.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts<const PER: u64>(u64);

/// A value in thousandths.
pub(super) const fn thousandths(parts: u64) -> Parts<1_000> {
    Parts(parts)
}

/// A value in millionths.
pub(super) const fn millionths(parts: u64) -> Parts<1_000_000> {
    Parts(parts)
}

impl<const PER: u64> Display for Parts<PER> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, part) = (self.0 / PER, self.0 % PER);
        if part == 0 {
            return write!(f, "{whole}");
        }
        let places = usize::try_from(PER.ilog10()).unwrap_or_default();
        let digits = format!("{part:0places$}");
        write!(f, "{whole}.{}", digits.trim_end_matches('0'))
    }
}

/// An amount of a unit. `usd` is kept in millionths and shown in dollars.
#[derive(Clone, Copy, Debug)]
pub(super) struct Amount<'a>(pub(super) &'a str, pub(super) u64);

impl Display for Amount<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            "usd" => Display::fmt(&millionths(self.1), f),
            _ => Display::fmt(&self.1, f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::labels::{POOL, UNIT};
    use super::*;

    #[test]
    fn labels_are_escaped() {
        let mut page = Exposition::default();
        page.gauge("odd", &[POOL, UNIT], "Odd names.").put(&["a\\b\"c\nd", "é"], 1);
        let text = page.into_text();
        assert!(text.ends_with("standpipe_odd{pool=\"a\\\\b\\\"c\\nd\",unit=\"é\"} 1\n"), "{text}");
    }

    #[test]
    fn values_are_exact_decimals() {
        let shown = [0, 5, 1_000, 1_250, u64::MAX].map(|ms| thousandths(ms).to_string());
        assert_eq!(shown, ["0", "0.005", "1", "1.25", "18446744073709551.615"]);
        assert_eq!(Amount("usd", 1_500_000).to_string(), "1.5");
        assert_eq!(Amount("tokens", 1_500_000).to_string(), "1500000");
    }

    #[test]
    fn a_histogram_is_cumulative() {
        let mut page = Exposition::default();
        let mut family = page.histogram("wait_seconds", &[], "Waits.");
        family.put_counts(&[], [1, 2].iter(), &[3, 0, 4], thousandths(1_500));
        let text = page.into_text();
        let lines: Vec<&str> = text.lines().skip(2).collect();
        let samples = [
            "standpipe_wait_seconds_bucket{le=\"1\"} 3",
            "standpipe_wait_seconds_bucket{le=\"2\"} 3",
            "standpipe_wait_seconds_bucket{le=\"+Inf\"} 7",
            "standpipe_wait_seconds_sum 1.5",
            "standpipe_wait_seconds_count 7",
        ];
        assert_eq!(lines, samples);
    }
}
