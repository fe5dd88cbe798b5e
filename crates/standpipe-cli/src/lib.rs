//! The command line `standpipe`. The program and the Python package both run it.
//!
//! A command goes through four modules: `args` parses the command line, `context` finds the
//! configuration and opens the ledger, `commands` executes, `printer` writes. `show` formats output
//! for people, `process` runs the program of `hold`, `top` is the live view, `daemon` the client of
//! a daemon, `failure` and `exit` are errors and exit codes.
//!
//! Guarantee: data goes to standard output and everything else to standard error; every error is an
//! `error:` line, with a `hint:` line where there is a remedy.
//!
//! # The life of one `hold`
//!
//! `standpipe hold my/slots --limit parallel=1 -- true` on the file store runs these functions, all
//! on the main thread but for the library's threads (journal, and maintenance while it waits):
//!
//! 1. `Cli::parse_arguments`: clap parses the command line; values by `args::parse`.
//! 2. `commands::hold::run`
//! 3. `process::lookup::find`: the command exists and is executable, else 127 or 126.
//! 4. `commands::admission::request`: flags to a `standpipe::Request`, the agent by
//!    `caller::agent`.
//! 5. `commands::units::check_limits`: every `--limit` is of a unit that the call takes.
//! 6. `Context::open`: reads the configuration file, opens the store directory.
//! 7. `Context::pool_to_reserve`: `Standpipe::pool` and `Pool::check`, which take no step.
//! 8. `Standpipe::route`: another pool for `--task`, if a route names one.
//! 9. `process::signals::Signals::listen`: from here on signals are flags.
//! 10. `commands::admission::admit`: `Pool::reserve`, polled by `process::wait::wait_for`. Limits
//!     and reserve are one step. Returns a lease, a refusal, or ends by a signal.
//! 11. `process::run::run`: `standpipe_sys::die_with_parent`, then `Command::spawn`.
//! 12. `process::run::forward`: signals that arrive, to the child.
//! 13. `Lease::progress`, at a quarter of the lease's time, so that it does not expire.
//! 14. `Child::try_wait`: the exit status.
//! 15. `commands::hold::throttled`: by exit code or by a line of standard error (`process::tee`).
//! 16. `Lease::commit`, or `Lease::throttled` for a throttled command.
//! 17. `Context::warnings`: what the store has to report.
//! 18. `Exit`: the exit code of the command.

mod args;
mod caller;
mod commands;
mod context;
mod daemon;
mod exit;
mod failure;
mod invocation;
mod printer;
mod process;
mod show;
mod top;
mod usage;

use std::process::ExitCode;

use crate::args::Cli;
use crate::context::Context;
use crate::exit::Exit;
pub use crate::invocation::Invocation;
use crate::printer::Printer;

/// Runs the command line once and returns the exit code.
#[must_use]
pub fn run(invocation: Invocation) -> ExitCode {
    execute(invocation).into()
}

/// Runs the command line once and returns the number that the shell sees.
#[must_use]
pub fn run_for_number(invocation: Invocation) -> u8 {
    execute(invocation).number()
}

fn execute(invocation: Invocation) -> Exit {
    let arguments = invocation.arguments();
    invocation.set();
    let cli = match Cli::parse_arguments(&arguments) {
        Ok(cli) => cli,
        Err(error) => return usage::report(&error),
    };
    let printer = Printer::new(&cli.globals);
    let context = Context::new(cli.globals);
    let result = commands::run(cli.command, &context, &printer);
    for warning in context.warnings() {
        printer.note(&warning);
    }
    match result {
        Ok(exit) => exit,
        Err(failure) => {
            let exit = failure.exit;
            printer.error(failure);
            exit
        }
    }
}
