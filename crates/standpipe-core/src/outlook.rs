//! What is remembered so that the provider need not say no: the light, who is about, how warm the
//! limits have become, what others were seen to use, how large calls are, what was spent.
//!
//! Each part belongs to one policy, and goes with it.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::agent::AgentId;
use crate::config::{Headroom, LimitId, PoolConfig};
use crate::sizes::Sizes;
use crate::time::{Instant, Span};
use crate::unit::Unit;
use crate::window::{Grain, Window};

/// What is remembered so that the provider need not say no.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outlook {
    /// How much quota is left, with what is needed so that it does not flicker.
    pub zone: Zone,
    /// By tier: when somebody of it last began or ended something.
    pub active: [Option<Instant>; 3],
    /// How long all pauses that are over lasted together.
    pub paused: Span,
    /// The share of each rate that is used, where the headroom finds its own figure.
    pub warmth: Vec<Warmth>,
    /// What others were seen to use of each limit.
    pub outside: Vec<Outside>,
    /// How large calls turned out to be: of one agent, or of all.
    pub sizes: BTreeMap<(Option<AgentId>, Measure), Sizes>,
    /// The burn rate says that calls will have to wait.
    pub pre_emptive: bool,
    /// What a day's calls cost, in millionths of a dollar.
    pub spent: Window,
    /// The part of it that bought nothing: second tries, and calls nobody settled.
    pub wasted: Window,
}

/// How much quota is left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Zone {
    /// Over 40 %.
    #[default]
    Green,
    /// 15 to 40 %: lower tiers keep a distance.
    Amber,
    /// Under 15 %: background parks, standard goes slowly.
    Red,
}

/// The share of one rate that is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warmth {
    /// Of which limit.
    pub limit: LimitId,
    /// In thousandths.
    pub per_mille: u16,
    /// The clean stretch since.
    pub since: Instant,
    /// The calls that worked in it.
    pub successes: u32,
    /// It does not rise before then.
    pub rests: Instant,
}

/// What others were seen to use of one limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outside {
    /// Of which limit.
    pub limit: LimitId,
    /// When the provider first spoke of it.
    pub since: Instant,
    /// When it last did.
    pub heard: Instant,
    /// The least that was left of late.
    pub low: Low,
    /// What the provider's last word was short of; it counts when the next one says so too.
    pub gap: u64,
    /// What of a window others are believed to use, and to go on using: nobody else can have it.
    pub standing: u64,
    /// The part of that which may have been used before the ledger looked.
    pub early: u64,
    /// Since when the provider has more left than that leaves, and the least it was.
    pub spare: Option<(Instant, u64)>,
    /// What was charged to a bucket for it.
    pub charged: Window,
    /// When some of that was last given back.
    pub eased: Instant,
}

/// The least that was left of a limit in a stretch of time, and in the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Low {
    /// When the stretch began.
    pub since: Instant,
    /// The least that was left in it.
    pub left: u64,
    /// The least that was left in the one before.
    pub before: u64,
}

/// What is measured of calls.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Measure {
    /// The units it used.
    Of(Unit),
    /// The units it used per 4,096 bytes of what was sent.
    PerBytes(Unit),
}

impl Zone {
    /// The word for it, the same on every face.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Green => "green",
            Self::Amber => "amber",
            Self::Red => "red",
        }
    }
}

impl Default for Outlook {
    fn default() -> Self {
        Self {
            zone: Zone::Green,
            active: [None; 3],
            paused: Span::ZERO,
            warmth: Vec::new(),
            outside: Vec::new(),
            sizes: BTreeMap::new(),
            pre_emptive: false,
            spent: Window::new(Grain::Meter),
            wasted: Window::new(Grain::Meter),
        }
    }
}

impl Outlook {
    /// What is known of limits that are gone goes with them.
    pub(crate) fn keep(&mut self, there: impl Fn(&LimitId) -> bool) {
        self.warmth.retain(|warmth| there(&warmth.limit));
        self.outside.retain(|outside| there(&outside.limit));
    }

    /// What a policy brought goes with it.
    pub(crate) fn obey(&mut self, config: &PoolConfig) {
        let policy = &config.policy;
        if !policy.protects() {
            self.active = [None; 3];
        }
        if !policy.zones.are_on() {
            self.zone = Zone::Green;
        }
        if !policy.promotes {
            self.paused = Span::ZERO;
        }
        if config.headroom != Headroom::Auto {
            self.warmth.clear();
        }
        if !policy.reconciles {
            self.outside.clear();
        }
        if !policy.estimates {
            self.sizes.clear();
        }
        if !policy.breaker {
            self.pre_emptive = false;
        }
        if config.prices.is_empty() {
            (self.spent, self.wasted) = (Window::new(Grain::Meter), Window::new(Grain::Meter));
        }
    }
}
