//! The name of a pool, and what makes a text an invalid one.

use std::fmt;
use std::ops::Deref;
use std::str::FromStr;
use std::sync::Arc;

/// The name of a pool: `provider/model-or-scope`.
///
/// It has two to four segments of `[A-Za-z0-9._:@-]`. The first has at most 64 characters, the
/// others at most 128.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PoolName(Arc<str>);

/// Why a text is not a valid pool name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidPoolName {
    /// There is only one segment, or the text is empty.
    NoScope,
    /// There are more than four segments.
    TooDeep,
    /// A segment is empty or too long.
    Length,
    /// A character is not allowed in names.
    Character(char),
}

impl PoolName {
    /// Returns the name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for PoolName {
    type Err = InvalidPoolName;

    fn from_str(name: &str) -> Result<Self, InvalidPoolName> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "._:@-/".contains(c);
        if let Some(odd) = name.chars().find(|c| !plain(*c)) {
            return Err(InvalidPoolName::Character(odd));
        }
        let segments = name.split('/').count();
        if segments < 2 {
            return Err(InvalidPoolName::NoScope);
        }
        if segments > 4 {
            return Err(InvalidPoolName::TooDeep);
        }
        let longest = |at: usize| if at == 0 { 64 } else { 128 };
        let fits = |(at, segment): (usize, &str)| (1..=longest(at)).contains(&segment.len());
        if !name.split('/').enumerate().all(fits) {
            return Err(InvalidPoolName::Length);
        }
        Ok(Self(name.into()))
    }
}

/// A name is shown and compared wherever text is.
impl Deref for PoolName {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PoolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for PoolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for InvalidPoolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoScope => {
                f.write_str("a pool is named `provider/scope`, for example `anthropic/sonnet`")
            }
            Self::TooDeep => f.write_str("a pool's name has at most four parts between slashes"),
            Self::Length => f.write_str(
                "a part of the name is empty or too long; the first has at most 64 characters, \
                 the others 128",
            ),
            Self::Character(odd) => {
                write!(f, "{odd:?} is not allowed in a pool's name; use A-Z a-z 0-9 . _ : @ - /")
            }
        }
    }
}

impl std::error::Error for InvalidPoolName {}

#[cfg(feature = "serde")]
impl serde::Serialize for PoolName {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for PoolName {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        name.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_or_refused_with_the_reason() {
        for good in ["anthropic/sonnet", "a/b/c/d", "my/slots", "x@y:1/z_2.-"] {
            assert_eq!(good.parse::<PoolName>().map(|name| name.to_string()), Ok(good.to_owned()));
        }
        let wrong = |name: &str| name.parse::<PoolName>().unwrap_err();
        assert_eq!(wrong(""), InvalidPoolName::NoScope);
        assert_eq!(wrong("sonnet"), InvalidPoolName::NoScope);
        assert_eq!(wrong("a/b/c/d/e"), InvalidPoolName::TooDeep);
        assert_eq!(wrong("a//b"), InvalidPoolName::Length);
        assert_eq!(wrong(&format!("a/{}", "b".repeat(129))), InvalidPoolName::Length);
        assert_eq!(wrong("a/b\nc"), InvalidPoolName::Character('\n'));
        assert_eq!(wrong("a/🚰"), InvalidPoolName::Character('🚰'));
    }
}
