//! What is in the working directory or the environment and is not read: `./standpipe.toml`,
//! misspelled variables. A place that is never searched is named, with what works instead.

use std::path::{Path, PathBuf};

use standpipe::config::{Problem, nearest};

/// A file that looks like the configuration, and is read only by `--config`.
const HERE: &str = "./standpipe.toml";

/// What every variable of this program begins with.
const PREFIX: &str = "STANDPIPE_";
/// The rest of the names of the variables that are read.
const READ: [&str; 4] = ["HOME", "CONFIG", "AGENT", "PRIORITY"];
/// Variables that some expect, and what states the same.
const ELSEWHERE: [(&str, &str); 4] = [
    ("STORE", "use --store, or `store` in standpipe.toml"),
    ("LISTEN", "use `standpipe up --listen`, or `listen` in standpipe.toml"),
    ("TOKEN", "set token_file in [server] of standpipe.toml"),
    ("TOKEN_FILE", "set token_file in [server] of standpipe.toml"),
];

/// Returns the path of the user's configuration file, the first place that is searched without
/// `--config`.
pub(super) fn usual() -> Option<PathBuf> {
    let path = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let directory = || {
        let config = path("XDG_CONFIG_HOME").filter(|config| config.is_absolute());
        let config = config.or_else(|| path("HOME").map(|home| home.join(".config")))?;
        Some(config.join("standpipe").join("standpipe.toml"))
    };
    path("STANDPIPE_CONFIG").or_else(directory)
}

/// Returns the name of the file that a pool is to be described in.
pub(super) fn to_describe_in(origin: Option<&Path>) -> String {
    let usual = usual().filter(|_| origin.is_none());
    usual.map_or_else(|| "standpipe.toml".to_owned(), |file| file.display().to_string())
}

/// Returns the warning about a file in the working directory that is not `origin`, the one in
/// force.
pub(crate) fn unread(origin: Option<&Path>) -> Option<Problem> {
    let here = Path::new(HERE).canonicalize().ok().filter(|file| file.is_file())?;
    if origin.is_some_and(|file| file.canonicalize().is_ok_and(|file| file == here)) {
        return None;
    }
    let remedy = match (origin, usual()) {
        (Some(origin), _) => format!("use --config {HERE}; {} is in force", origin.display()),
        (None, Some(usual)) => format!("use --config {HERE}, or move it to {}", usual.display()),
        (None, None) => format!("use --config {HERE}"),
    };
    Some(Problem { file: None, line: None, what: format!("{HERE} is not read"), remedy })
}

/// Returns a warning for each variable of the environment that seems to be meant for this program,
/// and is not read.
pub(crate) fn unread_variables() -> Vec<Problem> {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let mut found: Vec<Problem> = names.filter_map(|name| unread_variable(&name)).collect();
    found.sort_by(|one, other| one.what.cmp(&other.what));
    found
}

fn unread_variable(name: &str) -> Option<Problem> {
    let own = name.strip_prefix(PREFIX).filter(|own| !READ.contains(own))?;
    let elsewhere = ELSEWHERE.iter().find(|(known, _)| *known == own);
    let remedy = match (elsewhere, nearest(own, READ.into_iter())) {
        (Some((_, remedy)), _) => (*remedy).to_owned(),
        (None, Some(meant)) => format!("did you mean ${PREFIX}{meant}?"),
        // It may be anyone's: Kubernetes sets several for a service of this name.
        (None, None) => return None,
    };
    Some(Problem { file: None, line: None, what: format!("${name} is not read"), remedy })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_that_seems_to_be_meant_is_named() {
        let remedy = |name: &str| unread_variable(name).map(|problem| problem.remedy);
        for (name, expected) in [
            ("STANDPIPE_HOEM", "did you mean $STANDPIPE_HOME?"),
            ("STANDPIPE_AGNET", "did you mean $STANDPIPE_AGENT?"),
            ("STANDPIPE_STORE", "use --store, or `store` in standpipe.toml"),
        ] {
            assert_eq!(remedy(name).as_deref(), Some(expected), "{name}");
        }
        for name in ["HOEM", "STANDPIPE_HOME", "STANDPIPE_SERVICE_HOST", "STANDPIPE_SEED"] {
            assert_eq!(remedy(name), None, "{name}");
        }
    }
}
