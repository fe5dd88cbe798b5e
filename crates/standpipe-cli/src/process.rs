//! Other programs: running one, passing signals on to it, and ending together.

pub(crate) mod child;
pub(crate) mod find;
pub(crate) mod reset;
pub(crate) mod run;
pub(crate) mod signals;
pub(crate) mod tee;
pub(crate) mod wait;
