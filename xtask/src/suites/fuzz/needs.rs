//! The C++ compiler that libFuzzer is built with, installed when it is missing and that is allowed.

use crate::context::Context;
use crate::process::BUILD;

/// Makes sure that there is one.
///
/// # Errors
/// Names the command that installs it.
pub(super) fn cpp_compiler(context: &Context) -> Result<(), String> {
    const INSTALL: [&str; 4] = ["apt-get", "install", "--yes", "g++"];
    if works(context, "c++", &["--version"]) {
        return Ok(());
    }
    let [program, arguments @ ..] = INSTALL;
    if is_root(context)
        && works(context, program, &arguments)
        && works(context, "c++", &["--version"])
    {
        return Ok(());
    }
    Err(format!("fuzzing needs a C++ compiler named `c++`; install it: {}", INSTALL.join(" ")))
}

fn is_root(context: &Context) -> bool {
    let asked = context.run_apart(context.program("id").arg("-u"), BUILD);
    asked.is_ok_and(|id| id.data.trim() == "0")
}

fn works(context: &Context, program: &str, arguments: &[&str]) -> bool {
    context.run(context.program(program).args(arguments), BUILD).is_ok_and(|finished| finished.ok)
}
