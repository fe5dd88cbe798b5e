//! What the daemon says while it runs, on standard error: a line each, for people or as JSON.
//!
//! Only what it did and what went wrong; never what callers sent, and no secret.

use std::io::Write;

use serde_json::json;
use standpipe::Moment;

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
        let clean: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let line = match self.json {
            true => json!({ "at": at, "level": level, "message": clean }).to_string(),
            false if level == "info" => format!("{at} {clean}"),
            false => format!("{at} {level}: {clean}"),
        };
        // Nobody is left to hear that standard error is gone.
        let _heard = writeln!(std::io::stderr(), "{line}");
    }
}
