//! The C++ compiler that libFuzzer is built with, installed when it is missing and that is allowed.

use crate::context::Context;
use crate::install::apt;

/// Makes sure that there is one.
///
/// # Errors
/// Names the command that installs it.
pub(super) fn cpp_compiler(context: &Context) -> Result<(), String> {
    if apt::works(context, "c++", &["--version"]) {
        return Ok(());
    }
    apt::install(context, "g++")
        .map_err(|why| format!("fuzzing needs a C++ compiler named `c++`; {why}"))
}
