//! A place in the journal, as a text that can be given back.

use std::fmt;
use std::str::FromStr;

/// Behind an event in the journal: from here on everything is new. See
/// [`Journal::follow_from`](super::Journal::follow_from).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JournalCursor {
    parts: Vec<Part>,
}

/// How far the files of one name were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// Which name.
    pub(super) letter: char,
    /// Which of its files.
    pub(super) origin: u64,
    /// Up to where.
    pub(super) at: u64,
}

impl JournalCursor {
    pub(super) fn new(parts: impl IntoIterator<Item = Part>) -> Self {
        Self { parts: parts.into_iter().collect() }
    }

    pub(super) fn part(&self, letter: char) -> Option<Part> {
        self.parts.iter().copied().find(|part| part.letter == letter)
    }
}

impl fmt::Display for JournalCursor {
    /// `j5f3a…-120.t9c…-77`; `0` while there is nothing.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.parts.is_empty() {
            return f.write_str("0");
        }
        for (number, Part { letter, origin, at }) in self.parts.iter().enumerate() {
            let dot = if number == 0 { "" } else { "." };
            write!(f, "{dot}{letter}{origin:x}-{at}")?;
        }
        Ok(())
    }
}

/// A text that is not a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidCursor;

impl fmt::Display for InvalidCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a cursor of this journal; use the `id` of an event")
    }
}

impl std::error::Error for InvalidCursor {}

impl FromStr for JournalCursor {
    type Err = InvalidCursor;

    fn from_str(text: &str) -> Result<Self, InvalidCursor> {
        if text == "0" {
            return Ok(Self::default());
        }
        let parts: Option<Vec<Part>> = text.split('.').map(part).collect();
        parts.filter(|parts| parts.len() <= 3).map(Self::new).ok_or(InvalidCursor)
    }
}

fn part(text: &str) -> Option<Part> {
    let letter = text.chars().next().filter(char::is_ascii_lowercase)?;
    let (origin, at) = text.get(1..)?.split_once('-')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_hexdigit());
    if !digits(origin) || !digits(at) {
        return None;
    }
    Some(Part { letter, origin: u64::from_str_radix(origin, 16).ok()?, at: at.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_read_as_it_was_written() {
        let part = |letter, origin, at| Part { letter, origin, at };
        for mark in [
            JournalCursor::default(),
            JournalCursor::new([part('j', 0x5f3a, 120)]),
            JournalCursor::new([part('j', u64::MAX, 0), part('t', 1, u64::MAX)]),
        ] {
            assert_eq!(mark.to_string().parse(), Ok(mark));
        }
        for odd in ["", "j", "j5", "j5-", "j-5", "5-5", "jx-5", "j5-5.", "j+5-5", "j5--5"] {
            assert_eq!(odd.parse::<JournalCursor>(), Err(InvalidCursor), "{odd}");
        }
    }
}
