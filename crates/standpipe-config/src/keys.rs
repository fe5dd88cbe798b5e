//! The table of keys: what each key of `standpipe.toml` accepts, and how it is read and written.
//!
//! The rows are in [`crate::settings`], beside the fields that they fill. A row has the name, the
//! form of the value, the field with its default, and the description. The parser, the suggestions
//! for unknown keys, the JSON Schema, `config show` and the page `docs/reference/config.md` are
//! derived from it. To add a key, add a row; to accept a new kind of value, add a [`Form`].

use crate::file::reader::{Item, Reader};
use crate::settings::{Settings, StoreSettings};

pub(crate) use self::form::{Form, Sectioned};
pub(crate) use self::shape::{Definition, Shape};
pub(crate) use self::value::Value;

pub(crate) mod calls;
pub(crate) mod form;
pub(crate) mod limit;
pub(crate) mod names;
pub(crate) mod policy;
pub(crate) mod pool;
pub(crate) mod shape;
pub(crate) mod shares;
pub(crate) mod store;
pub(crate) mod text;
mod value;

/// One key of a table whose settings are stored in a `T`.
pub(crate) struct Key<T: 'static> {
    /// The name, as it is written in the file.
    pub(crate) name: &'static str,
    /// The description: one sentence.
    pub(crate) about: &'static str,
    /// The values that the key accepts.
    pub(crate) shape: fn() -> Shape,
    /// Reads the value into the settings, or reports a problem and leaves the default.
    pub(crate) read: fn(&mut Reader<'_>, &Item<'_>, &mut T),
    /// Returns the value in force, or the stored one without a scope; `None` if it is not set.
    pub(crate) value: fn(&T, Option<&Scope<'_>>) -> Option<Value>,
}

/// Keys that are read and checked, but that no existing store uses. The schema, the reference and
/// `config show` omit them.
pub(crate) const UNUSED_KEYS: [&str; 2] = ["skew", "compact"];

/// What a value in force may depend on besides its table.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'a> {
    pub(crate) settings: &'a Settings,
    /// The name of the pool, agent, workflow or provider.
    pub(crate) name: &'a str,
}

impl Scope<'_> {
    /// Returns the store in force.
    pub(crate) fn store(&self) -> StoreSettings {
        self.settings.store.clone().unwrap_or_default()
    }
}

/// A table of the file: its keys, and what concerns several of them.
pub(crate) struct Section<T: 'static> {
    /// Where an unknown key was found, for messages: `in a pool`.
    pub(crate) place: &'static str,
    /// Returns the settings of an empty table.
    pub(crate) default: fn() -> T,
    /// The keys, in the order of the output.
    pub(crate) keys: &'static [Key<T>],
    /// Reorders entries before they are read, or removes and reports them.
    pub(crate) prepare: fn(&mut Reader<'_>, &Item<'_>, &mut Vec<Item<'_>>),
    /// Reports keys that contradict each other.
    pub(crate) check: fn(&mut Reader<'_>, &Item<'_>, &T),
    /// Reorders or removes values before they are shown.
    pub(crate) arrange: fn(&T, &Scope<'_>, &mut Vec<(String, Value)>),
}

/// A key without the type of its settings, for the schema and the reference page.
pub(crate) struct KeyInfo {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) shape: Shape,
    pub(crate) default: Option<Value>,
}

/// A section without its type.
pub(crate) trait Keys: Sync {
    /// Returns its keys.
    fn keys(&self) -> Vec<KeyInfo>;
}

impl<T> Keys for Section<T> {
    fn keys(&self) -> Vec<KeyInfo> {
        let default = (self.default)();
        let info = |key: &Key<T>| KeyInfo {
            name: key.name,
            about: key.about.trim(),
            shape: (key.shape)(),
            default: (key.value)(&default, None).filter(|value| !value.is_empty()),
        };
        self.keys.iter().filter(|key| !UNUSED_KEYS.contains(&key.name)).map(info).collect()
    }
}

impl<T> Section<T> {
    pub(crate) const fn new(
        place: &'static str,
        default: fn() -> T,
        keys: &'static [Key<T>],
    ) -> Self {
        Self {
            place,
            default,
            keys,
            prepare: |_, _, _| {},
            check: |_, _, _| {},
            arrange: |_, _, _| {},
        }
    }

    /// Reads a table of the file.
    pub(crate) fn read(&self, reader: &mut Reader<'_>, item: &Item<'_>) -> T {
        let mut settings = (self.default)();
        self.read_into(reader, item, &mut settings);
        settings
    }

    /// Reads a table of the file into settings that have defaults of their own.
    pub(crate) fn read_into(&self, reader: &mut Reader<'_>, item: &Item<'_>, settings: &mut T) {
        let mut entries = reader.entries(item);
        (self.prepare)(reader, item, &mut entries);
        self.read_entries(reader, &entries, settings);
        (self.check)(reader, item, settings);
    }

    /// Reads entries, and reports those that are not in the table of keys.
    pub(crate) fn read_entries(&self, reader: &mut Reader<'_>, entries: &[Item<'_>], into: &mut T) {
        for entry in entries {
            match self.keys.iter().find(|key| key.name == entry.key) {
                Some(key) => (key.read)(reader, entry, into),
                None => reader.unknown_key(entry, &self.names(), self.place),
            }
        }
    }

    /// Returns the values in force by key.
    pub(crate) fn values(&self, table: &T, scope: Option<&Scope<'_>>) -> Vec<(String, Value)> {
        let value = |key: &Key<T>| Some((key.name.to_owned(), (key.value)(table, scope)?));
        let mut values = self.keys.iter().filter_map(value).collect();
        if let Some(scope) = scope {
            (self.arrange)(table, scope, &mut values);
        }
        values
    }

    pub(crate) fn names(&self) -> Vec<&'static str> {
        self.keys.iter().map(|key| key.name).collect()
    }
}

/// A row of the table: the name, the form of the value, the field that stores it, the description.
macro_rules! key {
    ($name:literal: $form:ty => $table:ident.$field:ident, $about:expr) => {
        $crate::keys::Key::<$table> {
            name: $name,
            about: $about,
            shape: <$form as $crate::keys::Form>::shape,
            read: |reader, item, table| {
                if let Some(value) = <$form as $crate::keys::Form>::read(reader, item) {
                    table.$field = value;
                }
            },
            value: |table, scope| <$form as $crate::keys::Form>::value(&table.$field, scope),
        }
    };
}
pub(crate) use key;
