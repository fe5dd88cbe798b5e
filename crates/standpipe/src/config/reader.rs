//! Walks the parsed file: hands out values of the right type, notes where each of them stands, and
//! collects what is wrong instead of stopping at it.
//!
//! It does not know what any key means. A message never repeats a text that could be a secret; only
//! [`Reader::take`] quotes values, and it is for rates, durations and the like.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use standpipe_core::Span;
use standpipe_store::PoolName;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::nearest::nearest;
use super::problem::{ConfigError, Problem};
use super::text::{self, TextError, quoted};

/// The file on its way to settings.
pub(super) struct Reader<'t> {
    origin: Option<&'t Path>,
    /// Where each line begins.
    starts: Vec<usize>,
    problems: Vec<Problem>,
    /// The line of every key that was read, by its dotted path.
    pub(super) lines: BTreeMap<String, usize>,
    /// Pools that are referred to, and where; whether they exist is known at the end.
    pub(super) references: Vec<(PoolName, usize)>,
}

/// A value of the file: what it is called, and where it stands.
pub(super) struct Item<'a> {
    /// Its key.
    pub(super) key: &'a str,
    /// Its key, as it is shown to people.
    pub(super) name: String,
    /// All keys that lead to it, as they could stand in a file.
    pub(super) path: String,
    /// The line of its key.
    pub(super) line: usize,
    /// Where the value itself begins.
    start: usize,
    pub(super) value: &'a DeValue<'a>,
}

impl<'t> Reader<'t> {
    pub(super) fn new(text: &str, origin: Option<&'t Path>) -> Self {
        let breaks = text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(at, _)| at + 1);
        Self {
            origin,
            starts: std::iter::once(0).chain(breaks).collect(),
            problems: Vec::new(),
            lines: BTreeMap::new(),
            references: Vec::new(),
        }
    }

    /// Everything that was wrong, in the order of the file; nothing if nothing was.
    pub(super) fn finish(mut self) -> Result<BTreeMap<String, usize>, ConfigError> {
        if self.problems.is_empty() {
            return Ok(self.lines);
        }
        self.problems.sort_by_key(|problem| problem.line);
        Err(ConfigError { problems: self.problems })
    }

    /// Whether something is wrong on that line already.
    pub(super) fn is_told(&self, line: usize) -> bool {
        self.problems.iter().any(|problem| problem.line == Some(line))
    }

    pub(super) const fn is_clean(&self) -> bool {
        self.problems.is_empty()
    }

    /// The line, counted from 1, of a place in the text.
    pub(super) fn line(&self, place: usize) -> usize {
        self.starts.partition_point(|start| *start <= place).max(1)
    }

    pub(super) fn wrong(
        &mut self,
        line: usize,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.problems.push(Problem {
            file: self.origin.map(Path::to_path_buf),
            line: Some(line),
            what: what.into(),
            remedy: remedy.into(),
        });
    }

    /// Something is wrong with the value of `item`.
    pub(super) fn wrong_at(
        &mut self,
        item: &Item<'_>,
        what: impl AsRef<str>,
        remedy: impl Into<String>,
    ) {
        let what = format!("{}: {}", item.name, what.as_ref());
        self.wrong(self.line(item.start), what, remedy);
    }

    /// A key that means nothing here.
    pub(super) fn unknown(&mut self, item: &Item<'_>, known: &[&str], place: &str) {
        let remedy = match nearest(item.key, known.iter().copied()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("known here: {}", known.join(", ")),
        };
        self.wrong(item.line, format!("unknown key {} {place}", item.name), remedy);
    }

    /// The entries of a table in the order of the file; anything else is a problem.
    pub(super) fn entries<'a>(&mut self, item: &Item<'a>) -> Vec<Item<'a>> {
        match item.value {
            DeValue::Table(table) => self.entries_of(table, &item.path),
            _ => {
                let remedy = format!("write a table: [{}]", cut(&item.path));
                self.wrong_at(item, format!("is {}", kind(item.value)), remedy);
                Vec::new()
            }
        }
    }

    /// The entries of the table that `path` leads to.
    pub(super) fn entries_of<'a>(&mut self, table: &'a DeTable<'a>, path: &str) -> Vec<Item<'a>> {
        let mut entries: Vec<(&Spanned<_>, &Spanned<DeValue<'a>>)> = table.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        let items = entries.into_iter().map(|(key, value)| {
            let key_text: &str = key.get_ref();
            let line = self.line(key.span().start);
            let path = join(path, key_text);
            let is_table = value.get_ref().is_table();
            // A table may be written in several places; its key is a better guide than its span.
            let start = if is_table { key.span().start } else { value.span().start };
            self.lines.entry(path.clone()).or_insert(line);
            let name = shown(key_text);
            Item { key: key_text, name, path, line, start, value: value.get_ref() }
        });
        items.collect()
    }

    /// The elements of a list; anything else is a problem.
    pub(super) fn list<'a>(&mut self, item: &Item<'a>) -> Vec<Item<'a>> {
        let DeValue::Array(array) = item.value else {
            let remedy = format!("write a list: {} = [\"…\"]", cut(item.key));
            self.wrong_at(item, format!("is {}", kind(item.value)), remedy);
            return Vec::new();
        };
        let elements = array.iter().map(|value| Item {
            key: item.key,
            name: item.name.clone(),
            path: item.path.clone(),
            line: self.line(value.span().start),
            start: value.span().start,
            value: value.get_ref(),
        });
        elements.collect()
    }

    pub(super) fn text<'a>(&mut self, item: &Item<'a>) -> Option<&'a str> {
        let text = item.value.as_str();
        if text.is_none() {
            let remedy = format!("write a text in quotes: {} = \"…\"", cut(item.key));
            self.wrong_at(item, format!("is {}", kind(item.value)), remedy);
        }
        text
    }

    /// A text that is short, printable and not empty.
    pub(super) fn word(&mut self, item: &Item<'_>) -> Option<String> {
        let text = self.text(item)?;
        if standpipe_core::Text::new(text).is_none() {
            let remedy = "write 1 to 128 characters without line breaks";
            self.wrong_at(item, "is empty, too long or not printable", remedy);
            return None;
        }
        Some(text.to_owned())
    }

    /// A file's path. A relative one counts from the directory of the settings file, never from the
    /// working directory.
    pub(super) fn path(&mut self, item: &Item<'_>) -> Option<PathBuf> {
        let text = self.text(item)?;
        if text.is_empty() || text.contains('\0') {
            self.wrong_at(item, "is not a path", "write the path of a file");
            return None;
        }
        if text.starts_with('~') {
            self.wrong_at(item, "`~` is not resolved here", "write the whole path");
            return None;
        }
        let beside = self.origin.and_then(Path::parent).map(|directory| directory.join(text));
        // The file itself may have been named from the working directory, which may change.
        let lasting = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
        Some(beside.map_or_else(|| PathBuf::from(text), lasting))
    }

    pub(super) fn flag(&mut self, item: &Item<'_>) -> Option<bool> {
        let flag = item.value.as_bool();
        if flag.is_none() {
            let what = format!("is {}", kind(item.value));
            self.wrong_at(item, what, "write true or false, without quotes");
        }
        flag
    }

    /// One of several words.
    pub(super) fn one_of<T: Copy>(&mut self, item: &Item<'_>, words: &[(&str, T)]) -> Option<T> {
        let text = self.text(item)?;
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, meaning)| *meaning);
        if found.is_none() {
            let known = words.iter().map(|(word, _)| *word);
            let remedy = match nearest(text, known.clone()) {
                Some(meant) => format!("did you mean \"{meant}\"?"),
                None => format!("write one of {}", known.collect::<Vec<_>>().join(", ")),
            };
            self.wrong_at(item, format!("{} is not known", quoted(text)), remedy);
        }
        found
    }

    /// What one of the functions of [`text`] makes of a text or a number.
    pub(super) fn take<T>(
        &mut self,
        item: &Item<'_>,
        read: impl FnOnce(&str) -> Result<T, TextError>,
    ) -> Option<T> {
        let Some(text) = figure(item.value) else {
            let what = format!("is {}", kind(item.value));
            self.wrong_at(item, what, "write a text in quotes, or a number");
            return None;
        };
        match read(&text) {
            Ok(value) => Some(value),
            Err(TextError { what, remedy }) => {
                self.wrong_at(item, what, remedy);
                None
            }
        }
    }

    /// A duration, which may be zero.
    pub(super) fn span(&mut self, item: &Item<'_>) -> Option<Span> {
        self.take(item, text::duration)
    }

    /// A duration longer than nothing.
    pub(super) fn positive_span(&mut self, item: &Item<'_>) -> Option<Span> {
        let span = self.span(item)?;
        if span == Span::ZERO {
            self.wrong_at(item, "is no time at all", "write for example 30s or 5min");
            return None;
        }
        Some(span)
    }

    /// The name of a pool that has to be in the file.
    pub(super) fn pool(&mut self, item: &Item<'_>) -> Option<PoolName> {
        let text = self.text(item)?;
        match text.parse::<PoolName>() {
            Ok(name) => {
                self.references.push((name.clone(), self.line(item.start)));
                Some(name)
            }
            Err(invalid) => {
                let what = format!("{} is not the name of a pool", quoted(text));
                self.wrong_at(item, what, invalid.to_string());
                None
            }
        }
    }

    /// A list of such names, none of them twice.
    pub(super) fn pools(&mut self, item: &Item<'_>) -> Vec<PoolName> {
        let mut pools = Vec::new();
        for element in self.list(item) {
            match self.pool(&element) {
                Some(pool) if pools.contains(&pool) => {
                    self.wrong_at(&element, format!("`{pool}` is named twice"), "name it once");
                }
                Some(pool) => pools.push(pool),
                None => {}
            }
        }
        pools
    }
}

/// A text or a number as text; a whole number of another base in decimal.
pub(super) fn figure<'a>(value: &'a DeValue<'a>) -> Option<Cow<'a, str>> {
    match value {
        DeValue::String(text) => Some(Cow::Borrowed(text)),
        DeValue::Float(float) => Some(Cow::Borrowed(unsigned(float.as_str()))),
        DeValue::Integer(integer) if integer.radix() == 10 => {
            Some(Cow::Borrowed(unsigned(integer.as_str())))
        }
        DeValue::Integer(integer) => {
            let whole = u128::from_str_radix(integer.as_str(), integer.radix()).ok();
            Some(whole.map_or(Cow::Borrowed(integer.as_str()), |n| Cow::Owned(n.to_string())))
        }
        _ => None,
    }
}

fn unsigned(number: &str) -> &str {
    number.strip_prefix('+').unwrap_or(number)
}

/// What a value is, in the words of people.
fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) | DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date or time",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// A key as it is shown in a message: plain when it is plain.
fn shown(key: &str) -> String {
    let plain = |b: u8| b.is_ascii_graphic() && b != b'`';
    if (1..=64).contains(&key.len()) && key.bytes().all(plain) {
        format!("`{key}`")
    } else {
        quoted(key)
    }
}

fn cut(path: &str) -> String {
    if path.len() <= 200 { path.to_owned() } else { "…".to_owned() }
}

/// A key appended to a path, quoted where a file would have to quote it.
pub(super) fn join(path: &str, key: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    let key = if !key.is_empty() && key.bytes().all(plain) {
        Cow::Borrowed(key)
    } else {
        Cow::Owned(serde_json::Value::from(key).to_string())
    };
    if path.is_empty() { key.into_owned() } else { format!("{path}.{key}") }
}
