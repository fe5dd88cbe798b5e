//! `standpipe hold POOL -- true` beside `flock FILE true`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::peers::{build_directory, run as must_run};
use crate::scratch::Scratch;
use crate::table::aim;

const TIMES: usize = 200;

pub(crate) fn run() -> Result<(), String> {
    println!("## `standpipe hold`\n");
    println!("From start to end, {TIMES} of each, taken in turns; one configuration file.\n");
    let program = built()?;
    let scratch = Scratch::new()?;
    let config = scratch.path().join("standpipe.toml");
    let written = std::fs::write(&config, "[pool.\"bench/slots\"]\nparallel = 4\n");
    written.map_err(|error| format!("cannot write {}: {error}", config.display()))?;
    let mut commands = [
        ("`true`", Command::new("true")),
        ("`flock FILE true`", flock(scratch.path())),
        ("`standpipe hold … --limit parallel=4 -- true`", hold(&program, scratch.path(), None)),
        ("the same, configured by a file", hold(&program, scratch.path(), Some(&config))),
    ];
    let mut found: [Vec<f64>; 4] = Default::default();
    for _ in 0..TIMES {
        for ((_, command), found) in commands.iter_mut().zip(&mut found) {
            let begun = Instant::now();
            must_run(command)?;
            found.push(begun.elapsed().as_secs_f64() * 1e3);
        }
    }
    for found in &mut found {
        found.sort_by(f64::total_cmp);
    }
    print(&commands.map(|(name, _)| name), &found);
    Ok(())
}

fn print(names: &[&str], found: &[Vec<f64>; 4]) {
    let middle = |found: &Vec<f64>| found.get(found.len() / 2).copied().unwrap_or(0.0);
    let flock = middle(&found[1]);
    println!("| command | least, ms | median, ms | times `flock` |");
    println!("|---|---:|---:|---:|");
    for (name, found) in names.iter().zip(found) {
        let (least, middle) = (found.first().copied().unwrap_or(0.0), middle(found));
        println!("| {name} | {least:.2} | {middle:.2} | {:.2} |", middle / flock);
    }
    println!("\n| aim | reached | |\n|---|---:|---|");
    for (place, name) in [(2, "limits on the command line"), (3, "limits in a file")] {
        let times = middle(&found[place]) / flock;
        let text = format!("at most 2 times `flock FILE true`; {name}");
        aim(&text, Some(format!("{times:.2} ×")), Some(times <= 2.0));
    }
    println!();
}

fn flock(directory: &Path) -> Command {
    let mut command = Command::new("flock");
    command.arg(directory.join("flock")).arg("true");
    command
}

fn hold(program: &Path, directory: &Path, config: Option<&PathBuf>) -> Command {
    let mut command = Command::new(program);
    command.args(["hold", "bench/slots"]);
    let home = match config {
        Some(config) => {
            command.env("STANDPIPE_CONFIG", config);
            directory.join("configured")
        }
        None => {
            command.args(["--limit", "parallel=4"]).env_remove("STANDPIPE_CONFIG");
            directory.join("by-file")
        }
    };
    command.args(["--", "true"]);
    // The configuration of the user who runs the bench is not found.
    command.env("STANDPIPE_HOME", home).env("XDG_CONFIG_HOME", directory).env("HOME", directory);
    command
}

/// The program as it is now, beside this one.
pub(crate) fn built() -> Result<PathBuf, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.args(["build", "--quiet", "--release", "--package", "standpipe-cli"]);
    build.current_dir(env!("CARGO_MANIFEST_DIR")).env("CARGO_TARGET_DIR", build_directory()?);
    must_run(&mut build)?;
    Ok(build_directory()?.join("release/standpipe"))
}
