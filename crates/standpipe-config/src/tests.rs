//! Whole files: valid, invalid, shown and corrupted.

mod corrupted;
mod find;
mod invalid;
mod output;
mod valid;

use std::path::{Path, PathBuf};

use standpipe_core::{PoolConfig, Share, Source};
use standpipe_dialect::Dialect;
use standpipe_store::PoolName;

use super::*;

/// A file with every section.
const FULL: &str = include_str!("tests/full.toml");

#[track_caller]
fn settings(text: &str) -> Settings {
    match Settings::parse(text, Some(Path::new("/x/standpipe.toml")), 7) {
        Ok(settings) => settings,
        Err(error) => panic!("{error}"),
    }
}

/// Returns the messages of all problems of the text.
#[track_caller]
fn problems(text: &str) -> Vec<String> {
    let error = Settings::parse(text, Some(Path::new("s.toml")), 0).unwrap_err();
    let messages: Vec<String> = error.problems.iter().map(ToString::to_string).collect();
    assert_eq!(messages.join("\n"), error.to_string());
    messages
}

fn pool_name(name: &str) -> PoolName {
    name.parse().unwrap()
}
