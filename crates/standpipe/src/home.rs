//! The directory of a user's state.
//!
//! It is always absolute, so that every process of the user finds the same pools.

use std::path::PathBuf;

use crate::error::Error;
use crate::request::shown;

/// Returns the directory for pools and the journal: `$STANDPIPE_HOME`, else `standpipe/` in the
/// user's state directory (`$XDG_STATE_HOME`, else `~/.local/state`).
///
/// # Errors
/// When none of these is set, or the one that counts is not an absolute path: a relative one would
/// name another ledger in every working directory.
pub fn state_directory(env: &dyn Fn(&str) -> Option<String>) -> Result<PathBuf, Error> {
    let set = |name: &str| env(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(home) = set("STANDPIPE_HOME") {
        return absolute("STANDPIPE_HOME", home);
    }
    // The XDG base directory specification requires to ignore a relative one.
    let state = set("XDG_STATE_HOME").filter(|state| state.is_absolute());
    let state = match (state, set("HOME")) {
        (None, Some(home)) => Some(absolute("HOME", home)?.join(".local/state")),
        (state, _) => state,
    };
    state.map(|state| state.join("standpipe")).ok_or_else(|| {
        Error::invalid(
            "no directory for the ledger: neither $STANDPIPE_HOME nor $HOME is set",
            "set STANDPIPE_HOME to a directory on a local disk",
        )
    })
}

fn absolute(name: &str, path: PathBuf) -> Result<PathBuf, Error> {
    if path.is_absolute() {
        return Ok(path);
    }
    Err(Error::invalid(
        format!("${name} is `{}`, which is not an absolute path", shown(&path.to_string_lossy())),
        "use an absolute path, so that every process finds the same directory",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(vars: &'static [(&'static str, &'static str)]) -> Result<PathBuf, Error> {
        let find = |name: &str| vars.iter().find(|(known, _)| *known == name);
        state_directory(&|name| find(name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn it_is_found_in_its_order() {
        let all = &[("STANDPIPE_HOME", "/a"), ("XDG_STATE_HOME", "/b"), ("HOME", "/c")];
        assert_eq!(with(all).unwrap(), PathBuf::from("/a"));
        let users = &[("STANDPIPE_HOME", ""), ("XDG_STATE_HOME", "/b"), ("HOME", "/c")];
        assert_eq!(with(users).unwrap(), PathBuf::from("/b/standpipe"));
        let odd = &[("XDG_STATE_HOME", "b"), ("HOME", "/c")];
        assert_eq!(with(odd).unwrap(), PathBuf::from("/c/.local/state/standpipe"));
        assert!(with(&[]).unwrap_err().to_string().contains("STANDPIPE_HOME"));
    }

    #[test]
    fn a_relative_one_is_refused() {
        for relative in ["state", "./state", "../state", "~/state"] {
            let env = |name: &str| (name == "STANDPIPE_HOME").then(|| relative.to_owned());
            let error = state_directory(&env).unwrap_err().to_string();
            assert!(error.contains("$STANDPIPE_HOME") && error.contains(relative), "{error}");
        }
        let home = with(&[("HOME", "home")]).unwrap_err().to_string();
        assert!(home.contains("$HOME is `home`"), "{home}");
        let unused = &[("STANDPIPE_HOME", "/a"), ("HOME", "home")];
        assert_eq!(with(unused).unwrap(), PathBuf::from("/a"));
    }
}
