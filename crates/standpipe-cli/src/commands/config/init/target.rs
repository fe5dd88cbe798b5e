//! The file that `config init` writes: whether it can be written, and what becomes of an old one.
//!
//! Guarantee: no text of an existing file is lost. It is added to, or kept under a name that no
//! earlier file has.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::exit::Exit;
use crate::failure::Failure;

/// The number of old files that are kept.
const BACKUPS: u32 = 1_000;

/// Fails if no file can be at this path.
pub(super) fn check(file: &Path) -> Result<(), Failure> {
    let name = file.display();
    if file.is_dir() {
        let hint = format!("name a file in it: standpipe config init {name}/standpipe.toml");
        return Err(failure(&format!("{name} is a directory"), &hint));
    }
    let in_the_way = file.ancestors().skip(1).find(|above| above.is_file());
    match in_the_way {
        None => Ok(()),
        Some(above) => {
            let what = format!("{} is a file, not a directory", above.display());
            Err(failure(&what, "name another file: standpipe config init FILE"))
        }
    }
}

/// Returns the text of an existing file that is to be added to.
pub(super) fn existing(file: &Path) -> Result<Option<String>, Failure> {
    match fs::read_to_string(file) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(cannot("read", file, &error)),
    }
}

/// Keeps an existing file that is to be replaced, beside it. Returns its new name.
pub(super) fn keep(file: &Path) -> Result<Option<PathBuf>, Failure> {
    if !file.exists() {
        return Ok(None);
    }
    let text = fs::read(file).map_err(|error| cannot("read", file, &error))?;
    for number in 1..=BACKUPS {
        let mut name = file.as_os_str().to_owned();
        name.push(".bak");
        if number > 1 {
            name.push(format!(".{number}"));
        }
        let backup = PathBuf::from(name);
        match OpenOptions::new().write(true).create_new(true).open(&backup) {
            Ok(mut new) => {
                new.write_all(&text).map_err(|error| cannot("write", &backup, &error))?;
                return Ok(Some(backup));
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(cannot("write", &backup, &error)),
        }
    }
    let what = format!("{} has {BACKUPS} backups already", file.display());
    Err(failure(&what, "delete the .bak files that you do not need"))
}

/// Writes the file. An existing file is replaced only if `replace` is set.
pub(super) fn write(file: &Path, text: &str, replace: bool) -> Result<(), Failure> {
    let create = || -> io::Result<()> {
        if let Some(directory) = file.parent().filter(|parent| *parent != Path::new("")) {
            DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        }
        let mut options = OpenOptions::new();
        options.write(true).truncate(replace).create(replace).create_new(!replace);
        options.open(file)?.write_all(text.as_bytes())
    };
    create().map_err(|error| cannot("write", file, &error))
}

fn cannot(what: &str, file: &Path, error: &io::Error) -> Failure {
    let name = file.display();
    let elsewhere = "name another file: standpipe config init FILE";
    match error.kind() {
        io::ErrorKind::AlreadyExists => failure(
            &format!("{name} already exists"),
            "--for PROVIDER adds to it; --force replaces it and keeps it as a .bak file",
        ),
        io::ErrorKind::PermissionDenied => {
            failure(&format!("no permission to {what} {name}"), elsewhere)
        }
        io::ErrorKind::ReadOnlyFilesystem => {
            failure(&format!("cannot {what} {name}: the file system is read-only"), elsewhere)
        }
        io::ErrorKind::InvalidData => {
            failure(&format!("{name} is not UTF-8 text"), "save it as UTF-8, or use --force")
        }
        _ => failure(&format!("cannot {what} {name}: {error}"), elsewhere),
    }
}

fn failure(what: &str, hint: &str) -> Failure {
    Failure::new(Exit::Config, "config", what, hint)
}
