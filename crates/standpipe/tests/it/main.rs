//! The library through its public API, in virtual time and on a real Redis server.

#![cfg(test)]

mod awaiting;
mod cancelling;
mod cut_off;
mod dead;
mod ids;
mod independent;
mod leases;
mod listening;
mod pools;
mod redis;
mod retry;
mod sessions;
mod several;
mod support;
mod usage;
mod waiting;
mod when;
mod within;
mod workflows;
