//! The simulator: its provider against an oracle, and the stories before and after the tap.

#![cfg(test)]

mod rules;
mod shapes;
mod socket;
mod stories;
mod world;
