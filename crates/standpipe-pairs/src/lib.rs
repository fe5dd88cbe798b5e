//! Every pair of faults: two things go wrong at once, and one referee says what was broken.
//!
//! The referee trusts only what callers and the provider wrote down about calls. Each pair is drawn
//! from a seed and can be replayed by one command. Read `fault` (the list), `drive` (one pair),
//! `referee` (the verdict), then `worker`, `client`, `daemon` and `scene` (the processes).

pub mod client;
pub mod daemon;
pub mod drive;
pub mod fault;
pub mod http;
pub mod lanes;
pub mod provider;
pub mod record;
pub mod referee;
pub mod scene;
pub mod setup;
pub mod simulated;
pub mod worker;
