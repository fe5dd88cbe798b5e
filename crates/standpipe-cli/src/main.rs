//! The program `standpipe`.

use std::process::ExitCode;

use standpipe_cli::Invocation;

fn main() -> ExitCode {
    standpipe_cli::run(Invocation::of_process())
}
