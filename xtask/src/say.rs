//! The only place that prints.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "printing is what this file is for")]

use std::io::Write;

/// A line of data.
pub(crate) fn line(text: &str) {
    println!("{text}");
}

/// The beginning of a line whose rest comes later.
pub(crate) fn begin(text: &str) {
    print!("{text}");
    // Whoever watches should see it now; if nobody can, nothing is lost.
    let _ = std::io::stdout().flush();
}

/// What went wrong, and what to do.
pub(crate) fn error(text: &str) {
    eprintln!("error: {text}");
}
