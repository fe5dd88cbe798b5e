//! What is in `deploy/` is what the programs that read it take: units, containers, manifests,
//! alerts, the dashboard; and the names of metrics in it are names that the daemon prints.
//!
//! Nothing is started. Every check runs twice: on the files as they are, and on a copy with one
//! mistake, which it has to refuse.

mod checks;
mod names;
mod needs;

use std::fs;
use std::path::{Path, PathBuf};

use crate::context::Context;
use crate::process::BUILD;
use crate::report::Report;

use self::checks::{ALL, Check};
pub(crate) use self::needs::{has_promtool, install, install_promtool, is_here};

/// The file with what the daemon prints, beside copies of those of `deploy/`.
const EXPOSITION: &str = "exposition.txt";

/// What a check is given.
struct Scene<'a> {
    context: &'a Context,
    /// A copy of `deploy/`.
    directory: PathBuf,
}

pub(super) fn run(context: &Context) -> Result<Report, String> {
    let exposition = exposition(context)?;
    let selected = |check: &&Check| context.only.as_ref().is_none_or(|only| only == check.name);
    let mut report = Report::default();
    for check in ALL.iter().filter(selected) {
        let directory = context.target.join("deploy-copies").join(check.name);
        let scene = Scene { context, directory };
        copy(&context.root.join("deploy"), &scene.directory)?;
        write(&scene.directory.join(EXPOSITION), &exposition)?;
        report.count("deploy", check.name, (check.run)(&scene));
        report.count("deploy", check.name, refuses_a_mistake(&scene, check));
    }
    report.note("the files were read by the programs they are for; nothing was started");
    Ok(report)
}

/// A check that accepts a wrong file proves nothing.
fn refuses_a_mistake(scene: &Scene<'_>, check: &Check) -> Result<(), String> {
    spoil(scene, check)?;
    match (check.run)(scene) {
        Err(_) => Ok(()),
        Ok(()) => Err(format!(
            "a copy of {} with `{}` was accepted: {}",
            check.mistake.file,
            check.mistake.wrong,
            scene.directory.display()
        )),
    }
}

/// What the daemon prints after calls of every kind.
fn exposition(context: &Context) -> Result<String, String> {
    let mut example = context.program(context.target.join("debug/examples/exposition"));
    let finished = context.run_apart(&mut example, BUILD)?;
    match finished.ok {
        true => Ok(finished.data),
        false => Err(format!("the example `exposition` failed:\n{}", finished.output)),
    }
}

/// The files of a directory, in another that has nothing else.
fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let _ = fs::remove_dir_all(to);
    let told = |error: std::io::Error| format!("cannot copy {}: {error}", from.display());
    fs::create_dir_all(to).map_err(told)?;
    for entry in fs::read_dir(from).map_err(told)? {
        let entry = entry.map_err(told)?;
        if entry.path().is_file() {
            fs::copy(entry.path(), to.join(entry.file_name())).map_err(told)?;
        }
    }
    Ok(())
}

/// Makes the check's mistake in the copy.
fn spoil(scene: &Scene<'_>, check: &Check) -> Result<(), String> {
    let mistake = &check.mistake;
    let path = scene.directory.join(mistake.file);
    let text = read(&path)?;
    if !text.contains(mistake.right) {
        let (file, right) = (mistake.file, mistake.right);
        return Err(format!("{}: there is no `{right}` in {file} to be spoilt", check.name));
    }
    write(&path, &text.replacen(mistake.right, mistake.wrong, 1))
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
}
