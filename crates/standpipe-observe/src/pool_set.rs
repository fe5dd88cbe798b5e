//! The pools of one call, as the ledgers keep them: one text with the pool that the caller named
//! and the pools that it named beside it.
//!
//! The core stores the text and does not interpret it. Pools that a pool lies within are not in the
//! text, because the configuration of the pool names them.

use standpipe_core::{Call, PoolRef};
use standpipe_store::PoolName;

/// What separates two names. No pool has an empty segment in its name.
const SEPARATOR: &str = "//";

/// The pools of one call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolSet {
    /// The pool that the caller named; none if the call draws on no pool beside this one.
    named: Option<String>,
    /// The pools that the caller named beside it.
    also: Vec<String>,
}

/// Returns the text for a call on `named` that draws on the pools `also`. Names that do not fit are
/// left out; the text is empty only if the first does not fit.
#[must_use]
pub fn reference(named: &PoolName, also: &[PoolName]) -> Option<PoolRef> {
    let names: Vec<&str> = std::iter::once(named).chain(also).map(PoolName::as_str).collect();
    (1..=names.len()).rev().find_map(|count| PoolRef::new(&names.get(..count)?.join(SEPARATOR)))
}

/// Returns the pool that the caller named, if the text is that of a call on several pools.
#[must_use]
pub fn named(reference: Option<&PoolRef>) -> Option<&str> {
    reference.and_then(|text| text.as_str().split(SEPARATOR).next())
}

/// Returns whether the text is that of a call whose caller named another pool than this one.
#[must_use]
pub fn is_part(reference: Option<&PoolRef>, pool: &PoolName) -> bool {
    named(reference).is_some_and(|named| named != pool.as_str())
}

impl PoolSet {
    /// The pools of a call, as its ticket and its lease on any of them have them.
    pub(crate) fn of(call: &Call) -> Self {
        let text = call.part_of.as_ref().map_or("", PoolRef::as_str);
        let mut names = text.split(SEPARATOR).filter(|name| !name.is_empty()).map(str::to_owned);
        Self { named: names.next(), also: names.collect() }
    }

    /// The pool that the caller named, if it is another one than `pool`.
    pub(crate) fn part_of(&self, pool: &PoolName) -> Option<String> {
        self.named.clone().filter(|named| named != pool.as_str())
    }

    /// The pools that the call draws on beside `pool`, as far as the text and the pool's own
    /// configuration name them.
    pub(crate) fn beside(&self, pool: &PoolName, within: Option<&PoolRef>) -> Vec<String> {
        let within = within.map(ToString::to_string);
        let all = self.named.iter().chain(&self.also).chain(&within);
        let mut names: Vec<String> = Vec::new();
        for name in all.filter(|name| *name != pool.as_str()) {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> PoolName {
        text.parse().unwrap()
    }

    fn set(text: Option<PoolRef>) -> PoolSet {
        let mut names = text.iter().flat_map(|text| text.as_str().split(SEPARATOR));
        PoolSet { named: names.next().map(str::to_owned), also: names.map(str::to_owned).collect() }
    }

    #[test]
    fn every_pool_of_the_set_sees_the_others() {
        let (x, y, z) = (name("mu/x"), name("mu/y"), name("mu/z"));
        let text = reference(&y, std::slice::from_ref(&x));
        assert_eq!(text.as_ref().map(PoolRef::as_str), Some("mu/y//mu/x"));
        assert_eq!(named(text.as_ref()), Some("mu/y"));
        let set = set(text);
        assert_eq!((set.part_of(&x).as_deref(), set.part_of(&y)), (Some("mu/y"), None));
        let within = PoolRef::new("mu/z");
        assert_eq!(set.beside(&x, None), ["mu/y"]);
        assert_eq!(set.beside(&y, within.as_ref()), ["mu/x", "mu/z"]);
        assert_eq!(set.beside(&z, None), ["mu/y", "mu/x"]);
        assert_eq!(PoolSet::default().beside(&x, within.as_ref()), ["mu/z"]);
        assert_eq!(named(None), None);
    }

    #[test]
    fn names_that_do_not_fit_are_left_out_and_the_named_pool_stays() {
        let long = |n: u8| name(&format!("{}/{n}{}", "p".repeat(60), "x".repeat(120)));
        let also: Vec<PoolName> = (1..8).map(long).collect();
        let text = reference(&long(0), &also).unwrap();
        assert_eq!(named(Some(&text)), Some(long(0).as_str()));
        assert_eq!(set(Some(text)).also, [long(1).as_str()]);
    }
}
