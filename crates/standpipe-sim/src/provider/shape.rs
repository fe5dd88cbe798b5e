//! Replies: the status, the headers and the body of each real provider.
//!
//! It decides nothing. A refusal that a provider does not document gets the reply of the nearest
//! one that it does, and where no text is published the text is ours.

mod anthropic;
mod azure;
mod gemini;
mod github;
mod mistral;
mod openai;
mod plain;

use super::call::{Call, Unit, Used};
use super::refusal::{Level, Refusal};
use super::reply::{Headers, Reply};
use super::rule::Options;
use crate::calendar::{DAY, HOUR, MINUTE, SECOND, Wall};
use crate::random::Random;

/// Whose replies are imitated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Resets as moments, tokens left rounded to a thousand, 529 when overloaded.
    Anthropic,
    /// Resets as lengths in Go's notation, codes in the body.
    OpenAi,
    /// Resets as seconds; the code in the body is the status.
    Azure,
    /// No headers; everything is in the body.
    Gemini,
    /// No resets; one text for every rate.
    Mistral,
    /// Resets as seconds since 1970; 403 rather than 429.
    GitHub,
    /// The headers and the problem types of the IETF draft.
    Plain,
}

/// What a reply is built from.
#[derive(Debug)]
pub(super) struct Scene<'a> {
    pub(super) options: &'a Options,
    /// Now, by the provider's clock.
    pub(super) wall: Wall,
    /// The start of the world, by the provider's clock.
    pub(super) started: Wall,
    pub(super) levels: Vec<Level>,
    pub(super) call: Call,
    pub(super) seed: u64,
    /// The number of the call.
    pub(super) number: u64,
}

pub(super) fn success(shape: Shape, scene: &Scene, used: &Used, took: u64) -> Reply {
    match shape {
        Shape::Anthropic => anthropic::success(scene, used),
        Shape::OpenAi => openai::success(scene, used, took),
        Shape::Azure => azure::success(scene, used, took),
        Shape::Gemini => gemini::success(scene, used),
        Shape::Mistral => mistral::success(scene, used),
        Shape::GitHub => github::success(scene),
        Shape::Plain => plain::success(scene, used),
    }
}

pub(super) fn refusal(shape: Shape, scene: &Scene, refusal: &Refusal) -> Reply {
    match shape {
        Shape::Anthropic => anthropic::refusal(scene, refusal),
        Shape::OpenAi => openai::refusal(scene, refusal),
        Shape::Azure => azure::refusal(scene, refusal),
        Shape::Gemini => gemini::refusal(scene, refusal),
        Shape::Mistral => mistral::refusal(scene, refusal),
        Shape::GitHub => github::refusal(scene, refusal),
        Shape::Plain => plain::refusal(scene, refusal),
    }
}

impl Scene<'_> {
    /// The limit on a unit that the headers show: the one with least left.
    fn level(&self, unit: Unit) -> Option<&Level> {
        let of_unit = |level: &&Level| level.unit == unit;
        let least = |levels: &mut dyn Iterator<Item = &Level>| {
            levels.min_by_key(|level| level.left).copied()
        };
        let shown = least(&mut self.levels.iter().filter(of_unit).filter(|level| level.shown));
        let any = shown.or_else(|| least(&mut self.levels.iter().filter(of_unit)))?;
        self.levels.iter().find(|level| **level == any)
    }

    /// What every reply opens with.
    fn headers(&self, content: &str) -> Headers {
        let mut headers = Headers::default();
        headers.push("date", self.wall.http());
        headers.push("content-type", content);
        headers
    }

    /// An instant of the world, by the provider's clock.
    const fn moment(&self, at: u64) -> Wall {
        self.started.plus(at)
    }

    /// A name made of these letters, the same for the same call; each `salt` gives another.
    fn name(&self, letters: &str, length: usize, salt: u64) -> String {
        let mut random = Random::new(self.seed ^ self.number.rotate_left(32) ^ salt);
        draw_name(&mut random, letters, length)
    }

    /// The organization's name, as a UUID: the same for every call.
    fn organization(&self) -> String {
        let mut random = Random::new(self.seed);
        let mut part = |length| draw_name(&mut random, HEX, length);
        let (first, second, third) = (part(8), part(4), part(3));
        format!("{first}-{second}-4{third}-8{}-{}", part(3), part(12))
    }
}

fn draw_name(random: &mut Random, letters: &str, length: usize) -> String {
    let letters = letters.as_bytes();
    let letter = |random: &mut Random| letters[random.below(letters.len() as u64) as usize];
    (0..length).map(|_| char::from(letter(random))).collect()
}

const HEX: &str = "0123456789abcdef";
const ALPHANUMERIC: &str = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Whole seconds, rounded up, so that a client that waits this long is not early.
const fn seconds(span: u64) -> u64 {
    span.div_ceil(SECOND)
}

/// Whole milliseconds, rounded up.
const fn millis(span: u64) -> u64 {
    span.div_ceil(1_000)
}

/// `minute` and the like, as in *per minute*.
fn period_name(period: u64) -> String {
    match period {
        SECOND => "second".to_owned(),
        MINUTE => "minute".to_owned(),
        HOUR => "hour".to_owned(),
        DAY => "day".to_owned(),
        other => format!("{} seconds", crate::calendar::decimal(other, 6)),
    }
}

/// `30,000`
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        let texts = [0, 999, 1_000, 30_000, 1_234_567].map(grouped);
        assert_eq!(texts, ["0", "999", "1,000", "30,000", "1,234,567"]);
    }
}
