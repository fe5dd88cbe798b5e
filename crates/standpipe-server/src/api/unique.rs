//! JSON objects with arbitrary keys, of which each may occur once.
//!
//! serde's maps keep the last of several equal keys; here a duplicate is an error that names the
//! key, because the caller may have meant either value.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// An object by key.
#[derive(Debug)]
pub(crate) struct UniqueMap<V>(pub(crate) BTreeMap<String, V>);

impl<'de, V: Deserialize<'de>> Deserialize<'de> for UniqueMap<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(UniqueVisitor(PhantomData))
    }
}

struct UniqueVisitor<V>(PhantomData<V>);

impl<'de, V: Deserialize<'de>> Visitor<'de> for UniqueVisitor<V> {
    type Value = UniqueMap<V>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        entries(map).map(UniqueMap)
    }
}

/// Reads the rest of an object.
pub(super) fn entries<'de, A: MapAccess<'de>, V: Deserialize<'de>>(
    mut map: A,
) -> Result<BTreeMap<String, V>, A::Error> {
    let mut all = BTreeMap::new();
    while let Some(key) = map.next_key::<String>()? {
        if all.contains_key(&key) {
            let shown: String = key.chars().take(40).flat_map(char::escape_debug).collect();
            return Err(A::Error::custom(format_args!("the key `{shown}` is given twice")));
        }
        all.insert(key, map.next_value()?);
    }
    Ok(all)
}
