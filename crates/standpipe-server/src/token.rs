//! The token that callers show where not only this machine can reach the daemon.

use std::fmt;
use std::fs;
use std::io::Read;
use std::path::Path;

use subtle::ConstantTimeEq;

/// The shortest token that is taken.
const SHORTEST: usize = 16;
/// And the longest.
const LONGEST: usize = 1_024;
/// How much of the file is read.
const LARGEST: u64 = 4_096;

/// A secret. Nothing shows it.
pub(crate) struct Token(Vec<u8>);

impl Token {
    /// The token in a file: its only line.
    ///
    /// # Errors
    /// What is wrong with it, never what it says.
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let cannot = |error: std::io::Error| {
            format!("token_file {} cannot be read: {error}", path.display())
        };
        // Neither a pipe that nobody writes to nor a device without end.
        if !fs::metadata(path).map_err(cannot)?.is_file() {
            return Err(format!("token_file {} is no file", path.display()));
        }
        let mut text = Vec::new();
        let file = fs::File::open(path).map_err(cannot)?;
        file.take(LARGEST).read_to_end(&mut text).map_err(cannot)?;
        let token = text.trim_ascii();
        if !(SHORTEST..=LONGEST).contains(&token.len()) || !token.iter().all(u8::is_ascii_graphic) {
            return Err(format!(
                "token_file {} holds no token of {SHORTEST} to {LONGEST} printable characters; \
                 make one: openssl rand -hex 32",
                path.display()
            ));
        }
        Ok(Self(token.to_vec()))
    }

    /// Whether that is it. How long this takes says nothing about where they differ.
    pub(crate) fn is(&self, shown: &[u8]) -> bool {
        self.0.ct_eq(shown).into()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_itself_will_do_and_nothing_shows_it() {
        let token = Token(b"0123456789abcdef".to_vec());
        assert!(token.is(b"0123456789abcdef"));
        for other in [&b"0123456789abcdeg"[..], b"0123456789abcde", b"", b"0123456789abcdef0"] {
            assert!(!token.is(other));
        }
        assert_eq!(format!("{token:?}"), "Token(…)");
    }
}
