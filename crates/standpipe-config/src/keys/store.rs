//! Forms of the store: a URL, or the table `[store]`.

use super::form::{Table, form};
use super::{Definition, Scope, Shape, UNUSED_KEYS, Value};
use crate::parse::{self, TextError};
use crate::path::join;
use crate::settings::{StoreSettings, StoreUrl};

static STORE_URL: Definition = Definition {
    name: "store_url",
    about: "file, file:/path, memory, redis://… or rediss://…",
    shape: || Shape::Text {
        what: "URL",
        pattern: concat!(
            r"^\s*(file(:.+)?|memory|",
            r"rediss?(\+cluster|\+sentinel|\+unix)?://.+)\s*$"
        ),
    },
};

form!(
    /// The URL of a store.
    Url: StoreUrl, Shape::Named(&STORE_URL),
    |reader, item| reader.parse_text(item, str::parse),
    |url| Value::from(url.to_string())
);

form!(
    /// A prefix of keys.
    Prefix: String, Shape::text("text"),
    |reader, item| reader.parse_text(item, |text| {
        let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"._:/-".contains(&b);
        if !(1..=64).contains(&text.len()) || !text.bytes().all(is_plain) {
            let what = "is empty, too long or has unsupported characters";
            return Err(TextError::new(what, "use 1 to 64 of A-Z a-z 0-9 . _ : / -"));
        }
        Ok(text.to_owned())
    }),
    |prefix| Value::from(prefix.as_str())
);

form!(
    /// A number of replicas.
    Replicas: u32, Shape::integer(0, Some(64)),
    |reader, item| reader.parse(item, |text| {
        let few = u32::try_from(parse::amount(text)?).ok().filter(|few| *few <= 64);
        few.ok_or_else(|| {
            TextError::new("is too many", "write how many replicas to wait for, at most 64")
        })
    }),
    |replicas| Value::Number(u64::from(*replicas))
);

form!(
    /// The store of the file.
    Store: Option<StoreSettings>, Shape::any_of([Url::shape(), Table::<StoreSettings>::shape()]),
    |reader, item| {
        if item.value.is_table() {
            return Table::read(reader, item).map(Some);
        }
        let url = Url::read(reader, item)?;
        Some(Some(StoreSettings { url, ..StoreSettings::default() }))
    },
    |_, scope| scope.and_then(|scope| Table::value(&scope.store(), Some(scope)))
);

/// Hides keys that the store does not use, unless the file states them.
pub(crate) fn arrange(store: &StoreSettings, scope: &Scope<'_>, values: &mut Vec<(String, Value)>) {
    values.retain(|(key, _)| {
        let is_unused = UNUSED_KEYS.contains(&key.as_str());
        let is_used =
            store.url.is_network() && !is_unused || ["url", "slack"].contains(&key.as_str());
        is_used || scope.settings.lines.contains_key(&join("store", key))
    });
}
