//! Writes `tracing` events to standard error: one line each, for people or as JSON.
//!
//! Text from outside is escaped, so no event can forge a line or move a cursor. Tokens, headers and
//! bodies are never recorded as fields.

use std::fmt::{self, Write as _};
use std::io::Write as _;
use std::str::FromStr;

use serde_json::{Map, Value};
use standpipe::escape;
use standpipe::observe::Timestamp;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

/// How lines are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// A sentence, followed by fields.
    #[default]
    Human,
    /// A JSON object.
    Json,
}

/// The least important level that is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogLevel {
    /// What ended the daemon.
    Error,
    /// What needs attention.
    Warn,
    /// What the daemon did.
    #[default]
    Info,
    /// Each request.
    Debug,
    /// Everything.
    Trace,
}

/// How the daemon logs if [`init`] was not called before.
#[derive(Clone, Copy, Debug, Default)]
pub struct Log {
    /// JSON objects instead of sentences.
    pub json: bool,
    /// Only warnings and errors.
    pub quiet: bool,
}

impl Log {
    pub(crate) fn init(self) {
        let format = if self.json { LogFormat::Json } else { LogFormat::Human };
        let level = if self.quiet { LogLevel::Warn } else { LogLevel::Info };
        init(format, level);
    }
}

/// Starts logging in this process. Returns false if something logs already, which then stays.
pub fn init(format: LogFormat, level: LogLevel) -> bool {
    let layer = LineLayer { format, max: level.into() };
    tracing::subscriber::set_global_default(tracing_subscriber::registry().with(layer)).is_ok()
}

impl From<LogLevel> for LevelFilter {
    fn from(level: LogLevel) -> Self {
        match level {
            LogLevel::Error => Self::ERROR,
            LogLevel::Warn => Self::WARN,
            LogLevel::Info => Self::INFO,
            LogLevel::Debug => Self::DEBUG,
            LogLevel::Trace => Self::TRACE,
        }
    }
}

impl FromStr for LogFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "human" => Ok(Self::Human),
            "json" => Ok(Self::Json),
            _ => Err("use human or json".to_owned()),
        }
    }
}

impl FromStr for LogLevel {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "error" => Ok(Self::Error),
            "warn" => Ok(Self::Warn),
            "info" => Ok(Self::Info),
            "debug" => Ok(Self::Debug),
            "trace" => Ok(Self::Trace),
            _ => Err("use error, warn, info, debug or trace".to_owned()),
        }
    }
}

/// Writes events of this project's crates.
struct LineLayer {
    format: LogFormat,
    max: LevelFilter,
}

/// The fields of a span or event, in order.
#[derive(Clone, Debug, Default)]
struct Fields(Map<String, Value>);

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for LineLayer {
    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        *metadata.level() <= self.max && metadata.target().starts_with("standpipe")
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.max)
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(fields);
        }
    }

    fn on_record(&self, id: &Id, record: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(fields) = span.extensions_mut().get_mut::<Fields>()
        {
            record.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        for span in context.event_scope(event).into_iter().flatten() {
            if let Some(outer) = span.extensions().get::<Fields>() {
                for (name, value) in &outer.0 {
                    fields.0.entry(name).or_insert_with(|| value.clone());
                }
            }
        }
        let at = Timestamp::now().to_string();
        let line = line(self.format, &at, *event.metadata().level(), fields);
        // A closed standard error is no reason to stop serving.
        let _written = writeln!(std::io::stderr(), "{line}");
    }
}

fn line(format: LogFormat, at: &str, level: Level, mut fields: Fields) -> String {
    let message = fields.0.shift_remove("message").unwrap_or_default();
    let level = level.as_str().to_ascii_lowercase();
    if format == LogFormat::Json {
        let mut object = Map::new();
        for (name, value) in [("at", at.into()), ("level", level.into()), ("message", message)] {
            object.insert(name.to_owned(), value);
        }
        for (name, value) in fields.0 {
            object.entry(name).or_insert(value);
        }
        return escape::json(&Value::Object(object).to_string()).into_owned();
    }
    let mut text = message.as_str().unwrap_or_default().to_owned();
    for (name, value) in &fields.0 {
        // Writing to a string does not fail.
        let _ = match value {
            Value::String(value) => write!(text, " {name}={value}"),
            value => write!(text, " {name}={value}"),
        };
    }
    let text = escape::text(&text);
    if level == "info" { format!("{at} {text}") } else { format!("{at} {level}: {text}") }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.0.insert(field.name().to_owned(), value.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields() -> Fields {
        let mut fields = Map::new();
        fields.insert("message".to_owned(), "pool\nforged".into());
        fields.insert("pool".to_owned(), "my/api\u{1b}[2J".into());
        fields.insert("status".to_owned(), 201.into());
        Fields(fields)
    }

    #[test]
    fn an_event_is_one_line_whatever_it_contains() {
        let human = line(LogFormat::Human, "AT", Level::WARN, fields());
        assert_eq!(human, r"AT warn: pool\nforged pool=my/api\u{1b}[2J status=201");
        let json = line(LogFormat::Json, "AT", Level::INFO, fields());
        assert_eq!(json.lines().count(), 1);
        let read: Value = json.parse().unwrap();
        assert_eq!((&read["at"], &read["level"]), (&Value::from("AT"), &Value::from("info")));
        assert_eq!(read["pool"], "my/api\u{1b}[2J");
        assert_eq!(read["message"], "pool\nforged");
    }

    #[test]
    fn formats_and_levels_are_read_by_name() {
        assert_eq!("json".parse(), Ok(LogFormat::Json));
        assert_eq!("debug".parse(), Ok(LogLevel::Debug));
        assert!("loud".parse::<LogLevel>().unwrap_err().contains("trace"));
    }
}
