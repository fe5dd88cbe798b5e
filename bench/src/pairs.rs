//! One reserve and its commit, on each of the engines that are compared.

mod bare;
mod governor;
mod redis;
mod sqlite;
mod standpipe;

use std::path::Path;

pub(crate) use self::standpipe::{commit_nothing, member_of, pool_at};
use crate::worker::serve;

/// Runs pairs of a kind for the parent process.
pub(crate) fn run(kind: &str, place: &str) -> Result<(), String> {
    let directory = Path::new(place);
    match kind {
        "standpipe" => serve(standpipe::plain(directory)?, 1),
        "standpipe-full" => serve(standpipe::full(directory)?, 1),
        "library" => serve(standpipe::library(directory)?, 1),
        "bare" => serve(bare::pairs(directory)?, 1),
        "redis" => serve(redis::pairs(place)?, 1),
        "sqlite" => serve(sqlite::pairs(directory)?, 1),
        "governor" => serve(governor::pairs()?, 1_000),
        other => Err(format!("there are no pairs of `{other}`")),
    }
}

/// What a pair takes, and what it turns out to have used.
const TOKENS: u64 = 1_200;
const USED: u64 = 800;
