//! The test programs of the workspace: building them, listing their tests, running one test.
//!
//! A test is named `package::target::path`, where the target is `lib` for tests inside a crate's
//! `src` and the file's stem for those in `tests/`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::context::Context;
use crate::process::{BUILD, Finished};

/// A test program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TestBinary {
    /// The package it belongs to.
    pub(crate) package: String,
    /// `lib`, `bin`, or the stem of a file in `tests/`.
    pub(crate) target: String,
    /// The package's directory, in which its tests expect to run.
    pub(crate) directory: PathBuf,
    /// The program.
    pub(crate) program: PathBuf,
}

/// Builds what the given `cargo test …` would run. `Err` is the compiler's word.
pub(crate) fn build(context: &Context, cargo: &mut Command) -> Result<Vec<TestBinary>, String> {
    cargo.args(["--no-run", "--message-format=json-render-diagnostics"]);
    let built = context.run_apart(cargo, BUILD)?;
    if !built.ok {
        return Err(built.output);
    }
    Ok(built.data.lines().filter_map(TestBinary::of_message).collect())
}

impl TestBinary {
    /// From one line of cargo's messages, if it tells of a test program.
    fn of_message(line: &str) -> Option<Self> {
        let (_, profile) = line.split_once("\"profile\":{")?;
        let is_test = profile.split('}').next()?.contains("\"test\":true");
        let program = string_field(line, "executable").filter(|_| is_test)?;
        let manifest = PathBuf::from(string_field(line, "manifest_path")?);
        let directory = manifest.parent()?.to_path_buf();
        let name = string_field(line, "package_id").and_then(|id| package_name(&id))?;
        let (_, target) = line.split_once("\"target\":{\"kind\":[")?;
        let target = match target.split(']').next()? {
            "\"test\"" => string_field(target, "name")?,
            "\"bin\"" => "bin".to_owned(),
            "\"example\"" => "example".to_owned(),
            _ => "lib".to_owned(),
        };
        Some(Self { package: name, target, directory, program: program.into() })
    }

    /// The paths of its tests.
    pub(crate) fn tests(&self, context: &Context) -> Result<Vec<String>, String> {
        let mut command = self.command(&self.program);
        let listed = context.run_apart(command.args(["--list", "--format", "terse"]), BUILD)?;
        if !listed.ok {
            return Err(format!("cannot list {}:\n{}", self.program.display(), listed.output));
        }
        let names = listed.data.lines().filter_map(|line| line.strip_suffix(": test"));
        Ok(names.map(str::to_owned).collect())
    }

    /// Runs one test, with these variables set.
    pub(crate) fn run_one(
        &self,
        context: &Context,
        test: &str,
        variables: &[(&str, String)],
        bound: Duration,
    ) -> Result<Finished, String> {
        let mut command = self.command(&self.program);
        command.args(["--exact", test]);
        for (name, value) in variables {
            command.env(name, value);
        }
        context.run(&mut command, bound)
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.directory).env("CARGO_MANIFEST_DIR", &self.directory);
        command
    }
}

/// The value of the first field of that name whose value is a string.
fn string_field(json: &str, name: &str) -> Option<String> {
    let (_, rest) = json.split_once(&format!("\"{name}\":\""))?;
    let mut value = String::new();
    let mut chars = rest.chars();
    loop {
        match chars.next()? {
            '"' => return Some(value),
            // Paths hold no other escapes than the backslash itself and the quote.
            '\\' => value.push(chars.next()?),
            other => value.push(other),
        }
    }
}

/// `path+file:///dir/name#0.1.0` and `path+file:///dir/other#name@0.1.0` name a package.
fn package_name(id: &str) -> Option<String> {
    let (path, version) = id.rsplit_once('#')?;
    let name = match version.split_once('@') {
        Some((name, _)) => name,
        None => path.rsplit('/').next()?,
    };
    Some(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: &str, test: bool) -> String {
        format!(
            "{{\"reason\":\"compiler-artifact\",\"package_id\":\"path+file:///p/core#0.1.0\",\
             \"manifest_path\":\"/p/core/Cargo.toml\",\"target\":{{\"kind\":[\"{kind}\"],\
             \"name\":\"props\",\"test\":true}},\"profile\":{{\"debuginfo\":2,\
             \"test\":{test}}},\"executable\":\"/t/props-1\",\"fresh\":true}}"
        )
    }

    #[test]
    fn a_test_program_is_found_in_cargos_messages() {
        let found = TestBinary::of_message(&message("test", true)).unwrap();
        assert_eq!((found.package.as_str(), found.target.as_str()), ("core", "props"));
        assert_eq!(found.directory, Path::new("/p/core"));
        assert_eq!(found.program, Path::new("/t/props-1"));
        assert_eq!(TestBinary::of_message(&message("lib", true)).unwrap().target, "lib");
    }

    #[test]
    fn other_messages_are_none() {
        assert_eq!(TestBinary::of_message(&message("bin", false)), None);
        assert_eq!(TestBinary::of_message("{\"reason\":\"build-finished\"}"), None);
        let library = message("test", true).replace("\"/t/props-1\"", "null");
        assert_eq!(TestBinary::of_message(&library), None);
    }

    #[test]
    fn a_package_is_named_by_its_directory_or_its_own_name() {
        assert_eq!(package_name("path+file:///a/xtask#0.1.0").unwrap(), "xtask");
        assert_eq!(
            package_name("path+file:///a/bench#standpipe-bench@0.1.0").unwrap(),
            "standpipe-bench"
        );
    }
}
