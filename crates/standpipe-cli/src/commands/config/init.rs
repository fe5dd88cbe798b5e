//! `config init`: a file to begin with.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use serde_json::json;

use crate::args::Init;
use crate::commands::Ended;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::printer::Printer;
use crate::settings::Settings;

pub(super) fn run(args: &Init, settings: &Settings, printer: &Printer) -> Ended {
    let file = match &args.file {
        Some(file) => file.clone(),
        None => settings.usual_file().ok_or_else(|| {
            Failure::usage("there is no $HOME to put the file in", "say where: config init FILE")
        })?,
    };
    write(&file, args.force).map_err(|error| cannot(&file, &error))?;
    let name = file.display().to_string();
    if !printer.json {
        printer.line(&name)?;
    }
    printer.done(
        "written; change it, then `standpipe config check`",
        json!({ "file": name, "written": true }),
    )?;
    Ok(Exit::Ok)
}

/// A file that is there is kept, unless it may be replaced.
fn write(file: &Path, force: bool) -> io::Result<()> {
    if let Some(directory) = file.parent().filter(|parent| *parent != Path::new("")) {
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    }
    let mut options = OpenOptions::new();
    options.write(true).truncate(force).create(force).create_new(!force);
    options.open(file)?.write_all(standpipe::Settings::example().as_bytes())
}

fn cannot(file: &Path, error: &io::Error) -> Failure {
    let name = file.display();
    if error.kind() == io::ErrorKind::AlreadyExists {
        let what = format!("{name} is there already");
        return Failure::new(Exit::Config, "config", &what, "--force replaces it");
    }
    Failure::new(
        Exit::Config,
        "config",
        &format!("cannot write {name}: {error}"),
        "say where: config init FILE",
    )
}
