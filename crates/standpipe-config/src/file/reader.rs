//! Walks the parsed file: returns values of the requested type, records the line of every key, and
//! collects problems instead of stopping at the first.
//!
//! The reader does not know what a key means; that is in [`crate::keys`]. No message repeats a
//! string that could be a secret: only [`Reader::parse`] may quote a value, so it reads rates,
//! durations and the like, never URLs or paths.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use standpipe_dialect::Dialect;
use standpipe_store::PoolName;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::nearest::nearest;
use crate::parse::{TextError, quoted};
use crate::path::join;
use crate::problem::{ConfigError, Problem};

/// The state of reading one file.
pub(crate) struct Reader<'t> {
    origin: Option<&'t Path>,
    /// The offset of each line.
    starts: Vec<usize>,
    problems: Vec<Problem>,
    /// The line of every key that was read, by its dotted path.
    pub(crate) lines: BTreeMap<String, usize>,
    /// References to pools with their lines. They can be checked only when all pools are known.
    pub(crate) references: Vec<(PoolName, usize)>,
    /// The dialect of the pool that is being read. It decides the kind of limits that state none.
    pub(crate) dialect: Dialect,
}

/// A value of the file with its key and its position.
pub(crate) struct Item<'a> {
    /// The key.
    pub(crate) key: &'a str,
    /// The key, escaped and quoted for messages.
    pub(crate) name: String,
    /// The dotted path of the key.
    pub(crate) path: String,
    /// The line of the key.
    pub(crate) line: usize,
    /// The offset of the value.
    start: usize,
    pub(crate) value: &'a DeValue<'a>,
}

impl<'t> Reader<'t> {
    pub(crate) fn new(text: &str, origin: Option<&'t Path>) -> Self {
        let breaks = text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(at, _)| at + 1);
        Self {
            origin,
            starts: std::iter::once(0).chain(breaks).collect(),
            problems: Vec::new(),
            lines: BTreeMap::new(),
            references: Vec::new(),
            dialect: Dialect::Generic,
        }
    }

    /// Returns the lines of the keys, or all problems in the order of the file.
    pub(crate) fn finish(mut self) -> Result<BTreeMap<String, usize>, ConfigError> {
        if self.problems.is_empty() {
            return Ok(self.lines);
        }
        self.problems.sort_by_key(|problem| problem.line);
        Err(ConfigError { problems: self.problems })
    }

    /// Returns whether a problem on this line was reported already.
    pub(crate) fn has_problem_on(&self, line: usize) -> bool {
        self.problems.iter().any(|problem| problem.line == Some(line))
    }

    pub(crate) const fn has_no_problems(&self) -> bool {
        self.problems.is_empty()
    }

    /// Returns the line of an offset, counted from 1.
    pub(crate) fn line(&self, place: usize) -> usize {
        self.starts.partition_point(|start| *start <= place).max(1)
    }

    /// Reports a problem on a line.
    pub(crate) fn problem(
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

    /// Reports a problem with the value of `item`. `what` is a sentence, or a predicate such as `is
    /// a number` whose subject is the key.
    pub(crate) fn problem_at(
        &mut self,
        item: &Item<'_>,
        what: impl AsRef<str>,
        remedy: impl Into<String>,
    ) {
        let what = what.as_ref();
        let is_predicate = ["is ", "has ", "ends "].iter().any(|verb| what.starts_with(verb));
        let colon = if is_predicate { "" } else { ":" };
        let what = format!("{}{colon} {what}", item.name);
        self.problem(self.line(item.start), what, remedy);
    }

    /// Adds to the remedy of the last problem that `false` is accepted too.
    pub(crate) fn suggest_false(&mut self, item: &Item<'_>) {
        if let Some(last) = self.problems.last_mut() {
            let rest = last.remedy.strip_prefix("write ").unwrap_or(&last.remedy);
            last.remedy = format!("write {} = false, or {rest}", cut(item.key));
        }
    }

    /// Reports an unknown key, and suggests the nearest known one.
    pub(crate) fn unknown_key(&mut self, item: &Item<'_>, known: &[&str], place: &str) {
        let near = || nearest(item.key, known.iter().copied());
        let remedy = misplaced(item, known).or_else(|| near().map(did_you_mean));
        let remedy = remedy.unwrap_or_else(|| format!("known here: {}", known.join(", ")));
        self.problem(item.line, format!("unknown key {} {place}", item.name), remedy);
    }

    /// Returns the entries of a table in the order of the file. Reports anything but a table.
    pub(crate) fn entries<'a>(&mut self, item: &Item<'a>) -> Vec<Item<'a>> {
        match item.value {
            DeValue::Table(table) => self.entries_of(table, &item.path),
            _ => {
                let remedy = format!("write a table: [{}]", cut(&item.path));
                self.problem_at(item, format!("is {}", kind(item.value)), remedy);
                Vec::new()
            }
        }
    }

    /// Returns the entries of the table at `path`.
    pub(crate) fn entries_of<'a>(&mut self, table: &'a DeTable<'a>, path: &str) -> Vec<Item<'a>> {
        let mut entries: Vec<(&Spanned<_>, &Spanned<DeValue<'a>>)> = table.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        let items = entries.into_iter().map(|(key, value)| {
            let key_text: &str = key.get_ref();
            let line = self.line(key.span().start);
            let path = join(path, key_text);
            let is_table = value.get_ref().is_table();
            // A table may be written in several places, so its span is less precise than its key.
            let start = if is_table { key.span().start } else { value.span().start };
            self.lines.entry(path.clone()).or_insert(line);
            let name = shown(key_text);
            Item { key: key_text, name, path, line, start, value: value.get_ref() }
        });
        items.collect()
    }

    /// Returns the elements of a list. Reports anything but a list.
    pub(crate) fn list<'a>(&mut self, item: &Item<'a>) -> Vec<Item<'a>> {
        let DeValue::Array(array) = item.value else {
            let remedy = format!("write a list: {} = [\"…\"]", cut(item.key));
            self.problem_at(item, format!("is {}", kind(item.value)), remedy);
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

    /// Reads a string.
    pub(crate) fn text<'a>(&mut self, item: &Item<'a>) -> Option<&'a str> {
        let text = item.value.as_str();
        if text.is_none() {
            let remedy = format!("write a string in quotes: {} = \"…\"", cut(item.key));
            self.problem_at(item, format!("is {}", kind(item.value)), remedy);
        }
        text
    }

    /// Reads the path of a file. A relative path is resolved against the directory of the
    /// configuration file, never against the working directory.
    pub(crate) fn path(&mut self, item: &Item<'_>) -> Option<PathBuf> {
        let text = self.text(item)?;
        if text.is_empty() || text.contains('\0') {
            self.problem_at(item, "is not a path", "write the path of a file");
            return None;
        }
        if text.starts_with('~') {
            self.problem_at(item, "`~` is not expanded", "write the whole path");
            return None;
        }
        let beside = self.origin.and_then(Path::parent).map(|directory| directory.join(text));
        // The path of the configuration file may be relative to the working directory, which may
        // change.
        let absolute = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
        Some(beside.map_or_else(|| PathBuf::from(text), absolute))
    }

    /// Reads a boolean.
    pub(crate) fn flag(&mut self, item: &Item<'_>) -> Option<bool> {
        let flag = item.value.as_bool();
        if flag.is_none() {
            // A short word cannot be a secret.
            let is_word = |text: &str| {
                (1..=12).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric())
            };
            let text = item.value.as_str().filter(|text| is_word(text));
            let shown = match text {
                Some(text) => format!("is the string {}", quoted(text)),
                None => format!("is {}", kind(item.value)),
            };
            self.problem_at(item, shown, "write true or false, without quotes");
        }
        flag
    }

    /// Parses a string or a number with one of the functions of [`crate::parse`].
    pub(crate) fn parse<T>(
        &mut self,
        item: &Item<'_>,
        parse: impl FnOnce(&str) -> Result<T, TextError>,
    ) -> Option<T> {
        let Some(text) = scalar(item.value) else {
            let what = format!("is {}", kind(item.value));
            // The error of a text that nothing accepts has an example.
            let remedy = parse("?").err().map(|error| error.remedy).unwrap_or_default();
            let example = remedy.split_once("for example ").map(|(_, example)| example);
            let example = example.and_then(|example| example.split([' ', ',']).next());
            let remedy = match example.map(|example| example.trim_matches('"')) {
                Some(example) => format!("write for example {} = \"{example}\"", cut(item.key)),
                None => "write a string in quotes, or a number".to_owned(),
            };
            self.problem_at(item, what, remedy);
            return None;
        };
        self.accept(item, parse(&text))
    }

    /// Parses a string. The errors of `parse` must not repeat the string if it can be a secret.
    pub(crate) fn parse_text<T>(
        &mut self,
        item: &Item<'_>,
        parse: impl FnOnce(&str) -> Result<T, TextError>,
    ) -> Option<T> {
        let text = self.text(item)?;
        self.accept(item, parse(text))
    }

    fn accept<T>(&mut self, item: &Item<'_>, parsed: Result<T, TextError>) -> Option<T> {
        let report = |TextError { what, remedy }| self.problem_at(item, what, remedy);
        parsed.map_err(report).ok()
    }

    /// Reads the name of a pool, which must be described in the file.
    pub(crate) fn pool(&mut self, item: &Item<'_>) -> Option<PoolName> {
        let name = self.parse_text(item, |text| {
            text.parse::<PoolName>().map_err(|invalid| {
                let what = format!("{} is not the name of a pool", quoted(text));
                TextError::new(what, invalid.to_string())
            })
        })?;
        self.references.push((name.clone(), self.line(item.start)));
        Some(name)
    }

    /// Reads a list of pools without duplicates.
    pub(crate) fn pools(&mut self, item: &Item<'_>) -> Vec<PoolName> {
        let mut pools = Vec::new();
        for element in self.list(item) {
            match self.pool(&element) {
                Some(pool) if pools.contains(&pool) => {
                    self.problem_at(&element, format!("`{pool}` is named twice"), "name it once");
                }
                Some(pool) => pools.push(pool),
                None => {}
            }
        }
        pools
    }
}

fn did_you_mean(key: &str) -> String {
    format!("did you mean `{key}`?")
}

/// Returns the remedy for a key of another place, and for one that other servers have. `known` are
/// the keys of this place.
fn misplaced(item: &Item<'_>, known: &[&str]) -> Option<String> {
    const TOP: [&str; 4] = ["version", "listen", "open_pools", "store"];
    const AT_THE_TOP: &str = "at the top of the file, before every [table]";
    let is_top = known.contains(&TOP[0]);
    let is_server = known.contains(&"token_file");
    match item.key {
        key if TOP.contains(&key) => Some(format!("`{key}` belongs {AT_THE_TOP}")),
        "token" if is_server => Some(did_you_mean("token_file")),
        "port" | "host" | "address" | "bind" if is_top || is_server => {
            let port = scalar(item.value).and_then(|text| text.parse::<u16>().ok());
            let place = if is_top { String::new() } else { format!(" {AT_THE_TOP}") };
            Some(format!("write listen = \"127.0.0.1:{}\"{place}", port.unwrap_or(8377)))
        }
        _ => None,
    }
}

/// Returns a string or a number as text; integers of another base are converted to decimal.
pub(crate) fn scalar<'a>(value: &'a DeValue<'a>) -> Option<Cow<'a, str>> {
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

/// Returns the type of a value.
fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) | DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date or time",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// Formats a value that cannot be a secret for a message: a number, a string in quotes, or a type.
pub(crate) fn shown_value(item: &Item<'_>) -> String {
    match (item.value, scalar(item.value)) {
        (DeValue::String(text), _) => quoted(text),
        (_, Some(number)) => number.into_owned(),
        (value, None) => kind(value).to_owned(),
    }
}

/// Formats a key for a message: in backquotes if it is short and printable, else escaped.
fn shown(key: &str) -> String {
    let is_plain = |b: u8| b.is_ascii_graphic() && b != b'`';
    if (1..=64).contains(&key.len()) && key.bytes().all(is_plain) {
        format!("`{key}`")
    } else {
        quoted(key)
    }
}

fn cut(path: &str) -> String {
    if path.len() <= 200 { path.to_owned() } else { "…".to_owned() }
}
