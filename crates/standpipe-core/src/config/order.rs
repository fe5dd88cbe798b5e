//! The order in which tickets of one tier are served.

/// The order in which tickets of one tier are served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// By arrival.
    #[default]
    Arrival,
    /// By what each agent takes for its weight; see `queue/fair.rs`.
    Fair,
}
