//! `man`: the manual page, with every command.

use std::io;

use clap::CommandFactory;
use clap_mangen::Man;

use super::CommandResult;
use crate::args::Cli;
use crate::exit::Exit;
use crate::printer::Printer;

pub(super) fn run(printer: &Printer) -> CommandResult {
    let mut command = Cli::command();
    command.build();
    let mut page = Vec::new();
    Man::new(command.clone()).render(&mut page)?;
    for below in command.get_subcommands() {
        section(below, "standpipe", &mut page)?;
    }
    printer.data(&String::from_utf8_lossy(&page))?;
    Ok(Exit::Ok)
}

/// Appends a command and its subcommands as sections.
fn section(command: &clap::Command, path: &str, page: &mut Vec<u8>) -> io::Result<()> {
    let path = format!("{path} {}", command.get_name());
    let man = Man::new(command.clone());
    page.extend_from_slice(format!(".SH \"{}\"\n", path.to_uppercase()).as_bytes());
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    page.extend_from_slice(format!("{about}\n").as_bytes());
    let mut part = Vec::new();
    man.render_synopsis_section(&mut part)?;
    man.render_options_section(&mut part)?;
    let part = String::from_utf8_lossy(&part).replace(".SH ", ".SS ");
    page.extend_from_slice(part.as_bytes());
    for below in command.get_subcommands() {
        section(below, &path, page)?;
    }
    Ok(())
}
