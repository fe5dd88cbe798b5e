//! `completions`.

use clap::CommandFactory;
use clap_complete::Shell;

use super::CommandResult;
use crate::args::Cli;
use crate::exit::Exit;
use crate::printer::Printer;

pub(super) fn run(shell: Shell, printer: &Printer) -> CommandResult {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "standpipe", &mut script);
    printer.data(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Ok)
}
