//! `config init`: writes a commented configuration file.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use serde_json::json;

use crate::args::Init;
use crate::commands::CommandResult;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::printer::Printer;

pub(super) fn run(args: &Init, context: &Context, printer: &Printer) -> CommandResult {
    let file = match &args.file {
        Some(file) => file.clone(),
        None => context
            .default_config_file()
            .ok_or_else(|| Failure::usage("$HOME is not set", "name the file: config init FILE"))?,
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

/// Writes the file. An existing file is replaced only with `force`.
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
        let what = format!("{name} already exists");
        return Failure::new(Exit::Config, "config", &what, "--force replaces it");
    }
    Failure::new(
        Exit::Config,
        "config",
        &format!("cannot write {name}: {error}"),
        "name the file: config init FILE",
    )
}
