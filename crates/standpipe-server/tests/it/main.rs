//! The daemon, asked from outside: over TCP and its Unix socket, beside the library on the same
//! pools. Each test has a home and a daemon process of its own.

#![cfg(test)]

mod support;

mod answers;
mod attacks;
mod calls;
mod crowds;
mod hostile_clients;
mod lifecycle;
mod problems;
mod proxy;
mod redis;
mod regressions;
mod security;
mod vanishing;
mod views;
mod wait_times;
mod waiting;
mod within;
