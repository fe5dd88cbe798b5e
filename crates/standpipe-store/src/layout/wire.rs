//! The encoding of plain values (integers, options, lists), and macros that derive the layout of a
//! struct or an enum from the list of its fields.
//!
//! Invariant: `get` accepts exactly what `put` writes. Every value takes at least one byte, so a
//! list cannot claim more elements than there are bytes left. This module does not know the
//! ledger's types.

use std::collections::{BTreeMap, BTreeSet};

use super::Malformed;

/// A value with a layout.
pub(crate) trait Wire: Sized {
    /// Appends the encoded value to `out`.
    fn put(&self, out: &mut Vec<u8>);

    /// Decodes a value from the start of the remaining input.
    fn get(input: &mut Reader<'_>) -> Result<Self, Malformed>;
}

/// A cursor over the input.
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Fails if any input remains.
    pub(crate) fn finish(&self) -> Result<(), Malformed> {
        if self.remaining() == 0 { Ok(()) } else { self.malformed("trailing bytes") }
    }

    pub(crate) const fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    pub(crate) fn malformed<T>(&self, what: &'static str) -> Result<T, Malformed> {
        Err(Malformed { at: self.at, what })
    }

    pub(crate) fn byte(&mut self) -> Result<u8, Malformed> {
        let Some(byte) = self.bytes.get(self.at) else {
            return self.malformed("too few bytes");
        };
        self.at += 1;
        Ok(*byte)
    }

    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        if count > self.remaining() {
            return self.malformed("too few bytes");
        }
        let taken = &self.bytes[self.at..self.at + count];
        self.at += count;
        Ok(taken)
    }

    /// Decodes the number of elements of a list, bounded by the remaining bytes.
    pub(crate) fn count(&mut self) -> Result<usize, Malformed> {
        let count = usize::try_from(u64::get(self)?).unwrap_or(usize::MAX);
        if count > self.remaining() {
            self.malformed("a list longer than its bytes")
        } else {
            Ok(count)
        }
    }
}

impl Wire for u64 {
    fn put(&self, out: &mut Vec<u8>) {
        let mut value = *self;
        while value >= 0x80 {
            out.push(value as u8 | 0x80);
            value >>= 7;
        }
        out.push(value as u8);
    }

    fn get(input: &mut Reader<'_>) -> Result<Self, Malformed> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = input.byte()?;
            let part = u64::from(byte & 0x7f);
            if shift == 63 && part > 1 {
                break;
            }
            value |= part << shift;
            if byte & 0x80 == 0 {
                let padded = byte == 0 && shift > 0;
                return if padded { input.malformed("an integer with padding") } else { Ok(value) };
            }
        }
        input.malformed("an integer that is too large")
    }
}

/// Narrower integers are written as [`u64`] and rejected when they do not fit.
macro_rules! narrow {
    ($($type:ty),*) => {$(
        impl Wire for $type {
            fn put(&self, out: &mut Vec<u8>) {
                u64::from(*self).put(out);
            }

            fn get(input: &mut Reader<'_>) -> Result<Self, Malformed> {
                match Self::try_from(u64::get(input)?) {
                    Ok(value) => Ok(value),
                    Err(_) => input.malformed("an integer that is too large"),
                }
            }
        }
    )*};
}

narrow!(u16, u32);

impl Wire for u8 {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(*self);
    }

    fn get(input: &mut Reader<'_>) -> Result<Self, Malformed> {
        input.byte()
    }
}

impl Wire for u128 {
    fn put(&self, out: &mut Vec<u8>) {
        ((*self >> 64) as u64).put(out);
        (*self as u64).put(out);
    }

    fn get(input: &mut Reader<'_>) -> Result<Self, Malformed> {
        let high = u64::get(input)?;
        let low = u64::get(input)?;
        Ok(Self::from(high) << 64 | Self::from(low))
    }
}

impl Wire for bool {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    fn get(input: &mut Reader<'_>) -> Result<Self, Malformed> {
        match input.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => input.malformed("a boolean that is neither 0 nor 1"),
        }
    }
}

impl<T: Wire> Wire for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.is_some().put(out);
        if let Some(value) = self {
            value.put(out);
        }
    }

    fn get(input: &mut Reader<'_>) -> Result<Self, Malformed> {
        if bool::get(input)? { T::get(input).map(Some) } else { Ok(None) }
    }
}

impl<T: Wire> Wire for Box<T> {
    fn put(&self, out: &mut Vec<u8>) {
        (**self).put(out);
    }

    fn get(input: &mut Reader<'_>) -> Result<Self, Malformed> {
        T::get(input).map(Self::new)
    }
}

impl<A: Wire, B: Wire> Wire for (A, B) {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
        self.1.put(out);
    }

    fn get(input: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok((A::get(input)?, B::get(input)?))
    }
}

impl<T: Wire> Wire for [T; 3] {
    fn put(&self, out: &mut Vec<u8>) {
        self.iter().for_each(|each| each.put(out));
    }

    fn get(input: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok([T::get(input)?, T::get(input)?, T::get(input)?])
    }
}

impl<T: Wire + Ord> Wire for BTreeSet<T> {
    fn put(&self, out: &mut Vec<u8>) {
        (self.len() as u64).put(out);
        self.iter().for_each(|each| each.put(out));
    }

    fn get(input: &mut Reader<'_>) -> Result<Self, Malformed> {
        let count = input.count()?;
        let mut set = Self::new();
        for _ in 0..count {
            let each = T::get(input)?;
            if set.last().is_some_and(|last| *last >= each) {
                return input.malformed("elements out of order");
            }
            set.insert(each);
        }
        Ok(set)
    }
}

impl<T: Wire> Wire for Vec<T> {
    fn put(&self, out: &mut Vec<u8>) {
        (self.len() as u64).put(out);
        for element in self {
            element.put(out);
        }
    }

    fn get(input: &mut Reader<'_>) -> Result<Self, Malformed> {
        let count = input.count()?;
        // The list grows as elements are read, so memory stays in proportion to the input.
        let mut list = Self::new();
        for _ in 0..count {
            list.push(T::get(input)?);
        }
        Ok(list)
    }
}

impl<K: Wire + Ord, V: Wire> Wire for BTreeMap<K, V> {
    fn put(&self, out: &mut Vec<u8>) {
        (self.len() as u64).put(out);
        for (key, value) in self {
            key.put(out);
            value.put(out);
        }
    }

    fn get(input: &mut Reader<'_>) -> Result<Self, Malformed> {
        let count = input.count()?;
        let mut map = Self::new();
        for _ in 0..count {
            let key = K::get(input)?;
            if map.last_key_value().is_some_and(|(last, _)| *last >= key) {
                return input.malformed("entries out of order");
            }
            map.insert(key, V::get(input)?);
        }
        Ok(map)
    }
}

/// Writes a text as its length and its bytes.
pub(crate) fn put_str(text: &str, out: &mut Vec<u8>) {
    (text.len() as u64).put(out);
    out.extend_from_slice(text.as_bytes());
}

/// Decodes a text and converts it with `make`, which rejects invalid ones.
pub(crate) fn get_str<T>(
    input: &mut Reader<'_>,
    make: impl FnOnce(&str) -> Option<T>,
) -> Result<T, Malformed> {
    let length = input.count()?;
    let bytes = input.take(length)?;
    match std::str::from_utf8(bytes).ok().and_then(make) {
        Some(value) => Ok(value),
        None => input.malformed("an invalid name"),
    }
}

/// The layout of a struct: all its fields, in the order given here.
macro_rules! wire_struct {
    ($($type:ident { $($field:ident),* $(,)? })*) => {$(
        impl Wire for $type {
            fn put(&self, out: &mut Vec<u8>) {
                let Self { $($field),* } = self;
                $($field.put(out);)*
            }

            fn get(input: &mut Reader<'_>) -> Result<Self, Malformed> {
                Ok(Self { $($field: Wire::get(input)?),* })
            }
        }
    )*};
}

/// The layout of a struct around one value.
macro_rules! wire_newtype {
    ($($type:ident),*) => {$(
        impl Wire for $type {
            fn put(&self, out: &mut Vec<u8>) {
                self.0.put(out);
            }

            fn get(input: &mut Reader<'_>) -> Result<Self, Malformed> {
                Wire::get(input).map(Self)
            }
        }
    )*};
}

/// The layout of an enum: one byte for the variant, then its fields in the order given here.
macro_rules! wire_enum {
    ($($type:ident { $(
        $tag:literal => $variant:ident
        $(( $($part:ident),* ))?
        $({ $($field:ident),* })?
    ),* $(,)? })*) => {$(
        impl Wire for $type {
            fn put(&self, out: &mut Vec<u8>) {
                match self {$(
                    Self::$variant $(( $($part),* ))? $({ $($field),* })? => {
                        out.push($tag);
                        $($($part.put(out);)*)?
                        $($($field.put(out);)*)?
                    }
                )*}
            }

            fn get(input: &mut Reader<'_>) -> Result<Self, Malformed> {
                match input.byte()? {
                    $($tag => {
                        $($(let $part = Wire::get(input)?;)*)?
                        $($(let $field = Wire::get(input)?;)*)?
                        Ok(Self::$variant $(( $($part),* ))? $({ $($field),* })?)
                    })*
                    _ => input.malformed(concat!("an unknown tag of ", stringify!($type))),
                }
            }
        }
    )*};
}

pub(crate) use {wire_enum, wire_newtype, wire_struct};
