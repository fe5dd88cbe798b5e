//! The store crate: the memory log, participants, golden traces, and proof that the suite can fail.

#![cfg(test)]

mod memory;
mod one_pass;
mod participant;
mod teeth;
mod traces_core;
