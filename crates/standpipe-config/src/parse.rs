//! Parsers for rates, durations, amounts, costs and limits.
//!
//! The configuration file, the command line and the HTTP API share these parsers, so a figure means
//! the same everywhere. They use integers only: a value that would have to be rounded is rejected.
//! The opposite direction is in [`crate::format`].

use std::fmt;

use standpipe_core::{Charged, Limit, Rule, Span, Unit, UnitName, bounds};

use crate::format;
use crate::nearest::nearest;

pub(crate) mod limit;
mod number;
mod share;
pub(crate) mod synonym;
pub(crate) mod word;

pub use self::share::{factor, margin, percent, share};

use self::number::{NumberError, scaled, split_number, whole_rate};

/// Why a text could not be parsed, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextError {
    /// What is wrong.
    pub what: String,
    /// What to do about it.
    pub remedy: String,
}

/// Parses a rate: `60/min`, `30/2s`, `2M/min`.
///
/// # Errors
/// If the text is not a rate, or the amount is zero, fractional or out of range.
///
/// ```
/// use standpipe_config::parse::rate;
/// use standpipe_core::Span;
///
/// assert_eq!(rate("2M/min"), Ok((2_000_000, Span::secs(60))));
/// assert_eq!(rate("30/2s"), Ok((30, Span::secs(2))));
/// assert!(rate("60/m").unwrap_err().remedy.contains("min"));
/// ```
pub fn rate(text: &str) -> Result<(u64, Span), TextError> {
    rate_of(&Unit::Requests, text)
}

/// Parses a rate of a unit. For `usd` the amount is in dollars: `20/d` is 20,000,000 millionths.
///
/// # Errors
/// As [`rate`].
pub fn rate_of(unit: &Unit, text: &str) -> Result<(u64, Span), TextError> {
    let Some((amount, period)) = text.split_once('/') else {
        return Err(match amount_of(unit, text) {
            Ok(_) => TextError::new(
                format!("the rate {} has no period", quoted(text)),
                format!("write for example \"{}/min\"", text.trim()),
            ),
            Err(_) => TextError::new(format!("{} is not a rate", quoted(text)), RATE_EXAMPLES),
        });
    };
    let (amount, period) = (amount.trim(), period.trim());
    if amount.starts_with('-') && amount_of(unit, &amount[1..]).is_ok() {
        let what = format!("{} is negative", quoted(amount));
        return Err(TextError::new(what, "write an amount above 0"));
    }
    // Only of a fraction are there whole units in a longer period.
    let whole_rate = || whole_rate(amount, period).filter(|_| amount.contains('.'));
    let figure = amount_of(unit, amount).map_err(|error| match whole_rate() {
        Some(rate) if period_of(period, text).is_ok() => {
            TextError::new(error.what, format!("units are counted whole, write {rate}"))
        }
        _ => error,
    })?;
    Ok((at_least_one(figure, text)?, period_of(period, text)?))
}

/// Parses a duration: `500ms`, `30s`, `5min`, `2h`, `1d`, or seconds as a bare number. It may have
/// a decimal point (`0.5s`, `1.5h`) down to a microsecond, and may be zero.
///
/// # Errors
/// If the text is not a duration, is finer than a microsecond, or is longer than 400 days.
///
/// ```
/// use standpipe_config::parse::duration;
/// use standpipe_core::Span;
///
/// assert_eq!(duration("1.5h"), Ok(Span::secs(5_400)));
/// assert_eq!(duration("30"), Ok(Span::secs(30)));
/// assert!(duration("5m").is_err());
/// ```
pub fn duration(text: &str) -> Result<Span, TextError> {
    let (number, suffix) = split_number(text.trim());
    if number.is_empty() {
        return Err(not_a_duration(text));
    }
    let micros = match suffix {
        "" => 1_000_000,
        _ => unit_of_time(suffix, text).map_err(|error| several_units(text).unwrap_or(error))?,
    };
    micros_in(number, micros, text)
}

/// Parses a duration as [`duration`] does, but rejects zero.
///
/// # Errors
/// As [`duration`], and if the duration is zero.
pub(crate) fn positive_duration(text: &str) -> Result<Span, TextError> {
    match duration(text)? {
        Span::ZERO => Err(TextError::new(
            format!("{} is zero", quoted(text)),
            "write a longer duration, for example 100ms, 30s or 5min",
        )),
        span => Ok(span),
    }
}

/// Parses an amount: `1200`, `1_200`, `400k`, `2M`, `1.5G`. It may be zero.
///
/// # Errors
/// If the text is not an amount, or is negative, fractional or out of range.
///
/// ```
/// use standpipe_config::parse::amount;
///
/// assert_eq!(amount("400k"), Ok(400_000));
/// assert_eq!(amount("1_200"), Ok(1_200));
/// assert!(amount("1.5").is_err());
/// ```
pub fn amount(text: &str) -> Result<u64, TextError> {
    amount_of(&Unit::Requests, text)
}

/// Parses an amount of a unit. For `usd` the text is in dollars, with up to six decimals, and the
/// result in millionths of a dollar.
///
/// # Errors
/// As [`amount`].
pub fn amount_of(unit: &Unit, text: &str) -> Result<u64, TextError> {
    let (number, suffix) = split_number(text.trim());
    let times = match suffix {
        "" => 1,
        "k" => 1_000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        _ => return Err(not_an_amount(text, number, suffix)),
    };
    let fine = if *unit == Unit::Usd { 1_000_000 } else { 1 };
    let (what, remedy) = match scaled(number, times * fine) {
        Ok(amount) if amount <= bounds::AMOUNT => return Ok(amount),
        Ok(_) | Err(NumberError::TooLarge) => {
            ("is too large", format!("the most that is counted is {}", bounds::AMOUNT / fine))
        }
        Err(NumberError::Negative) => ("is negative", NOT_NEGATIVE.to_owned()),
        Err(NumberError::Fraction) if fine > 1 => {
            ("is finer than a millionth of a dollar", "write at most six decimals".to_owned())
        }
        Err(NumberError::Fraction) => {
            ("is not a whole number", "units are counted whole".to_owned())
        }
        Err(NumberError::NotANumber) => return Err(not_an_amount(text, number, suffix)),
    };
    Err(TextError::new(format!("{} {what}", quoted(text)), remedy))
}

/// Parses the cost of a call: `input_tokens=1200,output_tokens=800`.
///
/// # Errors
/// If a part is not `unit=amount`, or a unit is named twice.
///
/// ```
/// use standpipe_config::parse::costs;
/// use standpipe_core::Unit;
///
/// let cost = costs("input_tokens=1200,usd=0.05").unwrap();
/// assert_eq!(cost, [(Unit::InputTokens, 1_200), (Unit::Usd, 50_000)]);
/// ```
pub fn costs(text: &str) -> Result<Vec<(Unit, u64)>, TextError> {
    let mut costs: Vec<(Unit, u64)> = Vec::new();
    for part in text.split(',') {
        let Some((name, figure)) = part.split_once('=') else {
            if let Some(error) = grouped(text) {
                return Err(error);
            }
            return Err(TextError::new(
                format!("{} is not a cost", quoted(part)),
                "write unit=amount, for example \"input_tokens=1200,output_tokens=800\"",
            ));
        };
        let unit = match name.trim() {
            // Slots are no unit of a rate, but a call can take several.
            "parallel" => Unit::Parallel,
            name => unit(name)?,
        };
        if costs.iter().any(|(known, _)| *known == unit) {
            return Err(TextError::new(format!("`{unit}` is named twice"), "name each unit once"));
        }
        let amount = amount_of(&unit, figure.trim())?;
        costs.push((unit, amount));
    }
    if costs.len() > bounds::UNITS {
        return Err(TextError::new(
            format!("{} units in one cost", costs.len()),
            format!("at most {} are counted", bounds::UNITS),
        ));
    }
    Ok(costs)
}

/// Parses a limit: `requests=60/min` or `parallel=5`, with the options of the file's long form
/// after commas: `input_tokens=2M/min,burst=400k`. Output tokens and money are charged at the end
/// of a call, everything else at the start.
///
/// # Errors
/// If the text is not a limit, or its options contradict each other.
///
/// ```
/// use standpipe_config::parse::limit;
/// use standpipe_core::{Limit, Rule};
///
/// assert_eq!(limit("parallel=5"), Ok(Limit::new(Rule::Parallel { amount: 5 })));
/// assert!(limit("requests=60").is_err());
/// ```
pub fn limit(text: &str) -> Result<Limit, TextError> {
    let Some((name, figure)) = text.split_once('=') else {
        return Err(TextError::new(
            format!("{} is not a limit", quoted(text)),
            "write for example \"requests=60/min\" or \"parallel=5\"",
        ));
    };
    let (name, figure) = (name.trim(), figure.trim());
    if name == "parallel" {
        let next = figure.split_once(',').and_then(|(_, next)| next.split_once('='));
        if let Some((key, _)) = next.filter(|(key, _)| KNOWN_UNITS.contains(&key.trim())) {
            return Err(limit::unknown(key.trim(), ""));
        }
        return slots(figure).map(|amount| Limit::new(Rule::Parallel { amount }));
    }
    if let Some((key, value)) = synonym::meant(name, figure) {
        let what = format!("there is no unit `{name}`");
        return Err(TextError::new(what, format!("did you mean {key}={value}?")));
    }
    let unit = unit(name)?;
    let own = matches!(unit, Unit::Other(_));
    limit::with_options(unit, figure).map_err(|error| {
        // An own unit is valid, so a misspelled one shows only in its figure: `paralel=2`.
        let known = KNOWN_UNITS.into_iter().chain(["parallel"]);
        match nearest(name, known).filter(|_| own) {
            Some(meant) => TextError::new(
                format!("`{name}` is not a known unit"),
                format!("did you mean `{meant}`?"),
            ),
            None => error,
        }
    })
}

/// Parses a number of calls in flight.
///
/// # Errors
/// If the text is not a whole number of at least one.
pub fn slots(text: &str) -> Result<u64, TextError> {
    if text.contains(['/', ',']) {
        let is = if text.contains('/') { "is a rate" } else { "has options" };
        return Err(TextError::new(
            format!("parallel is {}, which {is}", quoted(text)),
            "`parallel` counts calls in flight: write a number alone, for example 5",
        ));
    }
    let slots = amount(text).map_err(|TextError { what, remedy }| {
        let remedy = match remedy.as_str() {
            AMOUNT_EXAMPLES => "write a whole number, for example 5".to_owned(),
            // A limit of 0 is an error too.
            NOT_NEGATIVE => "write a number above 0, for example 5".to_owned(),
            _ => remedy,
        };
        TextError::new(what, remedy)
    });
    at_least_one(slots?, text)
}

/// Parses the name of a built-in or custom unit.
///
/// # Errors
/// If the text does not match `[a-z][a-z0-9_]{0,31}`, or is `parallel`, which no rate counts.
pub fn unit(name: &str) -> Result<Unit, TextError> {
    if name == "parallel" {
        return Err(TextError::new(
            "`parallel` is not the unit of a rate",
            "it counts slots of calls in flight, write for example parallel = 5",
        ));
    }
    Unit::named(name).ok_or_else(|| {
        let lower = name.to_ascii_lowercase();
        let remedy = match nearest(&lower, KNOWN_UNITS.into_iter()) {
            Some(known) => format!("did you mean `{known}`?"),
            None if UnitName::new(&lower).is_some() => format!("write `{lower}`"),
            None => "use a-z, 0-9 and _, a letter first, at most 32 characters".to_owned(),
        };
        TextError::new(format!("{} is not the name of a unit", quoted(name)), remedy)
    })
}

/// Returns the error of a number whose thousands are separated by commas: `tokens=100,000`.
fn grouped(text: &str) -> Option<TextError> {
    let is_group = |part: &str| part.len() == 3 && part.bytes().all(|b| b.is_ascii_digit());
    let (_, figure) = text.rsplit_once('=')?;
    let figure = figure.split('/').next()?;
    let mut parts = figure.split(',');
    let first = parts.next()?.trim();
    let mut rest = parts.clone();
    let is_number = (1..=3).contains(&first.len()) && first.bytes().all(|b| b.is_ascii_digit());
    if !is_number || rest.next().is_none() || !parts.all(is_group) {
        return None;
    }
    let plain = figure.replace(',', "");
    let short = plain.parse().map(|number| format::amount(&Unit::Requests, number));
    let short = short.ok().filter(|short| *short != plain);
    let short = short.map(|short| format!(" or {short}")).unwrap_or_default();
    let what = format!("{} has commas", quoted(figure));
    Some(TextError::new(what, format!("write {plain}{short}")))
}

/// Returns when a unit is charged if its limit does not set `charged`.
#[must_use]
pub fn charged_by_default(unit: &Unit) -> Charged {
    match unit {
        // Both depend on the output, which is known only when the call ends.
        Unit::OutputTokens | Unit::Usd => Charged::End,
        _ => Charged::Start,
    }
}

/// The built-in units, which need no declaration.
pub const KNOWN_UNITS: [&str; 7] =
    ["requests", "input_tokens", "output_tokens", "tokens", "points", "content", "usd"];

/// Quotes user input for a message: escaped, and truncated if it is long.
#[must_use]
pub fn quoted(text: &str) -> String {
    let mut shown: String = text.chars().take(48).flat_map(char::escape_debug).collect();
    if text.chars().nth(48).is_some() {
        shown.push('…');
    }
    format!("\"{shown}\"")
}

impl TextError {
    pub(crate) fn new(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { what: what.into(), remedy: remedy.into() }
    }
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.what, self.remedy)
    }
}

impl std::error::Error for TextError {}

/// The remedy for a limit of zero.
pub(crate) const ZERO: &str = "write a limit above 0, or stop calls with `standpipe pause`";

const NOT_NEGATIVE: &str = "write an amount of 0 or more";

const AMOUNT_EXAMPLES: &str = "write for example 1200, 400k or 2M";

const RATE_EXAMPLES: &str = "write for example \"60/min\", \"30/2s\" or \"2M/h\"";

fn at_least_one(amount: u64, text: &str) -> Result<u64, TextError> {
    if amount == 0 {
        let what = format!("{} admits no call", quoted(text));
        return Err(TextError::new(what, ZERO));
    }
    Ok(amount)
}

/// Parses the part of a rate after the slash: a unit of time, with an optional number before it.
fn period_of(period: &str, rate: &str) -> Result<Span, TextError> {
    let (number, suffix) = split_number(period);
    if suffix.is_empty() {
        let what = format!("the period of the rate {} has no unit", quoted(rate));
        return Err(TextError::new(what, RATE_EXAMPLES));
    }
    let micros = unit_of_time(suffix, rate)?;
    let span = micros_in(if number.is_empty() { "1" } else { number }, micros, rate)?;
    if span == Span::ZERO {
        let what = format!("the period of the rate {} is zero", quoted(rate));
        return Err(TextError::new(what, RATE_EXAMPLES));
    }
    Ok(span)
}

/// Returns the microseconds in a unit of time.
fn unit_of_time(suffix: &str, whole: &str) -> Result<u64, TextError> {
    let remedy = match suffix {
        "ms" => return Ok(1_000),
        "s" => return Ok(1_000_000),
        "min" => return Ok(60_000_000),
        "h" => return Ok(3_600_000_000),
        "d" => return Ok(86_400_000_000),
        "m" => return Err(minutes_or_millis(whole)),
        "sec" | "secs" | "second" | "seconds" | "S" => "write `s` for seconds",
        "mins" | "minute" | "minutes" | "M" => "write `min` for minutes",
        "hr" | "hrs" | "hour" | "hours" | "H" => "write `h` for hours",
        "day" | "days" | "D" => "write `d` for days",
        "w" | "week" | "weeks" => "write weeks in days: 7d",
        _ => "the units of time are ms, s, min, h and d",
    };
    let what = format!("{} is not a unit of time in {}", quoted(suffix), quoted(whole));
    Err(TextError::new(what, remedy))
}

/// Returns the error of a duration with several units, such as `1h30m`, with the same in one.
fn several_units(text: &str) -> Option<TextError> {
    let (mut rest, mut total, mut count) = (text.trim(), 0_u64, 0);
    let mut finest = ("", 1);
    while !rest.is_empty() {
        let (number, after) = split_number(rest);
        let end = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        finest = match after[..end].trim() {
            // Behind hours it cannot be milliseconds.
            "m" | "min" => ("min", 60_000_000),
            "d" => ("d", 86_400_000_000),
            "h" => ("h", 3_600_000_000),
            "s" => ("s", 1_000_000),
            "ms" => ("ms", 1_000),
            _ => return None,
        };
        total = total.checked_add(number.parse::<u64>().ok()?.checked_mul(finest.1)?)?;
        (rest, count) = (&after[end..], count + 1);
    }
    let same = format!("{}{}", total / finest.1, finest.0);
    let is_exact = count > 1 && total.is_multiple_of(finest.1);
    let what = format!("{} has several units", quoted(text));
    is_exact.then(|| TextError::new(what, format!("a duration has one unit, write {same}")))
}

/// `m` is minutes to some and milliseconds to others.
fn minutes_or_millis(whole: &str) -> TextError {
    let start = whole.trim_end().trim_end_matches('m');
    let start = if start.len() > 20 { "" } else { start };
    let what = format!("\"m\" is not a unit of time in {}", quoted(whole));
    TextError::new(what, format!("write {start}min or {start}ms"))
}

fn micros_in(number: &str, micros: u64, text: &str) -> Result<Span, TextError> {
    let (what, remedy) = match scaled(number, micros) {
        Ok(span) if span <= bounds::SPAN.0 => return Ok(Span(span)),
        Ok(_) | Err(NumberError::TooLarge) => ("is too long", "write at most 400d"),
        Err(NumberError::Negative) => ("is negative", "write 0 or more"),
        Err(NumberError::Fraction) => ("is finer than a microsecond", "write fewer decimals"),
        Err(NumberError::NotANumber) => return Err(not_a_duration(text)),
    };
    Err(TextError::new(format!("{} {what}", quoted(text)), remedy))
}

fn not_a_duration(text: &str) -> TextError {
    TextError::new(
        format!("{} is not a duration", quoted(text)),
        "write for example 500ms, 30s, 5min, 2h or 1d",
    )
}

fn not_an_amount(text: &str, number: &str, suffix: &str) -> TextError {
    let remedy = match suffix {
        _ if number.is_empty() => AMOUNT_EXAMPLES,
        "K" => "write a small `k` for thousands",
        "m" => "write a capital `M` for millions",
        "g" | "B" | "b" | "T" => "the multiples are k, M and G",
        _ => AMOUNT_EXAMPLES,
    };
    TextError::new(format!("{} is not an amount", quoted(text)), remedy)
}

#[cfg(test)]
mod tests;
