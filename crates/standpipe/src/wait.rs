//! Waiting for a call to be admitted, with or without an async runtime.
//!
//! [`Reserving`] is what callers hold; [`WaitState`](wait_state::WaitState) takes the steps, the
//! same for a thread that blocks and a task that is polled. Dropped at any moment, a wait leaves no
//! ticket and no lease.

mod reserve_all;
mod reserve_job;
mod reserving;
mod set_reserve;
pub(crate) mod wait_state;

pub use self::reserve_all::ReserveAll;
pub use self::reserving::Reserving;
pub(crate) use self::set_reserve::parts_of;
