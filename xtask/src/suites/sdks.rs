//! The real SDKs of providers through the proxy: `tests/sdks`, with pytest.

use std::path::PathBuf;

use super::pytest;
use crate::context::Context;
use crate::install::python;
use crate::report::Report;

/// Where the tests are.
const TESTS: &str = "tests/sdks";
/// One version of each, so that a new release does not break an old commit.
const PACKAGES: [&str; 3] = ["anthropic==2.9.0", "openai==3.51.0", "pytest==9.2.0"];

/// Where its Python environment is.
fn environment(context: &Context) -> PathBuf {
    context.target.join("sdk-tools/python")
}

/// Whether the SDKs are here.
pub(crate) fn is_here(context: &Context) -> bool {
    python::is_here(&environment(context), &PACKAGES)
}

/// Installs the SDKs.
pub(crate) fn install(context: &Context) -> Result<(), String> {
    python::environment(context, &environment(context), &PACKAGES).map(drop)
}

pub(super) fn run(context: &Context) -> Result<Report, String> {
    pytest::run(context, "sdks", &environment(context), TESTS)
}
