//! The name of a lease as it leaves the process: opaque, safe in a URL, a shell and a file name.
//!
//! It carries the pool and the ledger's own name for the lease, and a checksum, so that a mistyped
//! or truncated id is distinguished from a lease that has ended.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use standpipe_core::Key;
use standpipe_store::{PoolName, hash};

/// The name of a lease.
///
/// ```
/// use standpipe_observe::lease_id::LeaseId;
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
    /// The id of the ledger's lease `key` on a pool.
    #[must_use]
    pub const fn new(pool: PoolName, key: Key) -> Self {
        Self { pool, session: key.session, number: key.number }
    }

    /// The pool the lease is on.
    #[must_use]
    pub const fn pool(&self) -> &PoolName {
        &self.pool
    }

    /// The ledger's own name for the lease.
    #[must_use]
    pub const fn key(&self) -> Key {
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
        write!(f, "{PREFIX}{}", URL_SAFE_NO_PAD.encode(&bytes))
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
        let bytes = URL_SAFE_NO_PAD.decode(code).map_err(|_| InvalidLeaseId::Damaged)?;
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

    /// Ids that were given out by earlier versions are still read.
    #[test]
    fn its_text_never_changes() {
        assert_eq!(id().to_string(), "lease1_pljiWACrze8BI0VnAAAAAAAAACphbnRocm9waWMvc29ubmV0");
        let key = Key { session: u64::MAX, number: u64::MAX };
        assert_eq!(
            LeaseId::new("a/b".parse().unwrap(), key).to_string(),
            "lease1_9Tdg_P____________________9hL2I"
        );
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
        // Bits that no byte needs must be zero, or one lease would have several ids.
        let spare = "lease1_9Tdg_P____________________9hL2J";
        assert_eq!(spare.parse::<LeaseId>(), Err(InvalidLeaseId::Damaged));
        let long = format!("{PREFIX}{}", "A".repeat(10_000));
        assert_eq!(long.parse::<LeaseId>(), Err(InvalidLeaseId::Damaged));
        for garbage in ["", "x", "🚰", "lease", "lease2_AAAA", "../../etc/passwd\n"] {
            assert_eq!(garbage.parse::<LeaseId>(), Err(InvalidLeaseId::NotALease), "{garbage}");
        }
    }
}
