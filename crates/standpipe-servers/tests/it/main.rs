//! The test servers and the faulty network that the Redis tests rely on.

#![cfg(test)]

mod cluster;
mod gate;
mod network;
mod orphans;
mod pair;
mod server;
