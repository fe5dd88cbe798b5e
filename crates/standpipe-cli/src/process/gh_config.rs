//! A configuration directory for `gh` that sends its calls through the daemon's Unix socket.
//!
//! `gh` has no base URL, but with `http_unix_socket` it speaks plain HTTP over a socket. The user's
//! own files stay as they are: the directory has a copy of `config.yml` with that one line, and
//! links to everything else, so that tokens are not copied.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};

const FILE: &str = "config.yml";
const KEY: &str = "http_unix_socket:";

/// Makes the directory below `state`. Returns `None` if `gh` already uses a socket of its own.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn make(state: &Path, own: &Path, socket: &Path) -> io::Result<Option<PathBuf>> {
    let config = fs::read_to_string(own.join(FILE)).unwrap_or_default();
    let set = |line: &&str| line.strip_prefix(KEY).is_some_and(|rest| !rest.trim().is_empty());
    if config.lines().find(set).is_some() {
        return Ok(None);
    }
    let directory = state.join("gh");
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&directory)?;
    for entry in fs::read_dir(own).into_iter().flatten().flatten() {
        let link = directory.join(entry.file_name());
        if entry.file_name() != FILE && fs::symlink_metadata(&link).is_err() {
            symlink(entry.path(), link)?;
        }
    }
    let kept = config.lines().filter(|line| !line.starts_with(KEY));
    let mut text: String = kept.flat_map(|line| [line, "\n"]).collect();
    text.push_str(&format!("{KEY} {}\n", socket.display()));
    fs::write(directory.join(FILE), text)?;
    Ok(Some(directory))
}

/// The directory that `gh` reads without us.
pub(crate) fn own(env: impl Fn(&str) -> Option<PathBuf>) -> PathBuf {
    let config = || env("XDG_CONFIG_HOME").or_else(|| env("HOME").map(|home| home.join(".config")));
    env("GH_CONFIG_DIR").unwrap_or_else(|| config().unwrap_or_default().join("gh"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_copy_has_the_socket_and_links_the_rest() {
        let base = std::env::temp_dir().join(format!("standpipe-gh-{}", std::process::id()));
        let (state, own) = (base.join("state"), base.join("own"));
        fs::create_dir_all(&own).unwrap();
        fs::write(own.join("config.yml"), "editor: vi\nhttp_unix_socket:\n").unwrap();
        fs::write(own.join("hosts.yml"), "github.com:\n  oauth_token: secret\n").unwrap();
        for _again in 0..2 {
            let made = make(&state, &own, Path::new("/run/standpipe.sock")).unwrap().unwrap();
            let config = fs::read_to_string(made.join("config.yml")).unwrap();
            assert_eq!(config, "editor: vi\nhttp_unix_socket: /run/standpipe.sock\n");
            assert_eq!(fs::read_link(made.join("hosts.yml")).unwrap(), own.join("hosts.yml"));
        }
        fs::write(own.join("config.yml"), "http_unix_socket: /other\n").unwrap();
        assert_eq!(make(&state, &own, Path::new("/run/x")).unwrap(), None);
        fs::remove_dir_all(base).unwrap();
    }
}
