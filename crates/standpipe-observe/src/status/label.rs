//! Values from closed sets, written as names and read again leniently.
//!
//! A view may be read by an older program than the one that wrote it. A name that the reader does
//! not know becomes [`Label::Unknown`] and never makes the rest unreadable.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use standpipe_config::StoreFailure;
use standpipe_core::{Breaker, Priority, Reason, ThrottleKind, Zone};

/// A closed set of values, each with a name that every API, view and metric uses.
pub trait Named: Copy + Eq + 'static {
    /// All values.
    const ALL: &'static [Self];

    /// Returns the name of a value.
    fn name(self) -> &'static str;
}

/// A value of a closed set, or one that only a newer program knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Label<T> {
    /// A value that this program knows.
    Known(T),
    /// A name that this program does not know.
    Unknown,
}

impl<T: Named> Label<T> {
    /// Returns the name, `unknown` if it is not known.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Known(value) => value.name(),
            Self::Unknown => "unknown",
        }
    }

    /// Returns the value of a name.
    #[must_use]
    pub fn named(name: &str) -> Self {
        let known = T::ALL.iter().find(|value| value.name() == name);
        known.map_or(Self::Unknown, |value| Self::Known(*value))
    }
}

impl<T> From<T> for Label<T> {
    fn from(value: T) -> Self {
        Self::Known(value)
    }
}

impl<T: PartialEq> PartialEq<T> for Label<T> {
    fn eq(&self, other: &T) -> bool {
        matches!(self, Self::Known(value) if value == other)
    }
}

impl<T: Named> fmt::Display for Label<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl<T: Named> Serialize for Label<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de, T: Named> Deserialize<'de> for Label<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|name| Self::named(&name))
    }
}

/// Implements [`Named`] for an enum that has `as_str`.
macro_rules! named {
    ($set:ty, $($value:ident),+) => {
        impl Named for $set {
            const ALL: &'static [Self] = &[$(Self::$value),+];

            fn name(self) -> &'static str {
                self.as_str()
            }
        }
    };
}

named!(Zone, Green, Amber, Red);
named!(Breaker, Closed, PreEmptive, Open, HalfOpen);
named!(Priority, Critical, Standard, Background);
named!(ThrottleKind, Quota, Concurrency, SlowDown, Overload, Terminal);

impl Named for Reason {
    const ALL: &'static [Self] = &Self::ALL;

    fn name(self) -> &'static str {
        self.as_str()
    }
}

/// Defines an enum with its names.
macro_rules! named_enum {
    ($(#[$doc:meta])* $set:ident { $($(#[$about:meta])* $value:ident = $name:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $set {
            $($(#[$about])* $value,)+
        }

        impl $set {
            /// Returns the name, the same in every API, view and metric.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$value => $name,)+
                }
            }
        }

        named!($set, $($value),+);
    };
}

named_enum! {
    /// The kind of a limit.
    LimitKind {
        /// Units in a rolling or fixed window.
        Window = "window",
        /// Units that are refilled steadily.
        Bucket = "bucket",
        /// Calls in flight.
        Parallel = "parallel",
    }
}

named_enum! {
    /// What ends a lease that no caller settles.
    LeaseHolder {
        /// The end of the process that holds it.
        Session = "session",
        /// The end of its own time to live.
        Ttl = "ttl",
    }
}

named_enum! {
    /// Where a configuration came from.
    ConfigSource {
        /// A settings file.
        File = "file",
        /// Code or flags.
        Code = "code",
        /// Nowhere: the pool has none.
        None = "none",
    }
}

named_enum! {
    /// The state of the first call after a pause.
    ProbeState {
        /// The next call is the probe.
        Wanted = "wanted",
        /// The probe is in flight.
        Sent = "sent",
    }
}

named_enum! {
    /// What a pool does while its store is unavailable.
    OfflineMode {
        /// Each process uses the limits as if it were alone.
        Open = "open",
        /// Each process uses its share of the limits.
        Share = "share",
    }
}

impl From<StoreFailure> for Label<OfflineMode> {
    /// A pool that is configured to refuse calls has no offline mode of its own.
    fn from(configured: StoreFailure) -> Self {
        match configured {
            StoreFailure::Share => Self::Known(OfflineMode::Share),
            StoreFailure::Open | StoreFailure::Closed => Self::Known(OfflineMode::Open),
        }
    }
}

named_enum! {
    /// What a call would be answered.
    VerdictKind {
        /// It would be admitted.
        Admitted = "admitted",
        /// It would be queued.
        Waits = "waits",
        /// It would be refused.
        Refused = "refused",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        assert_eq!(Label::<Reason>::named("return_window"), Label::Known(Reason::ReturnWindow));
        assert_eq!(Label::<ThrottleKind>::named("slow_down").as_str(), "slow_down");
        assert_eq!(Label::<Reason>::named("retry_budget").as_str(), "retry_budget");
        assert_eq!(Label::<Reason>::named("a word of next year").as_str(), "unknown");
    }

    #[test]
    fn every_value_of_every_set_is_read_again() {
        fn check<T: Named + fmt::Debug>() {
            let names: BTreeSet<&str> = T::ALL.iter().map(|value| value.name()).collect();
            assert_eq!(names.len(), T::ALL.len());
            for value in T::ALL {
                let label = Label::Known(*value);
                let text = serde_json::to_string(&label).unwrap();
                assert_eq!(text, format!("\"{}\"", value.name()));
                assert_eq!(serde_json::from_str::<Label<T>>(&text).unwrap(), label);
            }
        }
        check::<Zone>();
        check::<Breaker>();
        check::<Priority>();
        check::<ThrottleKind>();
        check::<Reason>();
        check::<LimitKind>();
        check::<LeaseHolder>();
        check::<ConfigSource>();
        check::<ProbeState>();
        check::<OfflineMode>();
        check::<VerdictKind>();
        assert_eq!(serde_json::from_str::<Label<Zone>>("\"violet\"").unwrap(), Label::Unknown);
    }
}
