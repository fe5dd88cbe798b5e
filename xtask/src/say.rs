//! The only place that prints.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "printing is what this file is for")]

use std::time::Duration;

/// A line of data.
pub(crate) fn line(text: &str) {
    println!("{text}");
}

/// A time to the tenth of a second. By integers: the workspace does without floating point.
pub(crate) fn seconds(time: Duration) -> String {
    let tenths = time.as_millis() / 100;
    format!("{}.{} s", tenths / 10, tenths % 10)
}

/// What went wrong, and what to do.
pub(crate) fn error(text: &str) {
    eprintln!("error: {text}");
}
