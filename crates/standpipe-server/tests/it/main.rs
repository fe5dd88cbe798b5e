//! The daemon, asked from outside: over TCP and its Unix socket, beside the library on the same
//! pools. Each test has a home and a daemon process of its own.

#![cfg(test)]

mod support;

mod answers;
mod attacks;
mod calls;
mod crowds;
mod regressions;
mod lifecycle;
mod views;
mod problems;
mod redis;
mod hostile_clients;
mod security;
mod vanishing;
mod waiting;
mod wait_times;
