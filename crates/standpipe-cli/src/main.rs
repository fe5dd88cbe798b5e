//! `standpipe`, the command line: arguments, then settings, then the command, then the printer.
//!
//! Here is only the way through. What can be said is in `args`, what is done in `commands`, what it
//! looks like in `show`, other programs in `process`, the live view in `top`, talking to a daemon
//! in `daemon`.

mod args;
mod caller;
mod commands;
mod daemon;
mod exit;
mod failure;
mod printer;
mod process;
mod settings;
mod show;
mod top;
mod usage;

use std::process::ExitCode;

use clap::Parser;

use crate::args::Cli;
use crate::printer::Printer;
use crate::settings::Settings;

fn main() -> ExitCode {
    if let Some(code) = process::child::become_the_command() {
        return code;
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage::answer(&error).into(),
    };
    let printer = Printer::new(&cli.globals);
    let settings = Settings::new(cli.globals);
    let ended = commands::run(cli.command, &settings, &printer);
    for news in settings.news() {
        printer.talk(&news);
    }
    match ended {
        Ok(exit) => exit.into(),
        Err(failure) => {
            let exit = failure.exit;
            printer.fail(failure);
            exit.into()
        }
    }
}
