//! What values a key accepts, as data. The JSON Schema and the reference page are derived from it.

use super::Keys;

/// The values that a key accepts.
#[cfg_attr(not(feature = "describe"), expect(dead_code, reason = "only the schema uses it all"))]
pub(crate) enum Shape {
    /// `true` or `false`.
    Flag,
    /// `false`, which switches something off.
    False,
    /// One of these words.
    Words(Vec<&'static str>),
    /// A number, with the type and the bounds of JSON Schema.
    Number { kind: &'static str, bounds: Vec<(&'static str, u64)> },
    /// A string: what it is, and the regular expression that it matches.
    Text { what: &'static str, pattern: &'static str },
    /// A list of `least` to `most` elements.
    List { of: Box<Shape>, least: usize, most: Option<usize>, unique: bool },
    /// A table with fixed keys, and those that are required.
    Table(&'static dyn Keys, &'static [&'static str]),
    /// A table with keys that match a regular expression, or are a word.
    Map(Vec<(&'static str, Shape)>),
    /// Any of several shapes, none of which is an `AnyOf`.
    AnyOf(Vec<Shape>),
    /// A shape that has a name, because many keys use it.
    Named(&'static Definition),
}

/// A shape with a name.
pub(crate) struct Definition {
    pub(crate) name: &'static str,
    /// Examples or a description.
    #[cfg_attr(not(feature = "describe"), expect(dead_code, reason = "only in the schema"))]
    pub(crate) about: &'static str,
    pub(crate) shape: fn() -> Shape,
}

impl Shape {
    /// Any of several shapes, which may be alternatives themselves.
    pub(crate) fn any_of(shapes: impl IntoIterator<Item = Self>) -> Self {
        let flat = shapes.into_iter().flat_map(|shape| match shape {
            Self::AnyOf(inner) => inner,
            other => vec![other],
        });
        Self::AnyOf(flat.collect())
    }

    /// A string that is not empty.
    pub(crate) const fn text(what: &'static str) -> Self {
        Self::Text { what, pattern: "." }
    }

    /// A list of at least `least` elements.
    pub(crate) fn list(of: Self, least: usize) -> Self {
        Self::List { of: Box::new(of), least, most: None, unique: false }
    }

    /// A list without duplicates.
    pub(crate) fn set(of: Self, least: usize) -> Self {
        Self::List { of: Box::new(of), least, most: None, unique: true }
    }

    /// A whole number from `least` to `most`.
    pub(crate) fn integer(least: u64, most: Option<u64>) -> Self {
        let most = most.map(|most| ("maximum", most));
        let bounds = [("minimum", least)].into_iter().chain(most).collect();
        Self::Number { kind: "integer", bounds }
    }

    /// A number with the bounds of JSON Schema.
    pub(crate) fn number<const N: usize>(bounds: [(&'static str, u64); N]) -> Self {
        Self::Number { kind: "number", bounds: bounds.to_vec() }
    }
}

pub(crate) const POOL_NAME: &str = r"^[A-Za-z0-9._:@-]{1,64}(/[A-Za-z0-9._:@-]{1,128}){1,3}$";
pub(crate) const AGENT_NAME: &str = "^[A-Za-z0-9._@-]{1,64}$";
pub(crate) const PROVIDER_NAME: &str = "^[A-Za-z0-9._:@-]{1,64}$";
pub(crate) const UNIT_NAME: &str = "^[a-z][a-z0-9_]{0,31}$";

pub(crate) static RATE: Definition = Definition {
    name: "rate",
    about: "An amount per time: 60/min, 30/2s, 2M/min.",
    shape: || Shape::Text {
        what: "rate",
        pattern: concat!(
            r"^\s*[0-9][0-9_]*(\.[0-9][0-9_]*)?\s*[kMG]?\s*/",
            r"\s*([0-9][0-9_]*(\.[0-9][0-9_]*)?)?\s*(ms|s|min|h|d)\s*$"
        ),
    },
};

pub(crate) static DURATION: Definition = Definition {
    name: "duration",
    about: "500ms, 30s, 5min, 2h, 1d, or a number of seconds.",
    shape: || {
        let pattern = r"^\s*[0-9][0-9_]*(\.[0-9][0-9_]*)?\s*(ms|s|min|h|d)?\s*$";
        Shape::any_of([Shape::Text { what: "duration", pattern }, Shape::number([("minimum", 0)])])
    },
};

pub(crate) static PERCENT: Definition = Definition {
    name: "percentage",
    about: "A share: 25%.",
    shape: || Shape::Text { what: "percentage", pattern: r"^\s*[0-9]{1,3}(\.[0-9]+)?\s*%\s*$" },
};

pub(crate) static AMOUNT: Definition = Definition {
    name: "number",
    about: "1200, 400k, 2M.",
    shape: || {
        let pattern = r"^\s*[0-9][0-9_]*(\.[0-9][0-9_]*)?\s*[kMG]?\s*$";
        Shape::any_of([Shape::Text { what: "number", pattern }, Shape::number([("minimum", 0)])])
    },
};
