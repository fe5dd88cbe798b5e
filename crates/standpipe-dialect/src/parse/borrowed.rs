//! [`BorrowedValue`]: a JSON value that borrows its text.
//!
//! The proxy reads every event of every stream. Texts without escapes are not copied and members
//! are not hashed, so an event costs a fifth of what it costs as a [`Value`].

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Number, Value};

use crate::anomaly::AnomalyReason;
use crate::parse::number;

/// A JSON value that borrows its text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum BorrowedValue<'a> {
    Null,
    Bool(bool),
    Number(Number),
    Text(Cow<'a, str>),
    Array(Vec<Self>),
    /// In the order of the text. Of several members of one name the last counts.
    Object(Vec<(Cow<'a, str>, Self)>),
}

impl<'a> BorrowedValue<'a> {
    /// Parses a whole text.
    pub(crate) fn parse(text: &'a [u8]) -> Option<Self> {
        serde_json::from_slice(text).ok()
    }

    /// A member of an object.
    pub(crate) fn get(&self, name: &str) -> Option<&Self> {
        let Self::Object(members) = self else { return None };
        members.iter().rev().find(|(member, _)| member == name).map(|(_, value)| value)
    }

    /// The value at a path of members.
    pub(crate) fn at(&self, path: &[&str]) -> Option<&Self> {
        path.iter().try_fold(self, |value, name| value.get(name))
    }

    pub(crate) fn as_str(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) const fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    pub(crate) const fn is_object(&self) -> bool {
        matches!(self, Self::Object(_))
    }

    /// The elements of an array; empty for any other value.
    pub(crate) fn elements(&self) -> &[Self] {
        match self {
            Self::Array(list) => list,
            _ => &[],
        }
    }

    /// An amount of units, written as a number or as a string.
    pub(crate) fn amount(&self) -> Result<u64, AnomalyReason> {
        match self {
            Self::Number(amount) => number::amount(&amount.to_string()),
            Self::Text(text) => number::amount(text),
            _ => Err(AnomalyReason::Unreadable),
        }
    }

    /// The same value with text of its own, for what is read rarely.
    pub(crate) fn to_value(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Bool(*value),
            Self::Number(value) => Value::Number(value.clone()),
            Self::Text(text) => Value::String(text.to_string()),
            Self::Array(list) => list.iter().map(Self::to_value).collect(),
            Self::Object(members) => {
                members.iter().map(|(name, value)| (name.to_string(), value.to_value())).collect()
            }
        }
    }
}

impl<'de> Deserialize<'de> for BorrowedValue<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = BorrowedValue<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(BorrowedValue::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Self::Value, E> {
        Ok(BorrowedValue::Bool(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Self::Value, E> {
        Ok(BorrowedValue::Number(value.into()))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Self::Value, E> {
        Ok(BorrowedValue::Number(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Self::Value, E> {
        Ok(Number::from_f64(value).map_or(BorrowedValue::Null, BorrowedValue::Number))
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(BorrowedValue::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(BorrowedValue::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut list = Vec::new();
        while let Some(value) = seq.next_element()? {
            list.push(value);
        }
        Ok(BorrowedValue::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(MemberName(name)) = map.next_key()? {
            members.push((name, map.next_value()?));
        }
        Ok(BorrowedValue::Object(members))
    }
}

/// The name of a member, borrowed unless it has escapes. (`Cow` by itself is always copied.)
struct MemberName<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for MemberName<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(AnyName)
    }
}

struct AnyName;

impl<'de> Visitor<'de> for AnyName {
    type Value = MemberName<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_borrowed_str<E: Error>(self, name: &'de str) -> Result<Self::Value, E> {
        Ok(MemberName(Cow::Borrowed(name)))
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
        Ok(MemberName(Cow::Owned(name.to_owned())))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_last_member_of_a_name_counts_and_escapes_are_read() {
        let text = br#"{"a":1,"\u0061":"x\n","b":[null,true,-2,0.5,{"c":"17"}]}"#;
        let value = BorrowedValue::parse(text).unwrap();
        assert_eq!(value.get("a").and_then(BorrowedValue::as_str), Some("x\n"));
        let list = value.get("b").unwrap().elements();
        assert_eq!(list[4].at(&["c"]).unwrap().amount(), Ok(17));
        assert_eq!(list[2].amount(), Err(AnomalyReason::Negative));
        assert_eq!(list[3].amount(), Ok(0));
        assert_eq!(list[0].amount(), Err(AnomalyReason::Unreadable));
        assert_eq!(value.to_value(), serde_json::from_slice::<Value>(text).unwrap());
    }

    #[test]
    fn text_is_borrowed() {
        let value = BorrowedValue::parse(br#"{"name":"text"}"#).unwrap();
        let BorrowedValue::Object(members) = &value else { panic!("{value:?}") };
        assert!(matches!(
            members.as_slice(),
            [(Cow::Borrowed("name"), BorrowedValue::Text(Cow::Borrowed("text")))]
        ));
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            "\\PC{0,6}|[\"\\\\\n]{1,3}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            let name = "[a-c\"\\\\]{0,2}";
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((name, inner), 0..4).prop_map(Value::from_iter),
            ]
        })
    }

    proptest! {
        #[test]
        fn every_value_is_read_as_serde_json_reads_it(value in any_value(), cut in 0..4_usize) {
            let text = value.to_string();
            let text = &text.as_bytes()[..text.len().saturating_sub(cut)];
            let borrowed = BorrowedValue::parse(text).map(|value| value.to_value());
            prop_assert_eq!(borrowed, serde_json::from_slice::<Value>(text).ok());
        }
    }
}
