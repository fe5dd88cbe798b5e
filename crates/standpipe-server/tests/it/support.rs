//! A daemon in a home of its own, and a small HTTP client that can also say what no client would.

mod client;
mod common;
mod daemon;
mod home;
mod running;
mod sse;

pub(crate) use self::client::{Answer, Client};
pub(crate) use self::common::{
    BOUND, files, lease, limit, line_of, take_the_slot, until, until_waiting, wants_the_slot,
};
pub(crate) use self::daemon::Daemon;
pub(crate) use self::home::Home;
pub(crate) use self::running::Start;
pub(crate) use self::sse::Sse;

/// As many files as this test may open.
pub(crate) fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let enough = limit.maximum.is_none_or(|most| most >= 10_000);
    assert!(enough, "this test opens 5,000 connections; see `ulimit -Hn`");
    setrlimit(Resource::Nofile, Rlimit { current: Some(10_000), maximum: limit.maximum }).unwrap();
}
