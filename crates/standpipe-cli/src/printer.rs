//! All output of the commands: data on standard output, notes and errors on standard error.

use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;

use serde_json::{Map, Value, json};
use standpipe::escape;

use crate::args::GlobalArgs;
use crate::failure::{Failure, one_line};
use crate::show::style::Style;

/// The `schema` of all JSON output.
const SCHEMA: u64 = 1;

/// Prints for people or, with `--json`, for programs.
#[derive(Debug)]
pub(crate) struct Printer {
    /// Print data as JSON.
    pub(crate) json: bool,
    quiet: bool,
    /// What standard output can show.
    pub(crate) style: Style,
}

impl Printer {
    pub(crate) fn new(globals: &GlobalArgs) -> Self {
        Self { json: globals.json, quiet: globals.quiet, style: Style::of_stdout() }
    }

    /// Prints the error of a command line that could not be parsed.
    pub(crate) fn of_usage(json: bool) -> Self {
        Self { json, quiet: false, style: Style::of_stdout() }
    }

    /// Writes text to standard output and flushes it. Text from outside must be escaped already.
    ///
    /// # Errors
    /// When standard output is closed or cannot be written.
    pub(crate) fn data(&self, text: &str) -> io::Result<()> {
        if is_closed(&io::stdout()) {
            return Err(io::Error::other("it is closed"));
        }
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()
    }

    /// Prints one line of data, escaped.
    ///
    /// # Errors
    /// When standard output is closed or cannot be written.
    pub(crate) fn line(&self, text: &str) -> io::Result<()> {
        self.data(&format!("{}\n", escape::text(text)))
    }

    /// Prints an object with its schema version: indented on a terminal, else on one line.
    ///
    /// # Errors
    /// When standard output is closed or cannot be written.
    pub(crate) fn object(&self, object: Map<String, Value>) -> io::Result<()> {
        let object = with_schema(object);
        let text =
            if io::stdout().is_terminal() { format!("{object:#}") } else { object.to_string() };
        self.json_lines(&text)
    }

    /// Prints one of many objects, on a line of its own.
    ///
    /// # Errors
    /// When standard output is closed or cannot be written.
    pub(crate) fn object_line(&self, object: Map<String, Value>) -> io::Result<()> {
        self.json_lines(&with_schema(object).to_string())
    }

    fn json_lines(&self, text: &str) -> io::Result<()> {
        let lines: String =
            text.lines().flat_map(|line| [escape::json(line), "\n".into()]).collect();
        self.data(&lines)
    }

    /// Reports a change: an object for programs, a note for people.
    ///
    /// # Errors
    /// When standard output is closed or cannot be written.
    pub(crate) fn done(&self, text: &str, object: Value) -> io::Result<()> {
        match object {
            Value::Object(object) if self.json => self.object(object),
            _ => {
                self.note(text);
                Ok(())
            }
        }
    }

    /// Prints a note for people on standard error.
    pub(crate) fn note(&self, text: &str) {
        if !self.quiet {
            write_stderr(&format!("standpipe: {}", one_line(text)));
        }
    }

    /// Prints the errors of a failure, and with `--json` its problem object.
    pub(crate) fn error(&self, failure: Failure) {
        let style = Style::of_stderr();
        for line in failure.messages.iter().flat_map(|message| message.lines(style)) {
            write_stderr(&line);
        }
        if self.json && !failure.problem.is_empty() {
            // If the output cannot be written either, the exit code remains.
            let _closed = self.object(failure.problem);
        }
    }

    /// Whether standard error is a terminal, so that a note about a wait is worth printing.
    pub(crate) fn is_watched(&self) -> bool {
        !self.quiet && io::stderr().is_terminal()
    }
}

fn with_schema(object: Map<String, Value>) -> Value {
    let mut whole = Map::new();
    whole.insert("schema".to_owned(), json!(SCHEMA));
    whole.extend(object);
    Value::Object(whole)
}

/// Whether a stream was closed when this program started. The Rust runtime opens `/dev/null` for
/// reading and writing in its place; an intended redirection opens it only for writing.
fn is_closed(stream: &impl AsFd) -> bool {
    let both_ways =
        rustix::fs::fcntl_getfl(stream).is_ok_and(|flags| flags.contains(rustix::fs::OFlags::RDWR));
    let device = |path: &str| std::fs::metadata(path).map(|meta| meta.rdev()).ok();
    let here = rustix::fs::fstat(stream).map(|stat| stat.st_rdev).ok();
    both_ways && here.is_some_and(|here| here != 0) && here == device("/dev/null")
}

fn write_stderr(line: &str) {
    // A closed standard error cannot be reported anywhere; the exit code still says what failed.
    let _closed = writeln!(io::stderr(), "{line}");
}
