//! What people and programs are shown: one file per thing. Nothing here asks or changes anything.

pub(crate) mod amount;
pub(crate) mod audit;
pub(crate) mod bar;
pub(crate) mod compare;
pub(crate) mod escaped;
pub(crate) mod events;
pub(crate) mod explain;
pub(crate) mod findings;
pub(crate) mod kept;
pub(crate) mod length;
pub(crate) mod problem;
pub(crate) mod status;
pub(crate) mod style;
pub(crate) mod table;
