//! Forms of values: how a value is read, how it is written, and what it may be.

use std::collections::BTreeMap;
use std::path::PathBuf;

use standpipe_core::Span;

use super::names::NamedTable;
use super::shape::DURATION;
use super::{Scope, Section, Shape, Value};
use crate::file::reader::{Item, Reader};
use crate::parse::word::Word;
use crate::path::join;
use crate::{format, parse};

/// How values of a key are read, written and described.
pub(crate) trait Form {
    /// What is stored in the settings.
    type Value;

    /// Returns the accepted values.
    fn shape() -> Shape;

    /// Reads a value, or reports a problem.
    fn read(reader: &mut Reader<'_>, item: &Item<'_>) -> Option<Self::Value>;

    /// Returns the value as it is written in a file; `None` if it is not set.
    fn value(value: &Self::Value, scope: Option<&Scope<'_>>) -> Option<Value>;
}

/// Declares a form: its name, the stored type, the shape, the reader and the writer.
macro_rules! form {
    (
        $(#[$doc:meta])* $name:ident $(<$of:ident: $bound:ident>)?: $stored:ty, $shape:expr,
        |$reader:ident, $item:ident| $read:expr,
        |$value:pat_param $(, $scope:ident)?| $write:expr
    ) => {
        $(#[$doc])*
        pub(crate) struct $name $(<$of>(std::marker::PhantomData<$of>))?;

        impl $(<$of: $bound>)? $crate::keys::Form for $name $(<$of>)? {
            type Value = $stored;

            fn shape() -> $crate::keys::Shape {
                $shape
            }

            fn read(
                $reader: &mut $crate::file::reader::Reader<'_>,
                $item: &$crate::file::reader::Item<'_>,
            ) -> Option<$stored> {
                $read
            }

            fn value(
                $value: &$stored,
                _scope: Option<&$crate::keys::Scope<'_>>,
            ) -> Option<$crate::keys::Value> {
                $(let $scope = _scope;)?
                Option::from($write)
            }
        }
    };
}
pub(crate) use form;

form!(
    /// `true` or `false`.
    Flag: bool, Shape::Flag, |reader, item| reader.flag(item), |flag| Value::Flag(*flag)
);

form!(
    /// A duration, which may be zero.
    Duration: Span, Shape::Named(&DURATION),
    |reader, item| reader.parse(item, parse::duration),
    |span| Value::from(format::span(*span))
);

form!(
    /// A duration longer than zero.
    PositiveDuration: Span, Shape::Named(&DURATION),
    |reader, item| reader.parse(item, parse::positive_duration),
    |span| Value::from(format::span(*span))
);

form!(
    /// The path of a file.
    FilePath: PathBuf, Shape::text("path"),
    |reader, item| reader.path(item),
    |path| Value::from(path.display().to_string())
);

form!(
    /// One word of an enum.
    OneOf<W: Word>: W, Shape::Words(W::WORDS.iter().map(|(word, _)| *word).collect()),
    |reader, item| reader.parse_text(item, W::parse),
    |value| Value::from(value.word())
);

form!(
    /// A value that may be left out.
    Optional<F: Form>: Option<F::Value>, F::shape(),
    |reader, item| F::read(reader, item).map(Some),
    |value, scope| F::value(value.as_ref()?, scope)
);

form!(
    /// A value, or `false` for none.
    OrFalse<F: Form>: Option<F::Value>, Shape::any_of([Shape::False, F::shape()]),
    |reader, item| match item.value.as_bool() {
        Some(false) => Some(None),
        Some(true) => {
            let read = F::read(reader, item).map(Some);
            reader.suggest_false(item);
            read
        }
        None => F::read(reader, item).map(Some),
    },
    |value, scope| match value {
        None => Some(Value::Flag(false)),
        Some(value) => F::value(value, scope),
    }
);

form!(
    /// A list that is left out if it is empty.
    List<F: Form>: Vec<F::Value>, Shape::list(F::shape(), 0),
    |reader, item| {
        let elements = reader.list(item);
        Some(elements.iter().filter_map(|element| F::read(reader, element)).collect())
    },
    |values, scope| {
        let values: Vec<Value> = values.iter().filter_map(|v| F::value(v, scope)).collect();
        (!values.is_empty()).then_some(Value::List(values))
    }
);

/// Settings that are a table with keys.
pub(crate) trait Sectioned: Sized + 'static {
    /// The keys.
    const SECTION: &'static Section<Self>;
}

form!(
    /// A table with fixed keys.
    Table<T: Sectioned>: T, Shape::Table(T::SECTION, &[]),
    |reader, item| Some(T::SECTION.read(reader, item)),
    |table, scope| Value::Table(T::SECTION.values(table, scope))
);

form!(
    /// Tables by name: `[pool."anthropic/sonnet"]`.
    Named<T: NamedTable>: BTreeMap<T::Name, T>,
    Shape::Map(vec![(T::PATTERN, Shape::Table(T::SECTION, T::REQUIRED))]),
    |reader, item| {
        let mut all = BTreeMap::new();
        if let Some(error) = T::unnamed(item) {
            reader.problem(item.line, error.what, error.remedy);
            return Some(all);
        }
        for entry in reader.entries(item) {
            // The table is read even if its name is invalid, to report all problems.
            let settings = T::SECTION.read(reader, &entry);
            match T::name(&entry) {
                Ok(name) => drop(all.insert(name, settings)),
                Err(error) => reader.problem(entry.line, error.what, error.remedy),
            }
        }
        Some(all)
    },
    |all, scope| scope.map(|scope| {
        let table = |(name, table): (&T::Name, &T)| {
            let name = &name.to_string();
            let values = T::SECTION.values(table, Some(&Scope { name, ..*scope }));
            (join("", name), Value::Table(values))
        };
        Value::Table(all.iter().map(table).collect())
    })
);
