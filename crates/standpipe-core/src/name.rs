//! Bounded, validated strings.
//!
//! Each type is checked once, in its constructor: a value is always short and printable, so no
//! other module has to check it again.

use alloc::boxed::Box;
use core::fmt;

/// The name of an agent: `[A-Za-z0-9._@-]{1,64}`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentName(Box<str>);

/// The name of a unit that the configuration declares: `[a-z][a-z0-9_]{0,31}`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnitName(Box<str>);

/// A string of the caller that the core stores but never interprets: an id, a model, a task.
///
/// It has 1 to 128 bytes and no control characters.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text(Box<str>);

/// The name of another pool, which the core stores but never interprets.
///
/// It has 1 to 512 bytes of `[A-Za-z0-9._:@/-]`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PoolRef(Box<str>);

impl PoolRef {
    /// Returns the name if it matches the pattern.
    #[must_use]
    pub fn new(name: &str) -> Option<Self> {
        let fits = (1..=512).contains(&name.len());
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"._:@/-".contains(&b);
        (fits && name.bytes().all(plain)).then(|| Self(name.into()))
    }
}

impl AgentName {
    /// The name of the shared record of all agents beyond [`crate::bounds::AGENTS`].
    pub const OTHER: &str = "other";

    /// Returns the name if it matches the pattern.
    #[must_use]
    pub fn new(name: &str) -> Option<Self> {
        let fits = (1..=64).contains(&name.len());
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"._@-".contains(&b);
        (fits && name.bytes().all(plain)).then(|| Self(name.into()))
    }
}

impl UnitName {
    /// Returns the name if it matches the pattern.
    #[must_use]
    pub fn new(name: &str) -> Option<Self> {
        let fits = (1..=32).contains(&name.len());
        let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
        let starts_with_letter = name.bytes().next().is_some_and(|b| b.is_ascii_lowercase());
        (fits && starts_with_letter && name.bytes().all(plain)).then(|| Self(name.into()))
    }
}

impl Text {
    /// Returns the text if it is short and printable.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let fits = (1..=128).contains(&text.len());
        (fits && !text.chars().any(char::is_control)).then(|| Self(text.into()))
    }
}

macro_rules! string_like {
    ($($name:ident),*) => {$(
        impl $name {
            /// Returns the string.
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

string_like!(AgentName, UnitName, Text, PoolRef);

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
        for bad in ["", "a b/c", "a/\u{1f6b0}", &"x".repeat(513)] {
            assert_eq!(PoolRef::new(bad), None, "{bad:?}");
        }
        assert!(PoolRef::new("anthropic/org:eu@1").is_some());
        assert!(AgentName::new("data@host-1.example").is_some());
        assert!(UnitName::new("gpu_seconds").is_some());
        assert!(Text::new("claude-sonnet-4-5 🚰").is_some());
    }
}
