//! The Redis store against real servers: conformance, failover, cuts, damage, access.

#![cfg(test)]

mod access;
mod answers;
mod changes;
mod conformance;
mod crowd;
mod cut;
mod damage;
mod deadlines;
mod failover;
mod keys;
mod pairs;
mod race;
mod replicas;
mod server_faults;
mod shards;
mod size;
mod skew;
mod split;
mod support;
