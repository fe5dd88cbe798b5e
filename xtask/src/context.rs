//! Where the project and its build directory are, in which environment programs run, and how
//! thorough the tests are.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};

use crate::programs::TestProgram;
use crate::sandbox::Sandbox;

/// What every suite is given.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    /// The directory of the workspace's manifest.
    pub(crate) root: PathBuf,
    /// Where cargo puts what it builds.
    pub(crate) target: PathBuf,
    /// More cases, longer fuzzing.
    pub(crate) long: bool,
    /// The environment of programs; the user's own when there is none.
    pub(crate) sandbox: Option<Sandbox>,
    /// Whether programs give way to others that need the processor.
    pub(crate) gives_way: bool,
    /// Runs only the tests of a suite that this selects.
    pub(crate) only: Option<String>,
    /// The test programs of the workspace, once they are built.
    pub(crate) programs: Arc<OnceLock<Vec<TestProgram>>>,
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
            .ok_or("no workspace with an `xtask` here\nhint: run it as `cargo xtask`")?;
        let target = match std::env::var_os("CARGO_TARGET_DIR") {
            Some(directory) => here.join(directory),
            None => root.join("target"),
        };
        Ok(Self::new(root.to_path_buf(), target))
    }

    /// A project at that place, with the user's own environment.
    pub(crate) fn new(root: PathBuf, target: PathBuf) -> Self {
        Self {
            root,
            target,
            long: false,
            sandbox: None,
            gives_way: false,
            only: None,
            programs: Arc::default(),
        }
    }

    /// Cargo, run in the project.
    pub(crate) fn cargo<const N: usize>(&self, arguments: [&str; N]) -> Command {
        let mut command = self.program("cargo");
        command.args(arguments);
        command
    }

    /// A program, run in the project and in the tests' environment if there is one.
    pub(crate) fn program(&self, program: impl AsRef<Path>) -> Command {
        let mut command = match self.gives_way {
            true => Command::new("nice"),
            false => Command::new(program.as_ref()),
        };
        if self.gives_way {
            command.args(["-n", "19"]).arg(program.as_ref());
        }
        if let Some(sandbox) = &self.sandbox {
            sandbox.apply(&mut command);
        }
        command.current_dir(&self.root);
        command
    }

    /// A program that installs something or reads the user's settings: always in the user's
    /// environment.
    pub(crate) fn user_program(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        command.current_dir(&self.root);
        command
    }

    /// The test programs of the workspace.
    ///
    /// # Errors
    /// When they were not built, which the build itself reports.
    pub(crate) fn programs(&self) -> Result<&[TestProgram], String> {
        let built = self.programs.get().map(Vec::as_slice);
        built.ok_or_else(|| "not run, because the tests do not build".to_owned())
    }

    /// The program `standpipe`, as the test build left it.
    pub(crate) fn standpipe(&self) -> PathBuf {
        self.target.join("debug/standpipe")
    }
}
