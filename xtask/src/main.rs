//! The project's own commands, run as `cargo xtask COMMAND`.
//!
//! This file only finds the command. What the tests are is in [`suites`]; how they are run and
//! counted is in [`schedule`]. Nothing here depends on the crates it tests.

mod check;
mod commands;
mod context;
mod install;
mod planted;
mod process;
mod programs;
mod references;
mod report;
mod sandbox;
mod say;
mod schedule;
mod selection;
mod source;
mod suites;
mod tools;
mod tree;
mod wrap;

use std::process::ExitCode;

use crate::context::Context;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (command, rest) = match arguments.split_first() {
        Some((command, rest)) => (command.as_str(), rest),
        None => ("help", &[][..]),
    };
    match dispatch(command, rest) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            say::error(&message);
            ExitCode::from(2)
        }
    }
}

/// Runs a command; `false` means that it ran and something failed.
fn dispatch(command: &str, rest: &[String]) -> Result<bool, String> {
    match command {
        "test" => schedule::test(rest),
        "check" => check::run(),
        "bench" => commands::bench(&Context::find()?, rest),
        "fix" => commands::fix(&Context::find()?),
        "reference" => commands::reference(&Context::find()?),
        "traces" => commands::traces(&Context::find()?),
        "help" | "-h" | "--help" => {
            say::line(HELP.trim_end());
            Ok(true)
        }
        other => Err(format!("there is no command `{other}`\n\n{}", HELP.trim_end())),
    }
}

const HELP: &str = "\
cargo xtask check                 the inner loop: format, lints, rules, unit tests, golden traces
cargo xtask test                  every suite; ends with `N passed, N failed`
cargo xtask test tidy unit        only these suites
cargo xtask test standpipe-core::props::window_never_over
                                  only this test, or all tests of a module or a package
cargo xtask test planted::refund-twice
                                  only this test of a suite
cargo xtask test --long           every suite, with more cases and ten minutes of fuzzing
cargo xtask test --list           the suites
cargo xtask bench [ARGUMENT…]     the benches, in release mode
cargo xtask fix                   applies what clippy suggests, formats code and comments
cargo xtask reference             writes the generated parts of the documentation again
cargo xtask traces                writes the digests of the golden traces again
cargo xtask help                  this page
";
