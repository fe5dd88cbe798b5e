//! Finds and loads the configuration file.
//!
//! An explicitly named file must exist; the other places are optional. The working directory is
//! never searched, so a program behaves the same wherever it is started.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use crate::escape::plain_io;
use crate::problem::{ConfigError, Problem};
use crate::settings::Settings;

/// Returns the settings of the first file that exists, or the defaults.
pub(crate) fn find(
    explicit: Option<&Path>,
    env: &dyn Fn(&str) -> Option<String>,
    system: &Path,
) -> Result<Settings, ConfigError> {
    let set = |name: &str| env(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(path) = explicit {
        return read(path, "");
    }
    if let Some(path) = set("STANDPIPE_CONFIG") {
        return read(&path, " named by $STANDPIPE_CONFIG");
    }
    // A relative directory would be resolved against the working directory.
    let absolute = |path: &PathBuf| path.is_absolute();
    let home = || set("HOME").filter(absolute).map(|home| home.join(".config"));
    let user = set("XDG_CONFIG_HOME").filter(absolute).or_else(home);
    let places = [user.as_deref(), Some(system)];
    for directory in places.into_iter().flatten() {
        let path = directory.join("standpipe").join("standpipe.toml");
        match load(&path) {
            Err(Unreadable::Absent) => {}
            Err(Unreadable::Because(problem)) => return Err(problem.into()),
            Ok((text, written)) => return Settings::parse(&text, Some(&path), written),
        }
    }
    Ok(Settings::default())
}

/// Reads an explicitly named file. `named` says by what, if the command line does not show it.
fn read(path: &Path, named: &str) -> Result<Settings, ConfigError> {
    match load(path) {
        Ok((text, written)) => Settings::parse(&text, Some(path), written),
        Err(Unreadable::Because(problem)) => Err(problem.into()),
        Err(Unreadable::Absent) => {
            let what = format!("the configuration file{named} does not exist");
            let shown = path.display();
            let remedy = format!("name another, or write it: standpipe config init {shown}");
            Err(problem(path, what, &remedy).into())
        }
    }
}

/// Returns the text of a file, if it can be read.
pub(super) fn text(path: &Path) -> Option<String> {
    load(path).ok().map(|(text, _)| text)
}

/// Why a file was not loaded.
enum Unreadable {
    Absent,
    Because(Problem),
}

/// Returns the text of a file and its modification time in milliseconds.
fn load(path: &Path) -> Result<(String, u64), Unreadable> {
    let because = |what: String, remedy: &str| Unreadable::Because(problem(path, what, remedy));
    let failed = |error: &std::io::Error| match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => Unreadable::Absent,
        ErrorKind::PermissionDenied => because(
            "no permission to read the configuration file".to_owned(),
            "grant read permission, or name another file with --config",
        ),
        ErrorKind::IsADirectory => because("this is a directory".to_owned(), "name the file in it"),
        _ => because(
            format!("the configuration file cannot be read: {}", plain_io(error)),
            "name another with --config",
        ),
    };
    let file = File::open(path).map_err(|error| failed(&error))?;
    let metadata = file.metadata().map_err(|error| failed(&error))?;
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(|error| failed(&error))?;
    if bytes.len() as u64 > LARGEST {
        let what = "the configuration file is larger than 1 MiB".to_owned();
        return Err(because(what, "is it the right file?"));
    }
    let written = metadata.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    let written = written.map_or(0, |age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX));
    let text = String::from_utf8(bytes).map_err(|error| {
        let good = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..good].iter().filter(|b| **b == b'\n').count() + 1;
        let what = "the file is not UTF-8".to_owned();
        let place = problem(path, what, "save the file as UTF-8");
        Unreadable::Because(Problem { line: Some(line), ..place })
    })?;
    Ok((text, written))
}

fn problem(path: &Path, what: String, remedy: &str) -> Problem {
    Problem { file: Some(path.to_path_buf()), line: None, what, remedy: remedy.to_owned() }
}

/// The maximum size of a configuration file. A larger one is probably another file.
const LARGEST: u64 = 1 << 20;
