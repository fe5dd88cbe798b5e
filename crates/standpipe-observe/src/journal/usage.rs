//! What agents used: one line per agent and model for about ten seconds of a process.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

/// What one agent did on one pool, in one process, during a stretch of about ten seconds.
///
/// Admissions count in the second they happened. What a call used is known when it ends, so its
/// units may be in a later line than its admission, and in one of another process.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Usage {
    /// The agent; `other` stands for unknown agents and for those beyond what a process tracks.
    pub agent: String,
    /// What it called.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub model: Option<String>,
    /// The priority its calls were decided with, if known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub priority: Option<String>,
    /// The whole second in which it begins.
    pub from: Timestamp,
    /// The admissions in each second from then on; none behind the last one that had any.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub per_second: Vec<u32>,
    /// Whether the pool held calls back; `false` is shadow mode.
    pub enforced: bool,
    /// Whether they are calls whose caller named another pool, which counts them too.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub part: bool,
    /// Calls that were admitted.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub calls: u64,
    /// Of those, the ones that tried another again.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub retries: u64,
    /// Calls that the provider refused for a reason of quota.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub refused: u64,
    /// Calls that were admitted and never sent.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub cancelled: u64,
    /// What calls that ended used, at the estimate where no figure came. A call that the provider
    /// did not serve used its requests and nothing else.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub units: BTreeMap<String, u64>,
    /// Calls that were not admitted, by reason: `deadline` where they waited in vain, `store` where
    /// the store did not answer.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub refusals: BTreeMap<String, u64>,
    /// How long calls waited, admitted or not.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub waited_ms: u64,
    /// How many calls waited how long: one figure for each of [`Usage::WAITS_MS`] and one for those
    /// that waited longer; none behind the last that had any. Calls that were admitted at once are
    /// among the first; those that were refused at once are nowhere.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub waits: Vec<u64>,
}

impl Usage {
    /// Up to how many milliseconds a wait belongs to each figure of [`Usage::waits`].
    pub const WAITS_MS: [u64; 12] = [
        100, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000, 120_000, 300_000, 600_000, 1_800_000,
    ];

    /// Each second in which something was admitted, since 1970, and how much.
    pub fn seconds(&self) -> impl Iterator<Item = (u64, u64)> {
        let first = self.from.millis / 1_000;
        let counted = (first..).zip(&self.per_second).filter(|(_, calls)| **calls > 0);
        counted.map(|(second, calls)| (second, u64::from(*calls)))
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
pub(super) const fn is_zero(figure: &u64) -> bool {
    *figure == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::{Event, EventData};

    #[test]
    fn a_line_says_what_there_is_to_say_and_no_more() {
        let usage = Usage {
            agent: "blog".to_owned(),
            from: Timestamp { millis: 7_000 },
            per_second: vec![1, 0, 2],
            enforced: true,
            calls: 3,
            units: BTreeMap::from([("requests".to_owned(), 3)]),
            ..Usage::default()
        };
        assert_eq!(usage.seconds().collect::<Vec<_>>(), [(7, 1), (9, 2)]);
        let (at, pool) = (Timestamp { millis: 9_500 }, "a/b".to_owned());
        let event = Event { at, pool, what: EventData::Usage(usage) };
        let line = serde_json::to_string(&event).unwrap();
        assert_eq!(
            line,
            "{\"at\":\"1970-01-01T00:00:09.500Z\",\"pool\":\"a/b\",\"kind\":\"usage\",\
             \"agent\":\"blog\",\"from\":\"1970-01-01T00:00:07.000Z\",\"per_second\":[1,0,2],\
             \"enforced\":true,\"calls\":3,\"units\":{\"requests\":3}}"
        );
        assert_eq!(serde_json::from_str::<Event>(&line).unwrap(), event);
    }

    #[test]
    fn tier_refusals_and_waits_are_said_and_read_where_there_are_any() {
        let usage = Usage {
            priority: Some("background".to_owned()),
            refusals: BTreeMap::from([("pause".to_owned(), 2)]),
            waits: vec![3, 0, 1],
            ..Usage::default()
        };
        let line = serde_json::to_string(&usage).unwrap();
        for words in ["\"priority\":\"background\"", "{\"pause\":2}", "\"waits\":[3,0,1]"] {
            assert!(line.contains(words), "{words} in {line}");
        }
        assert_eq!(serde_json::from_str::<Usage>(&line).unwrap(), usage);
        let before = r#"{"agent":"blog","from":"1970-01-01T00:00:07.000Z","enforced":true}"#;
        let read: Usage = serde_json::from_str(before).unwrap();
        assert_eq!((read.priority, read.refusals.len(), read.waits.len()), (None, 0, 0));
    }
}
