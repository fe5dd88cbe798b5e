//! Reading of providers' responses: recorded samples, test vectors, random bytes.

#![cfg(test)]

mod faults;
mod models;
mod others;
mod props;
mod streams;
mod support;
mod vectors;
