//! The long form of a limit: what the file writes as a table and the command line after commas.

use standpipe_core::{Charged, Limit, Resets, Rule, Span, Unit};
use standpipe_dialect::Dialect;

use super::nearest::nearest;
use super::text::{self, KNOWN_UNITS, TextError};

/// The keys of the long form.
pub(super) const KEYS: [&str; 6] = ["rate", "kind", "burst", "pace", "charged", "resets"];

/// The kinds of a rate.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Window,
    Bucket,
}

pub(super) const KINDS: [(&str, Kind); 2] = [("window", Kind::Window), ("bucket", Kind::Bucket)];
pub(super) const CHARGED: [(&str, Charged); 2] = [("start", Charged::Start), ("end", Charged::End)];
pub(super) const RESETS: [(&str, Resets); 2] =
    [("rolling", Resets::Rolling), ("provider", Resets::Provider)];

/// The long form as it is written.
#[derive(Default)]
pub(super) struct LimitForm {
    pub(super) rate: Option<(u64, Span)>,
    pub(super) kind: Option<Kind>,
    pub(super) burst: Option<u64>,
    pub(super) pace: Option<Span>,
    pub(super) charged: Option<Charged>,
    pub(super) resets: Option<Resets>,
}

impl LimitForm {
    /// A burst makes the limit a bucket.
    fn kind(&self) -> Kind {
        let implied = if self.burst.is_some() { Kind::Bucket } else { Kind::Window };
        self.kind.unwrap_or(implied)
    }

    /// Takes the kind that the provider's limits have, if neither a kind nor anything that implies
    /// one is written.
    pub(super) fn follow(&mut self, dialect: Dialect, unit: &Unit) {
        let Some((_, period)) = self.rate else { return };
        if self.kind.is_none() && self.resets.is_none() && refills(dialect, unit, period) {
            self.kind = Some(Kind::Bucket);
        }
    }

    /// What contradicts itself in it.
    pub(super) fn contradictions(&self) -> Vec<TextError> {
        let mut wrong = Vec::new();
        if self.kind() == Kind::Window && self.burst.is_some() {
            let what = "burst means nothing for a window";
            wrong.push(TextError::new(what, "leave kind out, or burst"));
        }
        if self.kind() == Kind::Bucket && self.resets == Some(Resets::Provider) {
            let what = "a bucket refills and does not reset";
            wrong.push(TextError::new(what, "leave kind and burst out, or resets"));
        }
        wrong
    }

    /// The limit, if it has a rate.
    pub(super) fn limit(self, unit: &Unit) -> Option<Limit> {
        let (amount, period) = self.rate?;
        let kind = self.kind();
        let (unit, charged) = (unit.clone(), text::charged_by_default(unit));
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

/// Whether a limit that states no kind is a bucket: the provider refills its limits continuously.
/// Providers state those per minute; a longer limit, or one of money, is the user's own budget.
pub(super) fn refills(dialect: Dialect, unit: &Unit, period: Span) -> bool {
    let counted = [Unit::Requests, Unit::InputTokens, Unit::OutputTokens, Unit::Tokens];
    dialect.refills_continuously() && counted.contains(unit) && period <= Span::secs(60)
}

/// Reads a rate and its options: `2M/min,burst=400k,pace=100ms`.
pub(super) fn compact(unit: &Unit, written: &str) -> Result<Limit, TextError> {
    let mut parts = written.split(',').map(str::trim);
    let rate = text::rate_of(unit, parts.next().unwrap_or_default())?;
    let mut form = LimitForm { rate: Some(rate), ..LimitForm::default() };
    let mut seen = vec!["rate"];
    for part in parts {
        let (key, value) = part.split_once('=').ok_or_else(|| {
            let what = format!("{} is not an option of a limit", text::quoted(part));
            TextError::new(what, EXAMPLE)
        })?;
        let (key, value) = (key.trim(), value.trim());
        if seen.contains(&key) {
            return Err(TextError::new(format!("`{key}` is given twice"), "give it once"));
        }
        match key {
            "kind" => form.kind = Some(one_of(key, value, &KINDS)?),
            "burst" => form.burst = Some(burst(unit, value)?),
            "pace" => form.pace = Some(pace(value)?),
            "charged" => form.charged = Some(one_of(key, value, &CHARGED)?),
            "resets" => form.resets = Some(one_of(key, value, &RESETS)?),
            _ => return Err(unknown(key)),
        }
        seen.push(key);
    }
    if let Some(wrong) = form.contradictions().into_iter().next() {
        return Err(wrong);
    }
    form.limit(unit).ok_or_else(|| TextError::new("the limit has no rate", EXAMPLE))
}

const EXAMPLE: &str = "write for example \"input_tokens=2M/min,burst=400k\"";

/// Reads how much a bucket holds: at least one.
pub(super) fn burst(unit: &Unit, value: &str) -> Result<u64, TextError> {
    match text::amount_of(unit, value)? {
        0 => Err(TextError::new("a bucket that holds nothing admits nothing", "write at least 1")),
        burst => Ok(burst),
    }
}

fn pace(value: &str) -> Result<Span, TextError> {
    match text::duration(value)? {
        Span::ZERO => Err(TextError::new("a pace of 0 is none", "write for example pace=100ms")),
        pace => Ok(pace),
    }
}

fn one_of<T: Copy>(key: &str, value: &str, known: &[(&str, T)]) -> Result<T, TextError> {
    if let Some((_, found)) = known.iter().find(|(name, _)| *name == value) {
        return Ok(*found);
    }
    let names = known.iter().map(|(name, _)| *name);
    let remedy = match nearest(value, names.clone()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("write {}", names.collect::<Vec<_>>().join(" or ")),
    };
    Err(TextError::new(format!("{} is not a value of `{key}`", text::quoted(value)), remedy))
}

fn unknown(key: &str) -> TextError {
    let what = format!("{} is not an option of a limit", text::quoted(key));
    if key == "parallel" || KNOWN_UNITS.contains(&key) {
        return TextError::new(what, format!("give `{key}` as a limit of its own"));
    }
    match nearest(key, KEYS.into_iter().skip(1)) {
        Some(meant) => TextError::new(what, format!("did you mean `{meant}`?")),
        None => TextError::new(what, format!("the options are {}", KEYS[1..].join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use crate::config::text::limit;
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
    }

    #[test]
    fn what_is_wrong_has_a_hint() {
        for (text, what, hint) in [
            ("requests=60/min,brust=5", "brust", "did you mean `burst`?"),
            ("requests=60/min,tokens=40k/min", "tokens", "a limit of its own"),
            ("requests=60/min,parallel=4", "parallel", "a limit of its own"),
            ("requests=60/min,zzz=5", "zzz", "kind, burst, pace, charged, resets"),
            ("requests=60/min,burst", "burst", "burst=400k"),
            ("requests=60/min,", "\"\"", "burst=400k"),
            ("requests=60/min,burst=0", "admits nothing", "at least 1"),
            ("requests=60/min,burst=5,burst=6", "twice", "once"),
            ("requests=60/min,kind=window,burst=5", "window", "leave"),
            ("requests=60/min,burst=5,resets=provider", "does not reset", "leave"),
            ("requests=60/min,kind=bukket", "bukket", "did you mean `bucket`?"),
            ("requests=60/min,charged=now", "now", "start or end"),
            ("requests=60/min,pace=0", "pace", "100ms"),
            ("parallel=4,burst=5", "parallel", "number alone"),
        ] {
            let wrong = limit(text).unwrap_err();
            assert!(wrong.what.contains(what), "{text}: {wrong}");
            assert!(wrong.remedy.contains(hint), "{text}: {wrong}");
        }
    }
}
