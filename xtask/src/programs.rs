//! The test programs of the workspace: building them, listing their tests, running them.
//!
//! A crate has at most two: the tests inside its `src`, and those of `tests/it`. A test of the
//! first is named `package::lib::path` (or `bin`), one of the second `package::path`.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use cargo_metadata::{Artifact, Message, TargetKind};

use crate::context::Context;
use crate::process::{BUILD, Finished};

/// The name of the integration test program of every crate.
const INTEGRATION: &str = "it";

/// A test program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TestProgram {
    /// The package it belongs to.
    pub(crate) package: String,
    /// `lib` or `bin` for tests inside `src`, else the name of the test target.
    pub(crate) target: String,
    /// The package's directory, in which its tests expect to run.
    directory: PathBuf,
    file: PathBuf,
}

/// Builds what the given `cargo test …` would run.
///
/// # Errors
/// What the compiler printed.
pub(crate) fn build(context: &Context, cargo: &mut Command) -> Result<Vec<TestProgram>, String> {
    cargo.args(["--no-run", "--message-format=json-render-diagnostics"]);
    let built = context.run_apart(cargo, BUILD)?;
    if !built.ok {
        return Err(built.output);
    }
    let messages = Message::parse_stream(built.data.as_bytes()).filter_map(Result::ok);
    let artifacts = messages.filter_map(|message| match message {
        Message::CompilerArtifact(artifact) => Some(artifact),
        _ => None,
    });
    Ok(artifacts.filter_map(TestProgram::of_artifact).collect())
}

impl TestProgram {
    /// The test program that an artifact is, if it is one.
    fn of_artifact(artifact: Artifact) -> Option<Self> {
        let file = artifact.executable.filter(|_| artifact.profile.test)?;
        let directory = artifact.manifest_path.parent()?;
        let target = match artifact.target.kind.first()? {
            TargetKind::Test => artifact.target.name,
            TargetKind::Bin => "bin".to_owned(),
            TargetKind::Example => "example".to_owned(),
            _ => "lib".to_owned(),
        };
        let id = artifact.package_id.repr;
        let package = package_name(&id)?.to_owned();
        Some(Self { package, target, directory: directory.into(), file: file.into() })
    }

    /// How documents and commands name one of its tests.
    pub(crate) fn reference(&self, test: &str) -> String {
        if self.target == INTEGRATION {
            return format!("{}::{test}", self.package);
        }
        format!("{}::{}::{test}", self.package, self.target)
    }

    /// The path inside this program of a test, or of a group of them, that a reference names.
    pub(crate) fn path_of<'a>(&self, reference: &'a str) -> Option<&'a str> {
        let path = reference.strip_prefix(self.package.as_str())?;
        if path.is_empty() {
            return Some("");
        }
        let path = path.strip_prefix("::")?;
        let first = path.split("::").next().unwrap_or_default();
        if self.target == INTEGRATION {
            return Some(path).filter(|_| !matches!(first, "lib" | "bin" | "example"));
        }
        let inside = path.strip_prefix(self.target.as_str())?;
        if inside.is_empty() { Some("") } else { inside.strip_prefix("::") }
    }

    /// The paths of its tests.
    pub(crate) fn tests(&self, context: &Context) -> Result<Vec<String>, String> {
        let mut command = self.command(context);
        let listed = context.run_apart(command.args(["--list", "--format", "terse"]), BUILD)?;
        if !listed.ok {
            return Err(format!("cannot list {}:\n{}", self.file.display(), listed.output));
        }
        let names = listed.data.lines().filter_map(|line| line.strip_suffix(": test"));
        Ok(names.map(str::to_owned).collect())
    }

    /// Runs the tests that the arguments select, with these variables set.
    pub(crate) fn run(
        &self,
        context: &Context,
        arguments: &[&str],
        variables: &[(&str, String)],
        bound: Duration,
    ) -> Result<Finished, String> {
        let mut command = self.command(context);
        command.args(arguments).envs(variables.iter().map(|(name, value)| (name, value)));
        context.run(&mut command, bound)
    }

    fn command(&self, context: &Context) -> Command {
        // A shell that starts a command in the background makes it ignore interrupts, and so would
        // every program under test; and on a terminal `hold` leaves interrupts to the terminal.
        let mut command = context.program("setsid");
        command.args(["--wait", "env", "--default-signal"]).arg(&self.file);
        command.current_dir(&self.directory).env("CARGO_MANIFEST_DIR", &self.directory);
        command
    }

    #[cfg(test)]
    pub(crate) fn of(package: &str, target: &str) -> Self {
        let (package, target) = (package.to_owned(), target.to_owned());
        Self { package, target, directory: PathBuf::new(), file: PathBuf::new() }
    }
}

/// `path+file:///dir/name#0.1.0` and `path+file:///dir/other#name@0.1.0` name a package.
fn package_name(id: &str) -> Option<&str> {
    let (path, version) = id.rsplit_once('#')?;
    match version.split_once('@') {
        Some((name, _)) => Some(name),
        None => path.rsplit('/').next(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_of_a_crate_are_named_without_their_program() {
        assert_eq!(TestProgram::of("core", "it").reference("props::holds"), "core::props::holds");
        assert_eq!(
            TestProgram::of("core", "lib").reference("a::tests::b"),
            "core::lib::a::tests::b"
        );
    }

    #[test]
    fn a_reference_selects_one_program() {
        let (it, lib) = (TestProgram::of("core", "it"), TestProgram::of("core", "lib"));
        assert_eq!(it.path_of("core::props::holds"), Some("props::holds"));
        assert_eq!(lib.path_of("core::props::holds"), None);
        assert_eq!(it.path_of("core::lib::a::b"), None);
        assert_eq!(lib.path_of("core::lib::a::b"), Some("a::b"));
        assert_eq!(lib.path_of("core-other::lib::a"), None);
    }

    #[test]
    fn a_package_alone_selects_all_its_programs() {
        for target in ["it", "lib"] {
            assert_eq!(TestProgram::of("core", target).path_of("core"), Some(""));
        }
        assert_eq!(TestProgram::of("core", "it").path_of("other"), None);
    }

    #[test]
    fn a_package_is_named_by_its_directory_or_its_own_name() {
        assert_eq!(package_name("path+file:///a/xtask#0.1.0"), Some("xtask"));
        let other = "path+file:///a/bench#standpipe-bench@0.1.0";
        assert_eq!(package_name(other), Some("standpipe-bench"));
    }
}
