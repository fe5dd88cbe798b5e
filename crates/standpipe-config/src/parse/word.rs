//! Enums that are written as words, in the configuration file and on the command line.

use standpipe_core::{Charged, Order, Priority};

use super::{TextError, quoted};
use crate::nearest::nearest;
use crate::settings::{KeyPools, SplitField, StoreFailure};

/// An enum with one word for each value.
pub(crate) trait Word: Copy + PartialEq + 'static {
    /// Every value with its word.
    const WORDS: &'static [(&'static str, Self)];

    /// Parses a word. The error suggests the nearest one, else lists all.
    fn parse(text: &str) -> Result<Self, TextError> {
        let mut words = Self::WORDS.iter();
        if let Some((_, value)) = words.find(|(word, _)| *word == text) {
            return Ok(*value);
        }
        let words = Self::WORDS.iter().map(|(word, _)| *word);
        let remedy = match nearest(text, words.clone()) {
            Some(meant) => format!("did you mean \"{meant}\"?"),
            None => format!("write one of {}", words.collect::<Vec<_>>().join(", ")),
        };
        Err(TextError::new(format!("{} is not a known value", quoted(text)), remedy))
    }

    /// Returns the word of a value.
    fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(_, value)| *value == self).map_or("", |(word, _)| word)
    }
}

impl Word for Priority {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("critical", Self::Critical),
        ("standard", Self::Standard),
        ("background", Self::Background),
    ];
}

impl Word for Charged {
    const WORDS: &'static [(&'static str, Self)] = &[("start", Self::Start), ("end", Self::End)];
}

impl Word for Order {
    const WORDS: &'static [(&'static str, Self)] =
        &[("arrival", Self::Arrival), ("fair", Self::Fair)];
}

impl Word for KeyPools {
    const WORDS: &'static [(&'static str, Self)] =
        &[("shared", Self::Shared), ("separate", Self::Separate)];
}

impl Word for SplitField {
    const WORDS: &'static [(&'static str, Self)] =
        &[("user", Self::User), ("organization", Self::Organization), ("project", Self::Project)];
}

impl Word for StoreFailure {
    const WORDS: &'static [(&'static str, Self)] =
        &[("closed", Self::Closed), ("open", Self::Open), ("share", Self::Share)];
}
