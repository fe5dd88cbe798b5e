//! The long form of a limit: a table in the configuration file, options after commas elsewhere.
//!
//! Both spellings set the same [`LimitForm`] through [`LimitForm::set`], so they accept the same
//! values and report the same errors.

use standpipe_core::{Charged, Limit, Resets, Rule, Span, Unit};

use super::word::Word;
use super::{KNOWN_UNITS, TextError, quoted};
use crate::calendar;
use crate::nearest::nearest;

const DAY: Span = Span::secs(86_400);

/// How a rate is counted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Window,
    Bucket,
}

impl Word for Kind {
    const WORDS: &'static [(&'static str, Self)] =
        &[("window", Self::Window), ("bucket", Self::Bucket)];
}

/// A limit of one unit as it is written, before defaults are applied.
pub(crate) struct LimitForm {
    pub(crate) unit: Unit,
    pub(crate) rate: Option<(u64, Span)>,
    pub(crate) kind: Option<Kind>,
    burst: Option<u64>,
    pace: Option<Span>,
    charged: Option<Charged>,
    pub(crate) resets: Option<Resets>,
}

impl LimitForm {
    /// The keys of the long form.
    pub(crate) const KEYS: [&str; 6] = ["rate", "kind", "burst", "pace", "charged", "resets"];

    pub(crate) const fn new(unit: Unit) -> Self {
        Self { unit, rate: None, kind: None, burst: None, pace: None, charged: None, resets: None }
    }

    /// Sets one of [`LimitForm::KEYS`] from its text.
    pub(crate) fn set(&mut self, key: &str, text: &str) -> Result<(), TextError> {
        match key {
            "rate" => self.rate = Some(super::rate_of(&self.unit, text)?),
            "kind" => self.kind = Some(Kind::parse(text)?),
            "burst" => self.burst = Some(burst(&self.unit, text)?),
            "pace" => self.pace = Some(super::positive_duration(text)?),
            "charged" => self.charged = Some(Charged::parse(text)?),
            "resets" => self.resets = Some(calendar::resets(text)?),
            _ => return Err(unknown(key, text)),
        }
        Ok(())
    }

    /// A burst makes the limit a bucket.
    fn kind(&self) -> Kind {
        let implied = if self.burst.is_some() { Kind::Bucket } else { Kind::Window };
        self.kind.unwrap_or(implied)
    }

    /// Returns the keys that contradict each other.
    pub(crate) fn contradictions(&self) -> Vec<TextError> {
        let mut errors = Vec::new();
        if self.kind() == Kind::Window && self.burst.is_some() {
            let what = "burst has no meaning for a window";
            errors.push(TextError::new(what, "leave kind out, or burst"));
        }
        let resets = self.resets.as_ref().is_some_and(|resets| *resets != Resets::Rolling);
        if self.kind() == Kind::Bucket && resets {
            let what = "a bucket refills and does not reset";
            errors.push(TextError::new(what, "leave kind and burst out, or resets"));
        }
        let daily = matches!(self.resets, Some(Resets::Calendar(_)));
        if daily && self.rate.is_some_and(|(_, period)| period != DAY) {
            let what = "a limit that is not per day has no reset at a time of day";
            errors.push(TextError::new(
                what,
                "write the rate per day (\"1000/d\"), or leave resets out",
            ));
        }
        errors
    }

    /// Returns the limit with defaults applied, or `None` if it has no rate.
    pub(crate) fn limit(self) -> Option<Limit> {
        let (amount, period) = self.rate?;
        let (kind, charged) = (self.kind(), super::charged_by_default(&self.unit));
        let unit = self.unit;
        let rule = match kind {
            Kind::Window => Rule::Window { unit, amount, period },
            // A provider that documents a bucket and no burst refills one period's amount.
            Kind::Bucket => {
                Rule::Bucket { unit, amount, period, burst: self.burst.unwrap_or(amount) }
            }
        };
        Some(Limit {
            pace: self.pace,
            charged: self.charged.unwrap_or(charged),
            resets: self.resets.unwrap_or(Resets::Rolling),
            ..Limit::new(rule)
        })
    }
}

/// Parses a rate and its options: `2M/min,burst=400k,pace=100ms`.
pub(super) fn with_options(unit: Unit, text: &str) -> Result<Limit, TextError> {
    let mut parts = text.split(',').map(str::trim);
    let mut form = LimitForm::new(unit);
    let first = parts.next().unwrap_or_default();
    form.set("rate", first)
        .map_err(|error| super::grouped(&format!("={text}")).unwrap_or(error))?;
    let mut seen = vec!["rate"];
    for part in parts {
        let (key, value) = part.split_once('=').ok_or_else(|| {
            if let Some(error) = super::grouped(&format!("={text}")) {
                return error;
            }
            match LimitForm::KEYS[1..].contains(&part) {
                true => TextError::new(
                    format!("the option `{part}` has no value"),
                    format!("write for example {part}={}", example(part)),
                ),
                false => {
                    let what = format!("{} is not an option of a limit", quoted(part));
                    TextError::new(what, EXAMPLE)
                }
            }
        })?;
        let (key, value) = (key.trim(), value.trim());
        if !LimitForm::KEYS.contains(&key) {
            return Err(unknown(key, value));
        }
        if seen.contains(&key) {
            return Err(TextError::new(format!("`{key}` is given twice"), "give it once"));
        }
        form.set(key, value).map_err(|TextError { what, remedy }| {
            TextError::new(format!("`{key}`: {what}"), remedy)
        })?;
        seen.push(key);
    }
    if let Some(error) = form.contradictions().into_iter().next() {
        return Err(error);
    }
    form.limit().ok_or_else(|| TextError::new("the limit has no rate", EXAMPLE))
}

const EXAMPLE: &str = "write for example \"input_tokens=2M/min,burst=400k\"";

/// A value of an option.
fn example(option: &str) -> &'static str {
    match option {
        "kind" => "bucket",
        "burst" => "10",
        "pace" => "100ms",
        "charged" => "end",
        _ => "provider",
    }
}

/// Parses the capacity of a bucket: at least one.
fn burst(unit: &Unit, text: &str) -> Result<u64, TextError> {
    match super::amount_of(unit, text)? {
        0 => Err(TextError::new("a bucket that holds nothing admits nothing", "write at least 1")),
        burst => Ok(burst),
    }
}

pub(super) fn unknown(key: &str, value: &str) -> TextError {
    let what = format!("{} is not an option of a limit", quoted(key));
    if key == "parallel" || KNOWN_UNITS.contains(&key) {
        return TextError::new(what, format!("give `{key}` as a limit of its own"));
    }
    if key == "margin" {
        let value = match value.parse::<f64>() {
            _ if super::margin(value).is_err() => "\"20%\"".to_owned(),
            Ok(_) => value.to_owned(),
            Err(_) => format!("\"{value}\""),
        };
        let remedy = format!(
            "it belongs to the pool: write `margin = {value}` in its table of standpipe.toml"
        );
        return TextError::new(what, remedy);
    }
    // The rate comes first and has no name on the command line.
    let options = &LimitForm::KEYS[1..];
    match nearest(key, options.iter().copied()) {
        Some(meant) => TextError::new(what, format!("did you mean `{meant}`?")),
        None => TextError::new(what, format!("the options are {}", options.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use crate::parse::limit;
    use standpipe_core::{Charged, Resets, Rule, Span, Unit};

    #[test]
    fn a_burst_makes_a_bucket() {
        let period = Span::secs(60);
        let bucket =
            |burst| Rule::Bucket { unit: Unit::InputTokens, amount: 2_000_000, period, burst };
        let read = |text: &str| limit(text).unwrap().rule;
        assert_eq!(read("input_tokens=2M/min,burst=400k"), bucket(400_000));
        assert_eq!(read("input_tokens=2M/min, kind=bucket"), bucket(2_000_000));
        assert_eq!(read("usd=20/d,burst=0.5"), {
            let (amount, period) = (20_000_000, Span::secs(86_400));
            Rule::Bucket { unit: Unit::Usd, amount, period, burst: 500_000 }
        });
    }

    #[test]
    fn every_option_of_the_file_is_there() {
        let paced = limit("requests=60/min,pace=500ms,charged=end,resets=provider").unwrap();
        assert_eq!(paced.pace, Some(Span(500_000)));
        assert_eq!((paced.charged, paced.resets), (Charged::End, Resets::Provider));
        assert!(matches!(paced.rule, Rule::Window { .. }));
        let daily = limit("requests=1000/d,resets=00:00 America/Los_Angeles").unwrap();
        let Resets::Calendar(day) = daily.resets else { panic!("{daily:?}") };
        assert_eq!(day.as_str(), "00:00 America/Los_Angeles");
    }

    #[test]
    fn every_error_has_a_hint() {
        for (text, what, hint) in [
            ("requests=60/min,brust=5", "brust", "did you mean `burst`?"),
            ("requests=60/min,tokens=40k/min", "tokens", "a limit of its own"),
            ("requests=60/min,parallel=4", "parallel", "a limit of its own"),
            ("requests=60/min,margin=35%", "margin", "`margin = \"35%\"` in its table"),
            ("requests=60/min,margin=0.1", "margin", "`margin = 0.1` in its table"),
            ("requests=60/min,margin=lots", "margin", "`margin = \"20%\"` in its table"),
            ("parallel=1,requests=5/min", "\"requests\" is not an option of", "a limit of its own"),
            ("requests=60/min,zzz=5", "zzz", "kind, burst, pace, charged, resets"),
            ("requests=60/min,burst", "the option `burst` has no value", "burst=10"),
            ("requests=60/min,resets", "the option `resets` has no value", "resets=provider"),
            ("requests=60/min,", "\"\"", "burst=400k"),
            ("requests=60/min,burst=0", "admits nothing", "at least 1"),
            ("requests=60/min,burst=5,burst=6", "twice", "once"),
            ("requests=60/min,kind=window,burst=5", "window", "leave"),
            ("requests=60/min,burst=5,resets=provider", "does not reset", "leave"),
            ("requests=60/d,burst=5,resets=00:00 UTC", "does not reset", "leave"),
            ("requests=60/h,resets=00:00 UTC", "not per day", "1000/d"),
            ("requests=60/d,resets=00:00 Utopia", "time zone", "00:00 UTC"),
            ("requests=60/min,kind=bukket", "bukket", "did you mean \"bucket\"?"),
            ("requests=60/min,charged=now", "now", "start, end"),
            ("requests=60/min,pace=0", "pace", "100ms"),
            ("parallel=4,burst=5", "parallel", "number alone"),
        ] {
            let wrong = limit(text).unwrap_err();
            assert!(wrong.what.contains(what), "{text}: {wrong}");
            assert!(wrong.remedy.contains(hint), "{text}: {wrong}");
        }
    }
}
