//! The built program: commands, daemon, documents, and kills at labelled points.

#![cfg(test)]

mod cli;
mod daemon;
mod docs;
mod killed;
mod limits;
mod margin;
mod redis;
mod sharing;
mod support;
mod units;
