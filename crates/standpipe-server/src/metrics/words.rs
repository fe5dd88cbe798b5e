//! The fixed words that labels are made of. What is not among them counts as the last of its list,
//! so that nothing a journal line says can make a new label.

use standpipe::Reason;

/// Tiers; lines of earlier versions do not say theirs.
pub(super) const PRIORITIES: [&str; 4] = ["critical", "standard", "background", "unknown"];

/// What the provider's refusals are about.
pub(super) const KINDS: [&str; 6] =
    ["quota", "concurrency", "slow_down", "overload", "terminal", "other"];

/// Why calls wait or are refused: the ledger's reasons, a store that is away, and what is not
/// known.
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

/// Why a lease was taken back.
pub(super) const RECLAIMS: [&str; 3] = ["expired", "owner_gone", "other"];

/// How much quota is left.
pub(super) const ZONES: [&str; 3] = ["green", "amber", "red"];

/// What the burn rate says.
pub(super) const BREAKERS: [&str; 4] = ["closed", "pre_emptive", "open", "half_open"];

/// Figures by word of one list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counts<const N: usize> {
    words: &'static [&'static str; N],
    counts: [u64; N],
}

impl<const N: usize> Counts<N> {
    pub(super) const fn of(words: &'static [&'static str; N]) -> Self {
        Self { words, counts: [0; N] }
    }

    pub(super) fn add(&mut self, word: &str, more: u64) {
        if let Some(count) = self.counts.get_mut(place(self.words, word)) {
            *count = count.saturating_add(more);
        }
    }

    /// All of them.
    pub(super) fn each(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.words.iter().copied().zip(self.counts)
    }

    /// Those that are not nothing.
    pub(super) fn some(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.each().filter(|(_, count)| *count > 0)
    }
}

/// Where a word is in a list; the last for those that are not.
pub(super) fn place<const N: usize>(words: &[&str; N], word: &str) -> usize {
    words.iter().position(|known| *known == word).unwrap_or(N.saturating_sub(1))
}
