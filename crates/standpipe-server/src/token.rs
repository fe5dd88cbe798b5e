//! The token that callers present where other machines can reach the daemon.
//!
//! The token appears in no message, log or debug output.

use std::fmt;
use std::fs;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use standpipe::escape::plain_io;
use subtle::ConstantTimeEq;

/// The fewest characters of a token.
const MIN_LENGTH: usize = 16;
/// The most characters of a token.
const MAX_LENGTH: usize = 1_024;
/// How many bytes of the file are read.
const MAX_FILE: u64 = 4_096;

/// A secret. Its debug output hides it.
pub(crate) struct Token(Vec<u8>);

impl Token {
    /// Reads the token from a file that contains nothing else.
    ///
    /// # Errors
    /// What is wrong with the file, never its content, and what to do.
    pub(crate) fn read(path: &Path) -> Result<Self, (String, String)> {
        let shown = path.display();
        let create = format!("create one: openssl rand -hex 32 > {shown}; chmod 600 {shown}");
        let cannot = |error: std::io::Error| match error.kind() {
            ErrorKind::NotFound => (format!("token_file {shown} does not exist"), create.clone()),
            _ => (
                format!("token_file {shown} cannot be read: {}", plain_io(&error)),
                "let the daemon's user read it".to_owned(),
            ),
        };
        // A pipe would block and a device may never end.
        if !fs::metadata(path).map_err(cannot)?.is_file() {
            return Err((format!("token_file {shown} is not a regular file"), create));
        }
        let mut text = Vec::new();
        let file = fs::File::open(path).map_err(cannot)?;
        file.take(MAX_FILE).read_to_end(&mut text).map_err(cannot)?;
        let token = text.trim_ascii();
        if !(MIN_LENGTH..=MAX_LENGTH).contains(&token.len())
            || !token.iter().all(u8::is_ascii_graphic)
        {
            let what = format!(
                "token_file {shown} does not contain {MIN_LENGTH} to {MAX_LENGTH} printable \
                 characters"
            );
            return Err((what, create));
        }
        Ok(Self(token.to_vec()))
    }

    /// A warning if other users of the machine may read the file.
    pub(crate) fn warning(path: &Path) -> Option<(String, String)> {
        let mode = fs::metadata(path).ok()?.permissions().mode();
        (mode & 0o004 != 0).then(|| {
            let path = path.display();
            (
                format!("token_file {path} is readable by every user"),
                format!("run: chmod 600 {path}"),
            )
        })
    }

    /// Compares in constant time, so that the duration reveals nothing.
    pub(crate) fn matches(&self, presented: &[u8]) -> bool {
        self.0.ct_eq(presented).into()
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
    fn only_the_same_token_matches_and_debug_hides_it() {
        let token = Token(b"0123456789abcdef".to_vec());
        assert!(token.matches(b"0123456789abcdef"));
        for other in [&b"0123456789abcdeg"[..], b"0123456789abcde", b"", b"0123456789abcdef0"] {
            assert!(!token.matches(other));
        }
        assert_eq!(format!("{token:?}"), "Token(…)");
    }
}
