//! What the tests need of the machine beside Rust, installed before they run when it is missing.
//!
//! Only programs come onto the machine, never a service: the packages are those with the tools,
//! which carry the server's program too. What cannot be had is told and is no failure here; the
//! tests that need it fail, and say what they miss.

pub(crate) mod apt;
mod old_redis;
pub(crate) mod python;
mod sources;
mod valkey;

use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::context::Context;
use crate::say;

/// Something that tests use.
struct Need {
    name: &'static str,
    is_here: fn(&Context) -> bool,
    get: fn(&Context) -> Result<(), String>,
}

const NEEDS: &[Need] = &[
    Need {
        name: "Redis",
        is_here: |_| on_path("redis-server") || on_path("redis-check-rdb"),
        get: |context| apt::install(context, "redis-tools"),
    },
    Need {
        name: "Valkey",
        is_here: |_| on_path("valkey-server") || on_path("valkey-check-rdb"),
        get: valkey::install,
    },
    Need { name: "Redis 6.2", is_here: old_redis::is_here, get: old_redis::install },
    Need {
        name: "faketime",
        is_here: |_| has_faketime(Path::new("/usr/lib")),
        get: |context| apt::install(context, "faketime"),
    },
    Need {
        name: "ip",
        is_here: |_| on_path("ip"),
        get: |context| apt::install(context, "iproute2"),
    },
    Need {
        name: "openssl",
        is_here: |_| on_path("openssl"),
        get: |context| apt::install(context, "openssl"),
    },
    Need {
        name: "Chromium",
        is_here: |_| on_path("chromium"),
        get: |context| apt::install(context, "chromium"),
    },
    Need {
        name: "Node",
        is_here: |_| on_path("node"),
        get: |context| apt::install(context, "nodejs"),
    },
    Need { name: "npm", is_here: |_| on_path("npm"), get: |context| apt::install(context, "npm") },
];

/// Gets what is missing, one line for each.
pub(crate) fn missing(context: &Context) {
    for need in NEEDS.iter().filter(|need| !(need.is_here)(context)) {
        say::begin(&format!("install  {:10} ", need.name));
        let began = Instant::now();
        let got = (need.get)(context).and_then(|()| match (need.is_here)(context) {
            true => Ok(()),
            false => Err("it was installed and is still not there".into()),
        });
        match got {
            Ok(()) => say::line(&format!("{:>26}", say::seconds(began.elapsed()))),
            Err(why) => say::line(&format!("MISSING: {why}")),
        }
    }
}

/// Whether there is such a program, also where only the administrator's shell looks.
fn on_path(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/bin", "/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&path).chain(usual).any(|directory| directory.join(name).is_file())
}

/// The library is in the directory of the machine's architecture.
fn has_faketime(libraries: &Path) -> bool {
    let mut directories = std::fs::read_dir(libraries).into_iter().flatten().flatten();
    directories.any(|entry| entry.path().join("faketime/libfaketime.so.1").is_file())
}

/// An empty directory for what is needed only while something is installed.
fn scratch(context: &Context, name: &str) -> Result<Scratch, String> {
    let name = format!("{name}-{}", std::process::id());
    let path = context.target.join("servers").join(name);
    std::fs::create_dir_all(&path)
        .map(|()| Scratch(path.clone()))
        .map_err(|error| format!("cannot make {}: {error}", path.display()))
}

/// It goes with its value.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_or_not() {
        assert!(on_path("sh"));
        assert!(!on_path("no-such-program-here"));
    }

    #[test]
    fn the_library_is_found_in_any_architecture() {
        let context = Context {
            root: std::env::temp_dir(),
            target: std::env::temp_dir().join("standpipe-xtask-tests"),
            long: false,
        };
        let libraries = scratch(&context, "libraries").unwrap();
        assert!(!has_faketime(&libraries.0));
        let directory = libraries.0.join("some-linux-gnu/faketime");
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("libfaketime.so.1"), "").unwrap();
        assert!(has_faketime(&libraries.0));
    }
}
