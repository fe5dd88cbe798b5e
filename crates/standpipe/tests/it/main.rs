//! The library through its public API, in virtual time and on a real Redis server.

#![cfg(test)]

mod awaiting;
mod cancelling;
mod ids;
mod independent;
mod leases;
mod listening;
mod offline;
mod owner_death;
mod pools;
mod redis;
mod retry;
mod sessions;
mod several;
mod support;
mod usage;
mod wait_times;
mod waiting;
mod within;
mod workflows;
