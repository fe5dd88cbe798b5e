//! Tells API keys apart without showing them, for providers with `keys = "separate"`.
//!
//! A key is known by its number, in the order in which keys were first used: `key-1`, `key-2`. The
//! state directory has a keyed hash of each, so that the numbers survive a restart. Neither the key
//! nor its hash appears anywhere else.

use std::fmt;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use axum::http::HeaderMap;
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};

use crate::state::lock;

/// The most keys that are distinguished. Further ones share the last number.
const MAX_KEYS: usize = 256;
/// The name of the file in the state directory.
const FILE: &str = "proxy-keys";
/// The bytes of a hash.
const LENGTH: usize = 32;

/// Where clients put their key.
const HEADERS: [&str; 4] = ["x-api-key", "authorization", "api-key", "x-goog-api-key"];

/// The keys that were seen.
pub(crate) struct KeyNumbers {
    file: PathBuf,
    seen: Mutex<Option<Seen>>,
}

struct Seen {
    salt: [u8; LENGTH],
    hashes: Vec<[u8; LENGTH]>,
}

impl KeyNumbers {
    pub(crate) fn new(directory: &Path) -> Self {
        Self { file: directory.join(FILE), seen: Mutex::default() }
    }

    /// The number of the key that a request has, from 1; `None` if it has no key.
    ///
    /// # Errors
    /// If the numbers cannot be read or written: without them a key could get another's pool.
    pub(crate) fn number(
        &self,
        headers: &HeaderMap,
        query: &str,
    ) -> std::io::Result<Option<usize>> {
        let Some(key) = key(headers, query) else { return Ok(None) };
        let mut seen = lock(&self.seen);
        let seen = match &mut *seen {
            Some(seen) => seen,
            none => none.insert(Seen::read(&self.file)?),
        };
        let hash = seen.hash(key);
        let known = seen.hashes.iter().position(|other| *other == hash);
        if known.is_none() && seen.hashes.len() < MAX_KEYS {
            seen.hashes.push(hash);
            if let Err(error) = seen.write(&self.file) {
                seen.hashes.pop();
                return Err(error);
            }
        }
        Ok(Some(known.map_or(seen.hashes.len(), |at| at + 1)))
    }
}

/// The key of a request, without the scheme before it.
fn key<'a>(headers: &'a HeaderMap, query: &'a str) -> Option<&'a [u8]> {
    let stated = HEADERS.iter().find_map(|name| headers.get(*name));
    if let Some(stated) = stated {
        let text = stated.as_bytes().trim_ascii();
        let bare = text.iter().rposition(|byte| *byte == b' ').map_or(text, |at| &text[at + 1..]);
        return Some(bare).filter(|bare| !bare.is_empty());
    }
    // Gemini accepts the key in the query.
    let mut members = query.split('&').filter_map(|member| member.strip_prefix("key="));
    members.next().filter(|key| !key.is_empty()).map(str::as_bytes)
}

impl Seen {
    /// The file has the salt and then one hash per line, in the order of the numbers.
    fn read(file: &Path) -> std::io::Result<Self> {
        let text = match fs::read_to_string(file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Self::fresh(),
            Err(error) => return Err(error),
        };
        let mut lines = text.lines().map(|line| from_hex(line).ok_or_else(damaged));
        let salt = lines.next().ok_or_else(damaged)??;
        let hashes: Vec<_> = lines.take(MAX_KEYS).collect::<Result<_, _>>()?;
        Ok(Self { salt, hashes })
    }

    fn fresh() -> std::io::Result<Self> {
        let mut salt = [0; LENGTH];
        let random = SystemRandom::new().fill(&mut salt);
        random.map_err(|_| std::io::Error::other("the system has no random numbers"))?;
        Ok(Self { salt, hashes: Vec::new() })
    }

    fn hash(&self, key: &[u8]) -> [u8; LENGTH] {
        let salt = hmac::Key::new(hmac::HMAC_SHA256, &self.salt);
        let mut hash = [0; LENGTH];
        hash.copy_from_slice(hmac::sign(&salt, key).as_ref());
        hash
    }

    /// Replaces the file in one step, so that a crash leaves the old one.
    fn write(&self, file: &Path) -> std::io::Result<()> {
        let new = file.with_extension("new");
        let lines = std::iter::once(&self.salt).chain(&self.hashes);
        let text: String = lines.map(|hash| to_hex(hash) + "\n").collect();
        let mut options = fs::OpenOptions::new();
        let mut written = options.write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        written.write_all(text.as_bytes())?;
        written.sync_all()?;
        fs::rename(&new, file)
    }
}

fn damaged() -> std::io::Error {
    std::io::Error::other(format!("the file {FILE} is damaged; remove it to number keys anew"))
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a string cannot fail.
        let _written = write!(text, "{byte:02x}");
        text
    })
}

fn from_hex(text: &str) -> Option<[u8; LENGTH]> {
    let mut bytes = [0; LENGTH];
    if text.len() != LENGTH * 2 || !text.is_ascii() {
        return None;
    }
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[at * 2..at * 2 + 2], 16).ok()?;
    }
    Some(bytes)
}

/// Shows neither keys nor hashes.
impl fmt::Debug for KeyNumbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyNumbers").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_key(value: &str) -> HeaderMap {
        [("authorization".parse().unwrap(), value.parse().unwrap())].into_iter().collect()
    }

    #[test]
    fn a_key_keeps_its_number_over_a_restart_and_is_not_in_the_file() {
        let directory = std::env::temp_dir().join(format!("standpipe-keys-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let keys = KeyNumbers::new(&directory);
        let number = |keys: &KeyNumbers, text: &str| keys.number(&with_key(text), "").unwrap();
        assert_eq!(number(&keys, "Bearer sk-one"), Some(1));
        assert_eq!(number(&keys, "token sk-two"), Some(2));
        assert_eq!(number(&keys, "sk-one"), Some(1), "whatever the scheme");
        let again = KeyNumbers::new(&directory);
        assert_eq!(number(&again, "Bearer sk-two"), Some(2));
        assert_eq!(again.number(&HeaderMap::new(), "alt=sse&key=sk-one").unwrap(), Some(1));
        assert_eq!(again.number(&HeaderMap::new(), "alt=sse").unwrap(), None);
        let text = fs::read_to_string(directory.join(FILE)).unwrap();
        assert!(!text.contains("sk-") && text.lines().count() == 3);
        assert!(!format!("{again:?}").contains(text.lines().nth(1).unwrap()));
        for other in 0..MAX_KEYS {
            number(&again, &format!("sk-{other}"));
        }
        assert_eq!(number(&again, "sk-more"), Some(MAX_KEYS), "bounded");
        fs::write(directory.join(FILE), "oops").unwrap();
        let damaged = KeyNumbers::new(&directory).number(&with_key("sk-one"), "");
        assert!(damaged.unwrap_err().to_string().contains("damaged"));
        fs::remove_dir_all(directory).unwrap();
    }
}
