//! Running another program: lookup, start, signals, standard error, and its end.

pub(crate) mod base_urls;
pub(crate) mod gh_config;
pub(crate) mod lookup;
pub(crate) mod reset;
pub(crate) mod run;
pub(crate) mod signals;
pub(crate) mod tee;
pub(crate) mod wait;
