//! The priorities of agents and calls, and their names.

/// The priority of an agent or call. All agents of one priority form a tier; a lower value is
/// served first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// P0: served first, never paced by the zone.
    Critical,
    /// P1: the default.
    #[default]
    Standard,
    /// P2: served last, parked in the red zone.
    Background,
}

impl Priority {
    /// All priorities, in the order in which they are served.
    pub const ALL: [Self; 3] = [Self::Critical, Self::Standard, Self::Background];

    /// Returns the name that files, answers and the journal use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Critical => "critical",
            Self::Standard => "standard",
            Self::Background => "background",
        }
    }
}
