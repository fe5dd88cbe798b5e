//! Where the project and its build directory are, and how thorough the tests shall be.

use std::path::{Path, PathBuf};
use std::process::Command;

/// What every suite is given.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    /// The directory of the workspace's manifest.
    pub(crate) root: PathBuf,
    /// Where cargo puts what it builds.
    pub(crate) target: PathBuf,
    /// More cases, longer fuzzing.
    pub(crate) long: bool,
}

impl Context {
    /// The project this command belongs to.
    ///
    /// # Errors
    /// When it is run by hand from outside of a project.
    pub(crate) fn find() -> Result<Self, String> {
        let here = std::env::current_dir().map_err(|error| format!("no directory: {error}"))?;
        let manifest = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
        let start = manifest.as_deref().and_then(Path::parent).unwrap_or(&here);
        let root = start
            .ancestors()
            .find(|directory| directory.join("xtask/Cargo.toml").is_file())
            .ok_or("no workspace with an `xtask` here; run it as `cargo xtask`")?
            .to_path_buf();
        let target = match std::env::var_os("CARGO_TARGET_DIR") {
            Some(directory) => here.join(directory),
            None => root.join("target"),
        };
        Ok(Self { root, target, long: false })
    }

    /// Cargo, run in the project.
    pub(crate) fn cargo<const N: usize>(&self, arguments: [&str; N]) -> Command {
        let mut command = self.program("cargo");
        command.args(arguments);
        command
    }

    /// A program, run in the project. The tools of the toolchain in use go before others.
    pub(crate) fn program(&self, name: &str) -> Command {
        let own = std::env::var_os(name.to_uppercase()).filter(|_| name == "cargo");
        let mut command = Command::new(own.unwrap_or_else(|| name.into()));
        command.current_dir(&self.root);
        command
    }
}
