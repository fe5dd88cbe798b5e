//! What is remembered of a provider's refusals. A pool that was never refused remembers nothing.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use crate::agent::AgentId;
use crate::event::{Key, ThrottleKind};
use crate::name::AgentName;
use crate::policy::Policy;
use crate::time::{Instant, Span};
use crate::unit::Unit;
use crate::window::{Grain, Window};

/// What is remembered of a provider's refusals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// When the last pause began.
    pub began: Option<Instant>,
    /// What it began with; none for a pause by hand.
    pub incident: Option<Incident>,
    /// Refusals in a row, of calls that were admitted after the pause before.
    pub streak: u32,
    /// The same for a provider that is short of capacity.
    pub overloads: u32,
    /// By tier: who comes after the pause has ended comes behind those who waited through it, not
    /// before this.
    pub behind: [Instant; 3],
    /// When the last pause ended by itself, while its return windows count.
    pub ended: Option<Instant>,
    /// The first call after a pause.
    pub probe: Probe,
    /// Which agents were refused lately, each once, in the order of time.
    pub refused: Vec<(AgentId, Instant)>,
    /// Everybody goes one at a time.
    pub sequential: Option<Sequential>,
    /// The shortest rates are not used whole.
    pub ramp: Option<Ramp>,
    /// How many calls the provider was seen to bear at once.
    pub bears: Option<Bears>,
    /// What the provider said of its limits.
    pub told: Vec<Told>,
    /// How many calls may be unanswered while nothing is known of the limits, as a power of two.
    pub courage: u8,
    /// The calls that count at the gate: admitted while it was shut, and not answered.
    pub unanswered: BTreeSet<Key>,
    /// The last minute's admissions, and those that were second tries.
    pub admissions: Window,
    /// See [`Trouble::admissions`].
    pub retries: Window,
}

/// What a pause began with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incident {
    /// What kind of refusal.
    pub kind: ThrottleKind,
    /// Whose call was refused.
    pub agent: Option<AgentName>,
    /// When.
    pub at: Instant,
}

/// The first call after a pause: others follow when its answer is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Probe {
    /// There is none to wait for.
    #[default]
    Over,
    /// The next admission is it.
    Wanted,
    /// It is under way.
    Sent {
        /// The call.
        lease: Key,
        /// Since then.
        at: Instant,
    },
}

/// Everybody goes one at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sequential {
    /// Since then.
    pub began: Instant,
    /// Until then, if no further refusal comes.
    pub ends: Instant,
    /// Successes in a row.
    pub successes: u8,
}

/// The shortest rates are halved so many times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ramp {
    /// How often.
    pub halvings: u8,
    /// Since then; one less a period later.
    pub since: Instant,
    /// The provider was told to be growing too fast: requests are spread evenly, because a halved
    /// rate that is spent in one burst is growth again.
    pub paced: bool,
}

/// How many calls the provider was seen to bear at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bears {
    /// So many.
    pub calls: u64,
    /// Since then; one more a minute later.
    pub since: Instant,
}

/// What a provider said of one of its limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// What it counts.
    pub unit: Unit,
    /// Its period.
    pub period: Span,
    /// How many.
    pub amount: u64,
}

impl Default for Trouble {
    fn default() -> Self {
        Self {
            began: None,
            incident: None,
            streak: 0,
            overloads: 0,
            behind: [Instant(0); 3],
            ended: None,
            probe: Probe::Over,
            refused: Vec::new(),
            sequential: None,
            ramp: None,
            bears: None,
            told: Vec::new(),
            courage: 0,
            unanswered: BTreeSet::new(),
            admissions: Window::new(Grain::Meter),
            retries: Window::new(Grain::Meter),
        }
    }
}

impl Trouble {
    /// What a policy brought goes with it.
    pub(crate) fn obey(&mut self, policy: &Policy) {
        if policy.comeback.is_none() {
            (self.probe, self.ramp, self.ended) = (Probe::Over, None, None);
            self.behind = [Instant(0); 3];
        }
        if !policy.cascade {
            self.sequential = None;
            self.refused.clear();
        }
        if !policy.learn {
            (self.bears, self.courage) = (None, 0);
            self.told.clear();
        }
        if !policy.gates() {
            self.unanswered.clear();
        }
        if policy.retries.is_none() {
            self.admissions = Window::new(Grain::Meter);
            self.retries = Window::new(Grain::Meter);
        }
    }
}
