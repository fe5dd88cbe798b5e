//! The one way out: data to standard output, talk to standard error.

use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;

use serde_json::{Map, Value, json};
use standpipe::escape;

use crate::args::Globals;
use crate::failure::{Failure, one_line};
use crate::show::style::Style;

/// The version of the shape of all JSON that is printed.
const SCHEMA: u64 = 1;

/// Where everything that is printed goes through.
#[derive(Debug)]
pub(crate) struct Printer {
    /// Data as JSON.
    pub(crate) json: bool,
    quiet: bool,
    /// What standard output can show.
    pub(crate) style: Style,
}

impl Printer {
    pub(crate) fn new(globals: &Globals) -> Self {
        Self { json: globals.json, quiet: globals.quiet, style: Style::of_stdout() }
    }

    /// Writes to standard output and sees that it is out. What it holds from outside was escaped
    /// before it was laid out.
    ///
    /// # Errors
    /// When nobody takes it.
    pub(crate) fn data(&self, text: &str) -> io::Result<()> {
        if is_closed(&io::stdout()) {
            return Err(io::Error::other("it is closed"));
        }
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()
    }

    /// One line of data, escaped.
    ///
    /// # Errors
    /// When nobody takes it.
    pub(crate) fn line(&self, text: &str) -> io::Result<()> {
        self.data(&format!("{}\n", escape::text(text)))
    }

    /// An object, with the version of its shape in front: over several lines for people on a
    /// terminal, on one for programs.
    ///
    /// # Errors
    /// When nobody takes it.
    pub(crate) fn object(&self, object: Map<String, Value>) -> io::Result<()> {
        let object = with_schema(object);
        let text =
            if io::stdout().is_terminal() { format!("{object:#}") } else { object.to_string() };
        self.json_lines(&text)
    }

    /// One of many objects, on a line of its own.
    ///
    /// # Errors
    /// When nobody takes it.
    pub(crate) fn object_line(&self, object: Map<String, Value>) -> io::Result<()> {
        self.json_lines(&with_schema(object).to_string())
    }

    fn json_lines(&self, text: &str) -> io::Result<()> {
        let lines: String =
            text.lines().flat_map(|line| [escape::json(line), "\n".into()]).collect();
        self.data(&lines)
    }

    /// What was done: an object for programs, a remark for people.
    ///
    /// # Errors
    /// When nobody takes the object.
    pub(crate) fn done(&self, text: &str, object: Value) -> io::Result<()> {
        match object {
            Value::Object(object) if self.json => self.object(object),
            _ => {
                self.talk(text);
                Ok(())
            }
        }
    }

    /// A remark for people.
    pub(crate) fn talk(&self, text: &str) {
        if !self.quiet {
            say(&one_line(text));
        }
    }

    /// Says what went wrong.
    pub(crate) fn fail(&self, failure: Failure) {
        for line in &failure.lines {
            say(line);
        }
        if self.json && !failure.problem.is_empty() {
            // If that cannot be written either, the code still tells.
            let _told = self.object(failure.problem);
        }
    }

    /// Whether a remark about a wait would be seen by somebody.
    pub(crate) fn somebody_watches(&self) -> bool {
        !self.quiet && io::stderr().is_terminal()
    }
}

fn with_schema(object: Map<String, Value>) -> Value {
    let mut whole = Map::new();
    whole.insert("schema".to_owned(), json!(SCHEMA));
    whole.extend(object);
    Value::Object(whole)
}

/// Whether a stream was closed when this program began. What is closed then is made a device that
/// takes everything, so that no file comes in its place; nobody who sends output there on purpose
/// opens that for reading too.
fn is_closed(stream: &impl AsFd) -> bool {
    let both_ways =
        rustix::fs::fcntl_getfl(stream).is_ok_and(|flags| flags.contains(rustix::fs::OFlags::RDWR));
    let device = |path: &str| std::fs::metadata(path).map(|meta| meta.rdev()).ok();
    let here = rustix::fs::fstat(stream).map(|stat| stat.st_rdev).ok();
    both_ways && here.is_some_and(|here| here != 0) && here == device("/dev/null")
}

fn say(line: &str) {
    // Nobody is left to hear that standard error is gone.
    let _heard = writeln!(io::stderr(), "standpipe: {line}");
}
