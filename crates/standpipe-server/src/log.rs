//! What the daemon says while it runs, on standard error: a line each, for people or as JSON.
//!
//! Only what it did and what went wrong; never what callers sent, and no secret.

use std::io::Write;

use serde_json::json;
use standpipe::{Moment, escape};

/// How the daemon speaks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Log {
    /// Lines of JSON instead of sentences.
    pub json: bool,
    /// Only what is wrong.
    pub quiet: bool,
}

impl Log {
    /// Something that was done.
    pub(crate) fn info(self, text: &str) {
        if !self.quiet {
            self.write("info", text);
        }
    }

    /// Something that is wrong and that somebody should look at.
    pub(crate) fn warn(self, text: &str) {
        self.write("warn", text);
    }

    fn write(self, level: &str, text: &str) {
        let at = Moment::now().to_string();
        let line = match self.json {
            true => {
                let line = json!({ "at": at, "level": level, "message": text }).to_string();
                escape::json(&line).into_owned()
            }
            false if level == "info" => format!("{at} {}", escape::text(text)),
            false => format!("{at} {level}: {}", escape::text(text)),
        };
        // Nobody is left to hear that standard error is gone.
        let _heard = writeln!(std::io::stderr(), "{line}");
    }
}
