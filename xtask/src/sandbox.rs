//! The environment in which tests run: a `PATH` of links to listed programs, an empty home
//! directory, and no variable of the user's session.
//!
//! It guarantees that a program or a setting that one machine happens to have cannot make a test
//! pass there. The list of programs is in [`crate::tools`].

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::tools::{BARE, INSTALLED};

/// Variables that are taken over from the session: they say where the toolchain and scratch files
/// are and whether this is continuous integration.
const TAKEN_OVER: &[&str] =
    &["CARGO_TARGET_DIR", "CI", "RUSTUP_TOOLCHAIN", "TMPDIR", "CARGO_BUILD_JOBS"];

/// Where programs are on Debian, searched after the session's own `PATH`.
const USUAL: [&str; 5] = ["/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"];

/// The environment of the tests.
#[derive(Clone, Debug)]
pub(crate) struct Sandbox {
    links: PathBuf,
    variables: BTreeMap<OsString, OsString>,
}

impl Sandbox {
    /// Makes the folder of links and the empty home directory below `target/xtask`.
    ///
    /// # Errors
    /// Names the programs of a bare machine that are missing here, or the folder that cannot be
    /// made.
    pub(crate) fn create(target: &Path) -> Result<Self, String> {
        let (links, home) = (target.join("xtask/bin"), target.join("xtask/home"));
        let _ = fs::remove_dir_all(&home);
        for folder in [&links, &home] {
            fs::create_dir_all(folder)
                .map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
        }
        remove_unlisted(&links);
        let mut missing = Vec::new();
        for name in BARE {
            match find(name) {
                Some(program) => link(&program, &links.join(name))?,
                None => missing.push(*name),
            }
        }
        if !missing.is_empty() {
            return Err(format!(
                "the tests need {}\nhint: install the missing programs; the whole list is in \
                 xtask/src/tools.rs",
                missing.join(", ")
            ));
        }
        let variables = variables(&links, &home);
        Ok(Self { links, variables })
    }

    /// Links what the test command installed. A program that is still missing is no error here: the
    /// tests that need it fail.
    pub(crate) fn link_installed(&self) -> Result<(), String> {
        for tool in INSTALLED {
            let place = self.links.join(tool.name);
            if let Some(program) = find(tool.file) {
                link(&program, &place)?;
            }
        }
        Ok(())
    }

    /// Where a listed program is.
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.links.join(name)
    }

    /// Puts a command into this environment.
    pub(crate) fn apply(&self, command: &mut Command) {
        command.env_clear().envs(&self.variables);
    }
}

/// The file of a program on the session's `PATH` or where Debian keeps programs.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = std::env::split_paths(&path).chain(USUAL.map(PathBuf::from));
    let program =
        folders.find_map(|folder| Some(folder.join(name)).filter(|file| file.is_file()))?;
    Some(if name == "python3" { behind_shims(program) } else { program })
}

/// The interpreter itself: a version manager's shim is a script that needs the session's variables.
fn behind_shims(python: PathBuf) -> PathBuf {
    let mut command = Command::new(&python);
    let asked = command.args(["-c", "import sys; print(sys.executable)"]).output();
    match asked {
        Ok(output) if output.status.success() => {
            PathBuf::from(String::from_utf8_lossy(&output.stdout).trim())
        }
        _ => python,
    }
}

/// Removes what an older list had. What is right stays, because another run may be using it.
fn remove_unlisted(links: &Path) {
    let listed =
        |name: &str| BARE.contains(&name) || INSTALLED.iter().any(|tool| tool.name == name);
    for entry in fs::read_dir(links).into_iter().flatten().flatten() {
        if !listed(&entry.file_name().to_string_lossy()) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn link(program: &Path, place: &Path) -> Result<(), String> {
    if fs::read_link(place).is_ok_and(|linked| linked == program) {
        return Ok(());
    }
    let _ = fs::remove_file(place);
    symlink(program, place).map_err(|error| format!("cannot make {}: {error}", place.display()))
}

fn variables(links: &Path, home: &Path) -> BTreeMap<OsString, OsString> {
    let session = |name: &str| std::env::var_os(name);
    let under_home = |folder: &str| PathBuf::from(session("HOME").unwrap_or_default()).join(folder);
    let toolchain = |name: &str, folder| session(name).unwrap_or_else(|| under_home(folder).into());
    let mut variables: BTreeMap<OsString, OsString> = BTreeMap::new();
    let mut set = |name: &str, value: OsString| variables.insert(name.into(), value);
    for name in TAKEN_OVER {
        if let Some(value) = session(name) {
            set(name, value);
        }
    }
    set("PATH", links.into());
    set("HOME", home.into());
    set("LANG", "C.UTF-8".into());
    set("CARGO_HOME", toolchain("CARGO_HOME", ".cargo"));
    set("RUSTUP_HOME", toolchain("RUSTUP_HOME", ".rustup"));
    // Everything was fetched before, with the session's own settings for the network.
    set("CARGO_NET_OFFLINE", "true".into());
    set("CARGO_TERM_COLOR", "never".into());
    // A build that happens once is faster without what speeds up the next one.
    if session("CI").is_some() {
        set("CARGO_INCREMENTAL", "0".into());
    }
    variables
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sandbox(name: &str) -> (Sandbox, PathBuf) {
        let name = format!("standpipe-sandbox-{name}-{}", std::process::id());
        let target = std::env::temp_dir().join(name);
        (Sandbox::create(&target).unwrap(), target)
    }

    fn output(sandbox: &Sandbox, script: &str) -> String {
        let mut shell = Command::new("sh");
        sandbox.apply(shell.args(["-c", script]));
        String::from_utf8(shell.output().unwrap().stdout).unwrap()
    }

    #[test]
    fn only_listed_programs_are_on_the_path() {
        let (sandbox, target) = sandbox("path");
        assert_eq!(output(&sandbox, "sleep 0 && echo ran"), "ran\n");
        // On every machine, and on no list.
        assert_eq!(output(&sandbox, "command -v dpkg-query || echo none"), "none\n");
        fs::remove_dir_all(target).unwrap();
    }

    #[test]
    fn the_home_directory_is_empty_and_nothing_of_the_session_is_seen() {
        let (sandbox, target) = sandbox("home");
        assert_eq!(output(&sandbox, "ls -A \"$HOME\"; echo \"$CARGO_MANIFEST_DIR.\""), ".\n");
        fs::remove_dir_all(target).unwrap();
    }
}
