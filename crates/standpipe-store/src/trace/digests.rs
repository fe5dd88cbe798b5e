//! The digests of all traces, stored in a file that makes a change of semantics visible.
//!
//! A digest changes when the same events give another outcome or another layout. The semantics
//! number must then grow, because old and new processes would disagree about a pool. This module
//! compares digests; its callers read and write the file.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// The digests of all traces, and the semantics of the core that computed them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Digests {
    /// See [`standpipe_core::SEMANTICS`].
    pub semantics: u32,
    /// The digests by file name.
    pub traces: BTreeMap<String, String>,
}

impl Digests {
    /// Parses digests from JSON.
    ///
    /// # Errors
    /// When the text is not a file of digests; the message says why.
    pub fn read(text: &str) -> Result<Self, String> {
        let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let semantics = value.get("semantics").and_then(Value::as_u64);
        let semantics = semantics.and_then(|semantics| u32::try_from(semantics).ok());
        let traces = value.get("traces").and_then(Value::as_object);
        let (Some(semantics), Some(traces)) = (semantics, traces) else {
            return Err("`semantics` or `traces` is missing".to_owned());
        };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let traces = traces.iter().map(|(name, digest)| (name.clone(), text(digest))).collect();
        Ok(Self { semantics, traces })
    }

    /// Formats the digests as JSON, one trace per line.
    #[must_use]
    pub fn show(&self) -> String {
        let traces: serde_json::Map<_, _> = self
            .traces
            .iter()
            .map(|(name, digest)| (name.clone(), digest.clone().into()))
            .collect();
        let value = json!({ "semantics": self.semantics, "traces": traces });
        let mut text = serde_json::to_string_pretty(&value).unwrap_or_default();
        text.push('\n');
        text
    }

    /// Describes how `now` differs from these digests, and what to do about each difference.
    #[must_use]
    pub fn differences(&self, now: &Self) -> Vec<String> {
        let mut differences = Vec::new();
        for (name, digest) in &now.traces {
            match self.traces.get(name) {
                Some(stored) if stored == digest && self.semantics == now.semantics => {}
                None => differences.push(format!("{name} is new: run `cargo xtask traces`")),
                Some(_) if now.semantics > self.semantics => {
                    differences.push(format!("{name}: SEMANTICS grew: run `cargo xtask traces`"));
                }
                Some(_) => differences.push(format!(
                    "{name} has another digest than before: bump SEMANTICS, then `cargo xtask \
                     traces`; if the trace itself was changed, give it a new name"
                )),
            }
        }
        let gone = self.traces.keys().filter(|name| !now.traces.contains_key(*name));
        differences.extend(gone.map(|name| format!("{name} is gone: run `cargo xtask traces`")));
        differences
    }

    /// Returns the digests to store: those of `now`, unless they hide a change of semantics.
    ///
    /// # Errors
    /// The traces whose digests changed although the semantics number did not grow.
    pub fn updated(&self, now: Self) -> Result<Self, Vec<String>> {
        let same_number = now.semantics == self.semantics;
        let changed = |(name, digest): (&String, &String)| {
            let stored = self.traces.get(name)?;
            (stored != digest && same_number).then(|| name.clone())
        };
        let changed: Vec<String> = now.traces.iter().filter_map(changed).collect();
        if now.semantics < self.semantics {
            return Err(vec![format!(
                "SEMANTICS fell from {} to {}",
                self.semantics, now.semantics
            )]);
        }
        if changed.is_empty() { Ok(now) } else { Err(changed) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digests(semantics: u32, traces: &[(&str, &str)]) -> Digests {
        let traces = traces.iter().map(|(name, digest)| ((*name).into(), (*digest).into()));
        Digests { semantics, traces: traces.collect() }
    }

    #[test]
    fn a_changed_digest_needs_greater_semantics() {
        let stored = digests(1, &[("a", "1"), ("b", "2")]);
        assert_eq!(
            stored.updated(digests(1, &[("a", "9"), ("b", "2")])),
            Err(vec!["a".to_owned()])
        );
        let grown = digests(2, &[("a", "9"), ("b", "2")]);
        assert_eq!(stored.updated(grown.clone()), Ok(grown));
        let more = digests(1, &[("a", "1"), ("b", "2"), ("c", "3")]);
        assert_eq!(stored.updated(more.clone()), Ok(more));
        assert!(stored.updated(digests(0, &[])).is_err());
    }

    #[test]
    fn what_is_shown_can_be_read() {
        let stored = digests(3, &[("a.jsonl", "0f"), ("b.jsonl", "1e")]);
        assert_eq!(Digests::read(&stored.show()), Ok(stored.clone()));
        assert!(stored.differences(&stored).is_empty());
        assert_eq!(stored.differences(&digests(3, &[("a.jsonl", "00")])).len(), 2);
    }
}
