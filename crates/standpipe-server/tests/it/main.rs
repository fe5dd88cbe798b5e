//! The daemon, asked from outside: over TCP and its Unix socket, beside the library on the same
//! pools. Each test has a home and a daemon process of its own.

#![cfg(test)]

mod support;

mod answers;
mod attacks;
mod calls;
mod crowds;
mod found;
mod life;
mod looking;
mod problems;
mod redis;
mod rough;
mod security;
mod vanishing;
mod waiting;
mod when;
mod within;
