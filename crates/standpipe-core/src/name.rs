//! Bounded, validated strings: once built they are known to be short and printable.

use alloc::boxed::Box;
use core::fmt;

/// The name of an agent: `[A-Za-z0-9._@-]{1,64}`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentName(Box<str>);

/// The name of a unit by declaration: `[a-z][a-z0-9_]{0,31}`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnitName(Box<str>);

/// A word of the caller's that the ledger keeps but does not read: an id, a model, a task. 1 to 128
/// bytes without control characters.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text(Box<str>);

impl AgentName {
    /// The agent that stands for everybody beyond the bound of known agents.
    pub const OTHER: &str = "other";

    /// The name, if it is one.
    #[must_use]
    pub fn new(name: &str) -> Option<Self> {
        let fits = (1..=64).contains(&name.len());
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"._@-".contains(&b);
        (fits && name.bytes().all(plain)).then(|| Self(name.into()))
    }
}

impl UnitName {
    /// The name, if it is one.
    #[must_use]
    pub fn new(name: &str) -> Option<Self> {
        let fits = (1..=32).contains(&name.len());
        let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
        let letter_first = name.bytes().next().is_some_and(|b| b.is_ascii_lowercase());
        (fits && letter_first && name.bytes().all(plain)).then(|| Self(name.into()))
    }
}

impl Text {
    /// The text, if it is short and printable.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let fits = (1..=128).contains(&text.len());
        (fits && !text.chars().any(char::is_control)).then(|| Self(text.into()))
    }
}

macro_rules! string_like {
    ($($name:ident),*) => {$(
        impl $name {
            /// The characters.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }
    )*};
}

impl core::borrow::Borrow<str> for AgentName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

string_like!(AgentName, UnitName, Text);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_outside_their_alphabet_or_length_are_refused() {
        for bad in ["", "a b", "naïve", "line\nbreak", "🚰", &"x".repeat(65)] {
            assert_eq!(AgentName::new(bad), None, "{bad:?}");
        }
        for bad in ["", "Tokens", "1st", "_x", "a-b", &"x".repeat(33)] {
            assert_eq!(UnitName::new(bad), None, "{bad:?}");
        }
        for bad in ["", "tab\there", &"x".repeat(129)] {
            assert_eq!(Text::new(bad), None, "{bad:?}");
        }
        assert!(AgentName::new("data@host-1.example").is_some());
        assert!(UnitName::new("gpu_seconds").is_some());
        assert!(Text::new("claude-sonnet-4-5 🚰").is_some());
    }
}
