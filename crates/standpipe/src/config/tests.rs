//! Whole files: read, refused, shown, and mangled.

mod odd;
mod places;
mod right;
mod shown;
mod wrong;

use super::*;

/// Every section, as the design shows it.
const FULL: &str = include_str!("tests/full.toml");

#[track_caller]
fn settings(text: &str) -> Settings {
    match Settings::parse(text, Some(Path::new("/x/standpipe.toml")), 7) {
        Ok(settings) => settings,
        Err(error) => panic!("{error}"),
    }
}

/// Everything that is wrong with the text, as it is shown.
#[track_caller]
fn problems(text: &str) -> Vec<String> {
    let error = Settings::parse(text, Some(Path::new("s.toml")), 0).unwrap_err();
    let said: Vec<String> = error.problems.iter().map(ToString::to_string).collect();
    assert_eq!(said.join("\n"), error.to_string());
    said
}

fn pool_name(name: &str) -> PoolName {
    name.parse().unwrap()
}
