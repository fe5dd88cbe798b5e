//! What happens to agents that share a key and know nothing of each other: the stories that people
//! tell, run again in numbers. They are the *before*.

mod after;
mod cascade;
mod foreign;
mod herd;
mod inversion;
mod scene;
mod stacking;
