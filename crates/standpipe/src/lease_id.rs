//! The name of a lease as it leaves the process: opaque, safe in a URL, a shell and a file name.
//!
//! It carries the pool and the ledger's own name for the lease, and a checksum, so that a mistyped
//! or cut one is told from one that has ended.

mod base64;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use standpipe_core::Key;
use standpipe_store::{PoolName, hash};

/// The name of a lease.
///
/// ```
/// use standpipe::LeaseId;
///
/// let wrong = "not-a-lease".parse::<LeaseId>().unwrap_err();
/// assert!(wrong.to_string().contains("not a lease id"));
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseId {
    pool: PoolName,
    session: u64,
    number: u64,
}

/// Why a text is not a lease id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidLeaseId {
    /// It does not look like one.
    NotALease,
    /// It looks like one, but something of it is missing or changed.
    Damaged,
}

/// How every lease id begins; the figure is that of its layout.
const PREFIX: &str = "lease1_";

/// Bytes before the pool's name: checksum, session and number.
const FIXED: usize = 4 + 8 + 8;

impl LeaseId {
    pub(crate) const fn new(pool: PoolName, key: Key) -> Self {
        Self { pool, session: key.session, number: key.number }
    }

    /// The pool the lease is on.
    #[must_use]
    pub const fn pool(&self) -> &PoolName {
        &self.pool
    }

    pub(crate) const fn key(&self) -> Key {
        Key { session: self.session, number: self.number }
    }
}

impl fmt::Display for LeaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut content = Vec::with_capacity(FIXED + self.pool.as_str().len());
        content.extend_from_slice(&self.session.to_be_bytes());
        content.extend_from_slice(&self.number.to_be_bytes());
        content.extend_from_slice(self.pool.as_str().as_bytes());
        let mut bytes = checksum(&content).to_vec();
        bytes.append(&mut content);
        write!(f, "{PREFIX}{}", base64::encode(&bytes))
    }
}

impl fmt::Debug for LeaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for LeaseId {
    type Err = InvalidLeaseId;

    fn from_str(text: &str) -> Result<Self, InvalidLeaseId> {
        let code = text.strip_prefix(PREFIX).ok_or(InvalidLeaseId::NotALease)?;
        if code.len() > LONGEST {
            return Err(InvalidLeaseId::Damaged);
        }
        let bytes = base64::decode(code).ok_or(InvalidLeaseId::Damaged)?;
        read(&bytes).ok_or(InvalidLeaseId::Damaged)
    }
}

/// More than any pool's name needs.
const LONGEST: usize = 1_024;

fn read(bytes: &[u8]) -> Option<LeaseId> {
    let (sum, content) = bytes.split_first_chunk::<4>()?;
    if checksum(content) != *sum {
        return None;
    }
    let (session, rest) = content.split_first_chunk::<8>()?;
    let (number, pool) = rest.split_first_chunk::<8>()?;
    let pool = std::str::from_utf8(pool).ok()?.parse().ok()?;
    let (session, number) = (u64::from_be_bytes(*session), u64::from_be_bytes(*number));
    Some(LeaseId { pool, session, number })
}

fn checksum(content: &[u8]) -> [u8; 4] {
    let [a, b, c, d, ..] = hash(SEED, content).to_be_bytes();
    [a, b, c, d]
}

/// So that nothing else we hash looks like a lease id.
const SEED: u64 = 0x006c_6561_7365_6964;

impl Serialize for LeaseId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for LeaseId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl fmt::Display for InvalidLeaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotALease => write!(
                f,
                "not a lease id; one begins with `{PREFIX}` and is what `reserve` printed"
            ),
            Self::Damaged => f.write_str(
                "a lease id with something missing or changed; copy it whole, as `reserve` printed \
                 it",
            ),
        }
    }
}

impl std::error::Error for InvalidLeaseId {}

#[cfg(test)]
mod tests {
    use super::*;

    fn id() -> LeaseId {
        let key = Key { session: 0x00ab_cdef_0123_4567, number: 42 };
        LeaseId::new("anthropic/sonnet".parse().unwrap(), key)
    }

    #[test]
    fn it_is_read_as_it_was_written() {
        let text = id().to_string();
        assert_eq!(text.parse(), Ok(id()));
        let safe = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        assert!(text.chars().all(safe), "{text}");
    }

    #[test]
    fn any_single_change_is_noticed() {
        let text = id().to_string();
        for at in PREFIX.len()..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(bytes).unwrap();
            if changed != text {
                assert_eq!(changed.parse::<LeaseId>(), Err(InvalidLeaseId::Damaged), "{changed}");
            }
            let cut = &text[..at];
            assert_eq!(cut.parse::<LeaseId>(), Err(InvalidLeaseId::Damaged), "{cut}");
        }
    }

    #[test]
    fn garbage_is_told_from_damage() {
        let long = format!("{PREFIX}{}", "A".repeat(10_000));
        assert_eq!(long.parse::<LeaseId>(), Err(InvalidLeaseId::Damaged));
        for garbage in ["", "x", "🚰", "lease", "lease2_AAAA", "../../etc/passwd\n"] {
            assert_eq!(garbage.parse::<LeaseId>(), Err(InvalidLeaseId::NotALease), "{garbage}");
        }
    }
}
