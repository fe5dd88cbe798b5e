//! Tests of the file store with real processes: conformance, contention, kills, damage, bounds.

#![cfg(test)]

mod conformance;
mod copies;
mod crowd;
mod damage;
mod kill;
mod life;
mod power;
mod size;
mod starts;
mod support;
