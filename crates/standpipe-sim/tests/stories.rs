//! What happens to agents that share a key and know nothing of each other: the stories that people
//! tell, run again in numbers. They are the *before*.

#![cfg(test)]

#[path = "stories/scene.rs"]
mod scene;

#[path = "stories/herd.rs"]
mod herd;

#[path = "stories/cascade.rs"]
mod cascade;

#[path = "stories/stacking.rs"]
mod stacking;

#[path = "stories/foreign.rs"]
mod foreign;

#[path = "stories/inversion.rs"]
mod inversion;
