//! The version that `--version` shows: with the commit if the source is a git checkout, and the
//! profile.

use std::process::Command;

fn main() {
    let version = std::env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let profile = std::env::var("PROFILE").unwrap_or_default();
    let git = |args: &[&str]| {
        let output = Command::new("git").args(args).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        Some(text.trim().to_owned()).filter(|text| output.status.success() && !text.is_empty())
    };
    // A package is unpacked below a checkout of something else at times.
    let is_ours = git(&["ls-files", "--error-unmatch", "build.rs"]).is_some();
    let commit = git(&["rev-parse", "--short=9", "HEAD"]).filter(|_| is_ours);
    let text = match commit {
        Some(commit) => format!("{version} ({commit}, {profile})"),
        None => format!("{version} ({profile})"),
    };
    println!("cargo::rustc-env=STANDPIPE_VERSION={text}");
    println!("cargo::rerun-if-changed=build.rs");
    if let Some(directory) = git(&["rev-parse", "--git-dir"]).filter(|_| is_ours) {
        println!("cargo::rerun-if-changed={directory}/logs/HEAD");
    }
}
