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

/// The name of a lease: one call on one pool, or on a pool and those it draws on besides.
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
    /// The same call on the other pools that it draws on.
    others: Vec<(PoolName, Key)>,
}

/// Why a text is not a lease id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidLeaseId {
    /// It does not look like one.
    NotALease,
    /// It looks like one, but something of it is missing or changed.
    Damaged,
}

/// How the id of a lease on one pool begins; the figure is that of its layout.
const PREFIX: &str = "lease1_";

/// How the id of a lease on several pools begins.
const PREFIX_OF_SEVERAL: &str = "lease2_";

/// The most pools that one call draws on.
pub const MAX_POOLS: usize = 8;

impl LeaseId {
    /// The id of the ledger's lease `key` on a pool.
    #[must_use]
    pub const fn new(pool: PoolName, key: Key) -> Self {
        Self { pool, session: key.session, number: key.number, others: Vec::new() }
    }

    /// Adds the same call's leases on other pools.
    #[must_use]
    pub fn with_others(mut self, others: impl IntoIterator<Item = (PoolName, Key)>) -> Self {
        self.others.extend(others);
        self
    }

    /// The pool that the caller named.
    #[must_use]
    pub const fn pool(&self) -> &PoolName {
        &self.pool
    }

    /// The ledger's own name for the lease on that pool.
    #[must_use]
    pub const fn key(&self) -> Key {
        Key { session: self.session, number: self.number }
    }

    /// The leases of the same call on the other pools that it draws on.
    #[must_use]
    pub fn others(&self) -> &[(PoolName, Key)] {
        &self.others
    }

    /// All pools of the call, the named one first.
    pub fn pools(&self) -> impl Iterator<Item = &PoolName> {
        std::iter::once(&self.pool).chain(self.others.iter().map(|(pool, _)| pool))
    }

    /// The ledger's name for the lease on a pool, if the call draws on it.
    #[must_use]
    pub fn key_on(&self, pool: &PoolName) -> Option<Key> {
        if *pool == self.pool {
            return Some(self.key());
        }
        self.others.iter().find(|(other, _)| other == pool).map(|(_, key)| *key)
    }

    /// The bytes behind the checksum: session, number and pool; of several, each with the length of
    /// its pool.
    fn content(&self) -> Vec<u8> {
        let mut content = Vec::with_capacity(18 + self.pool.as_str().len());
        let mut put = |key: Key, pool: &PoolName, length: Option<u16>| {
            content.extend_from_slice(&key.session.to_be_bytes());
            content.extend_from_slice(&key.number.to_be_bytes());
            content.extend(length.into_iter().flat_map(u16::to_be_bytes));
            content.extend_from_slice(pool.as_str().as_bytes());
        };
        let length = |pool: &PoolName| u16::try_from(pool.as_str().len()).ok();
        let several = !self.others.is_empty();
        put(self.key(), &self.pool, length(&self.pool).filter(|_| several));
        for (pool, key) in &self.others {
            put(*key, pool, length(pool));
        }
        content
    }
}

impl fmt::Display for LeaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let content = self.content();
        let bytes = [&checksum(&content)[..], &content].concat();
        f.write_str(if self.others.is_empty() { PREFIX } else { PREFIX_OF_SEVERAL })?;
        f.write_str(&URL_SAFE_NO_PAD.encode(&bytes))
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
        let (code, several) = match text.strip_prefix(PREFIX) {
            Some(code) => (code, false),
            None => {
                let code = text.strip_prefix(PREFIX_OF_SEVERAL);
                (code.ok_or(InvalidLeaseId::NotALease)?, true)
            }
        };
        if code.len() > LONGEST {
            return Err(InvalidLeaseId::Damaged);
        }
        let bytes = URL_SAFE_NO_PAD.decode(code).map_err(|_| InvalidLeaseId::Damaged)?;
        let (sum, content) = bytes.split_first_chunk::<4>().ok_or(InvalidLeaseId::Damaged)?;
        let content = (checksum(content) == *sum).then_some(content);
        let id = content.and_then(if several { read_several } else { read });
        id.ok_or(InvalidLeaseId::Damaged)
    }
}

/// More than the names of [`MAX_POOLS`] pools need.
const LONGEST: usize = 6_144;

fn read(content: &[u8]) -> Option<LeaseId> {
    let (key, pool) = read_key(content)?;
    Some(LeaseId::new(pool_named(pool)?, key))
}

fn read_several(mut content: &[u8]) -> Option<LeaseId> {
    let mut leases = Vec::new();
    while !content.is_empty() {
        let (key, rest) = read_key(content)?;
        let (length, rest) = rest.split_first_chunk::<2>()?;
        let (pool, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
        leases.push((pool_named(pool)?, key));
        content = rest;
    }
    let different = |at: usize| leases[..at].iter().all(|(pool, _)| *pool != leases[at].0);
    let valid = (2..=MAX_POOLS).contains(&leases.len()) && (0..leases.len()).all(different);
    let mut leases = leases.clone().into_iter().filter(|_| valid);
    let (pool, key) = leases.next()?;
    Some(LeaseId::new(pool, key).with_others(leases))
}

fn read_key(content: &[u8]) -> Option<(Key, &[u8])> {
    let (session, rest) = content.split_first_chunk::<8>()?;
    let (number, rest) = rest.split_first_chunk::<8>()?;
    let (session, number) = (u64::from_be_bytes(*session), u64::from_be_bytes(*number));
    Some((Key { session, number }, rest))
}

fn pool_named(bytes: &[u8]) -> Option<PoolName> {
    std::str::from_utf8(bytes).ok()?.parse().ok()
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
    fn several_pools_are_read_as_they_were_written() {
        let others = ["anthropic/org", "shared/search"].map(|name| name.parse().unwrap());
        let keys = [Key { session: 1, number: 2 }, Key { session: 3, number: 4 }];
        let whole = id().with_others(others.clone().into_iter().zip(keys));
        let text = whole.to_string();
        assert!(text.starts_with("lease2_"), "{text}");
        assert_eq!(text.parse(), Ok(whole.clone()));
        assert_eq!(whole.key_on(&others[1]), Some(keys[1]));
        assert_eq!(whole.key_on(whole.pool()), Some(id().key()));
        assert_eq!(whole.key_on(&"a/b".parse().unwrap()), None);
        let twice = id().with_others([(id().pool().clone(), keys[0])]).to_string();
        assert_eq!(twice.parse::<LeaseId>(), Err(InvalidLeaseId::Damaged), "one pool twice");
        let name = |n: usize| format!("{}/{n}{}", "p".repeat(60), "x".repeat(120));
        let most = (1..MAX_POOLS).map(|n| (name(n).parse().unwrap(), keys[0]));
        let long = id().with_others(most);
        assert_eq!(long.to_string().parse(), Ok(long));
    }

    #[test]
    fn any_single_change_is_noticed() {
        any_change_is_noticed(&id());
        let other = ("a/org".parse().unwrap(), Key { session: 7, number: 8 });
        any_change_is_noticed(&id().with_others([other]));
    }

    fn any_change_is_noticed(id: &LeaseId) {
        let text = id.to_string();
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
        for garbage in ["", "x", "🚰", "lease", "lease3_AAAA", "../../etc/passwd\n"] {
            assert_eq!(garbage.parse::<LeaseId>(), Err(InvalidLeaseId::NotALease), "{garbage}");
        }
    }
}
