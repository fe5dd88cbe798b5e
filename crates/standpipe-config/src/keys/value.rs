//! A value of the settings as it is written in a file.

use std::fmt;

use crate::escape;
use crate::path::quote;

/// A value. `Display` writes it in TOML.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Text(String),
    Number(u64),
    Flag(bool),
    List(Vec<Value>),
    /// A table that is written in one line.
    Inline(Vec<(String, Value)>),
    /// A table whose entries are lines of their own, with dotted keys.
    Table(Vec<(String, Value)>),
}

impl Value {
    /// Returns whether this is a list or a table without entries.
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::List(values) => values.is_empty(),
            Self::Table(entries) => entries.is_empty(),
            _ => false,
        }
    }

    /// A list of strings.
    pub(crate) fn texts(values: impl IntoIterator<Item: ToString>) -> Self {
        Self::List(values.into_iter().map(|value| Self::Text(value.to_string())).collect())
    }
}

impl<T: Into<String>> From<T> for Value {
    fn from(text: T) -> Self {
        Self::Text(text.into())
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // Quoting escapes control characters, this the other invisible ones.
            Self::Text(text) => f.write_str(&escape::toml(&quote(text))),
            Self::Number(number) => number.fmt(f),
            Self::Flag(flag) => flag.fmt(f),
            Self::List(values) => {
                let values: Vec<String> = values.iter().map(Self::to_string).collect();
                write!(f, "[{}]", values.join(", "))
            }
            Self::Inline(entries) | Self::Table(entries) => {
                let entry = |(key, value): &(String, Self)| format!("{key} = {value}");
                let entries: Vec<String> = entries.iter().map(entry).collect();
                write!(f, "{{ {} }}", entries.join(", "))
            }
        }
    }
}
