//! Shares and multipliers, as thousandths: `25%`, `0.8`, `1.5`.

use super::number::{NumberError, scaled};
use super::{TextError, quoted};
use crate::format::decimal;

/// Parses a percentage as thousandths: `25%` is 250, `12.5%` is 125. It may be zero.
///
/// # Errors
/// If the text is not a percentage, is finer than a tenth of a percent, or is above 100 %.
pub fn percent(text: &str) -> Result<u16, TextError> {
    let Some(number) = text.trim().strip_suffix('%') else {
        return Err(TextError::new(
            format!("{} is not a percentage", quoted(text)),
            "write for example \"25%\"",
        ));
    };
    thousandths(number.trim(), 10, text)
}

/// Parses a share as thousandths, either as a percentage or as a fraction of one: `80%`, `0.8`,
/// `1`. It may be zero.
///
/// # Errors
/// As [`percent`].
pub fn share(text: &str) -> Result<u16, TextError> {
    if text.trim().ends_with('%') {
        return percent(text);
    }
    thousandths(text.trim(), 1_000, text)
}

/// Parses a margin as thousandths, as a percentage or as a fraction of one: `20%`, `0.2`, `0`.
///
/// # Errors
/// If the text is not a share, is finer than a tenth of a percent, or leaves nothing usable.
pub fn margin(text: &str) -> Result<u16, TextError> {
    let written = text.trim();
    let (number, times) = match written.strip_suffix('%') {
        Some(number) => (number.trim(), 10),
        None => (written, 1_000),
    };
    let example = "write \"auto\", or for example \"20%\" or 0.2".to_owned();
    let (what, remedy) = match scaled(number, times) {
        Ok(share) if share < 1_000 => return Ok(u16::try_from(share).unwrap_or(999)),
        Ok(_) | Err(NumberError::TooLarge) => {
            // A bare number of 1 or more is most likely a percentage without its sign.
            let meant = scaled(written, 10).ok().filter(|meant| *meant < 1_000);
            let meant = meant.map(|meant| format!("\"{number}%\" or {}", decimal(meant, 1_000)));
            ("leaves nothing usable", meant.map_or(example, |meant| format!("write {meant}")))
        }
        Err(NumberError::Negative) => ("is negative", "write 0 to use the whole rate".to_owned()),
        Err(NumberError::Fraction) => {
            ("is finer than a tenth of a percent", "write for example \"12.5%\"".to_owned())
        }
        Err(NumberError::NotANumber) => ("is not a share", example),
    };
    Err(TextError::new(format!("{} {what}", quoted(text)), remedy))
}

/// Parses a multiplier of at least one as thousandths: `2` is 2,000, `1.5` is 1,500.
///
/// # Errors
/// If the text is not a number from 1 to 100, or is finer than a thousandth.
pub fn factor(text: &str) -> Result<u32, TextError> {
    let (what, remedy) = match scaled(text.trim(), 1_000) {
        Ok(factor @ 1_000..=100_000) => return Ok(u32::try_from(factor).unwrap_or(100_000)),
        Ok(0..1_000) | Err(NumberError::Negative) => {
            ("shrinks what it multiplies", "write 1 or more")
        }
        Ok(_) | Err(NumberError::TooLarge) => ("is too large a factor", "write at most 100"),
        Err(NumberError::Fraction) => {
            ("is finer than a thousandth", "write at most three decimals")
        }
        Err(NumberError::NotANumber) => ("is not a number", "write for example 2 or 1.5"),
    };
    Err(TextError::new(format!("{} {what}", quoted(text)), remedy))
}

fn thousandths(number: &str, times: u64, text: &str) -> Result<u16, TextError> {
    let (what, remedy) = match scaled(number, times) {
        Ok(share) if share <= 1_000 => return Ok(u16::try_from(share).unwrap_or(1_000)),
        Ok(_) | Err(NumberError::TooLarge) => ("is more than 100 %", "write at most \"100%\""),
        Err(NumberError::Negative) => ("is negative", "write a share between \"0%\" and \"100%\""),
        Err(NumberError::Fraction) => ("is finer than a tenth of a percent", "write one decimal"),
        Err(NumberError::NotANumber) => ("is not a share", "write for example \"25%\""),
    };
    Err(TextError::new(format!("{} {what}", quoted(text)), remedy))
}
