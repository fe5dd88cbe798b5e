//! The labels of metrics, and their fixed values.
//!
//! An unknown value counts as the last of its list, so a journal event cannot create a label.

use standpipe::Reason;

/// A label: its name, and its values if they are fixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Label {
    pub(super) name: &'static str,
    pub(super) values: &'static [&'static str],
}

impl Label {
    pub(super) const fn any(name: &'static str) -> Self {
        Self { name, values: &[] }
    }

    pub(super) const fn of(name: &'static str, values: &'static [&'static str]) -> Self {
        Self { name, values }
    }
}

pub(super) const POOL: Label = Label::any("pool");
pub(super) const AGENT: Label = Label::any("agent");
pub(super) const LIMIT: Label = Label::any("limit");
pub(super) const UNIT: Label = Label::any("unit");
pub(super) const MODEL: Label = Label::any("model");
pub(super) const PRIORITY: Label = Label::of("priority", &PRIORITIES);
pub(super) const REASON: Label = Label::of("reason", &REASONS);
/// The kind of a provider's refusal.
pub(super) const KIND: Label = Label::of("kind", &KINDS);

/// Priorities; events of earlier versions have none.
pub(super) const PRIORITIES: [&str; 4] = ["critical", "standard", "background", "unknown"];

/// Kinds of a provider's refusal.
pub(super) const KINDS: [&str; 6] =
    ["quota", "concurrency", "slow_down", "overload", "terminal", "other"];

/// Why calls wait or are refused: the ledger's reasons, an unavailable store, and unknown ones.
pub(super) const REASONS: [&str; Reason::ALL.len() + 2] = {
    let mut words = ["other"; Reason::ALL.len() + 2];
    let mut at = 0;
    while at < Reason::ALL.len() {
        words[at] = Reason::ALL[at].as_str();
        at += 1;
    }
    words[at] = "store";
    words
};

/// Why a lease was reclaimed.
pub(super) const RECLAIMS: [&str; 3] = ["expired", "owner_gone", "other"];

/// How much quota is left.
pub(super) const ZONES: [&str; 3] = ["green", "amber", "red"];

/// States of the circuit breaker.
pub(super) const BREAKERS: [&str; 4] = ["closed", "pre_emptive", "open", "half_open"];

/// Counts by value of one list.
#[derive(Clone, Copy, Debug)]
pub(super) struct LabelCounts<const N: usize> {
    words: &'static [&'static str; N],
    counts: [u64; N],
}

impl<const N: usize> LabelCounts<N> {
    pub(super) const fn of(words: &'static [&'static str; N]) -> Self {
        Self { words, counts: [0; N] }
    }

    pub(super) fn add(&mut self, word: &str, more: u64) {
        if let Some(count) = self.counts.get_mut(index_of(self.words, word)) {
            *count = count.saturating_add(more);
        }
    }

    /// All counts.
    pub(super) fn each(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.words.iter().copied().zip(self.counts)
    }

    /// The counts above 0.
    pub(super) fn some(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.each().filter(|(_, count)| *count > 0)
    }
}

/// The index of a value in a list; the last for unknown values.
pub(super) fn index_of<const N: usize>(words: &[&str; N], word: &str) -> usize {
    words.iter().position(|known| *known == word).unwrap_or(N.saturating_sub(1))
}
