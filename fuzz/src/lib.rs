//! Bytes as a story of events: what both fuzz targets are made of.
//!
//! The fuzzer only knows bytes. Here they become events whose names come from small sets, so that
//! events meet: a commit finds its lease, a cancel its ticket, a session its earlier number. Every
//! byte string is some story, and a small change of the bytes is a small change of the story.

mod bytes;
mod config;
mod story;
mod values;

pub use bytes::Bytes;
pub use story::{Story, reserve};
