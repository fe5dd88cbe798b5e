//! Where the programs and libraries are that the tests need.

use std::path::PathBuf;

use crate::options::Flavour;
use crate::scratch::Scratch;

/// The program of a server. Debian's tools carry it under the name of another, which it goes by:
/// then it gets a name in the server's own directory.
pub(crate) fn server(flavour: Flavour, scratch: &Scratch) -> PathBuf {
    let (name, twin) = match flavour {
        Flavour::Redis => ("redis-server", "redis-check-rdb"),
        Flavour::Valkey => ("valkey-server", "valkey-check-rdb"),
        Flavour::Old => return old_redis(),
    };
    if let Some(program) = on_path(name) {
        return program;
    }
    let Some(program) = on_path(twin) else {
        panic!("no `{name}` on this machine; `cargo xtask test` installs it");
    };
    let link = scratch.join(name);
    if !link.exists()
        && let Err(error) = std::os::unix::fs::symlink(&program, &link)
    {
        panic!("cannot name {} `{name}`: {error}", program.display());
    }
    link
}

/// Any other program.
pub(crate) fn needed(name: &str) -> PathBuf {
    let Some(program) = on_path(name) else {
        panic!("no `{name}` on this machine; `cargo xtask test` installs it");
    };
    program
}

/// The library that shows a program another time, `libfaketime.so.1` of Debian's `faketime`.
#[must_use]
pub fn faketime_library() -> PathBuf {
    let directories = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    let mut places = directories.map(|entry| entry.path().join("faketime/libfaketime.so.1"));
    let Some(library) = places.find(|place| place.is_file()) else {
        panic!("no `libfaketime.so.1` on this machine; `cargo xtask test` installs it");
    };
    library
}

/// Redis 6.2 is in no distribution of today: `cargo xtask test` unpacks it in the build directory,
/// of which the running test is a part.
fn old_redis() -> PathBuf {
    const PLACE: &str = "servers/redis-6.2/redis-server";
    let own = std::env::current_exe().unwrap_or_default();
    let mut places = own.ancestors().map(|directory| directory.join(PLACE));
    let Some(program) = places.find(|place| place.is_file()) else {
        panic!("no `{PLACE}` in the build directory; `cargo xtask test` puts it there");
    };
    program
}

/// Only `PATH` is searched: `cargo xtask test` decides what is on it.
fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places = std::env::split_paths(&path).map(|directory| directory.join(name));
    places.find(|place| place.is_file())
}
