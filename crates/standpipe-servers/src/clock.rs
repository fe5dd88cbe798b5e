//! A server's clock that a test can set, by a library that stands between it and the system.

use crate::options::Flavour;
use crate::programs;
use crate::scratch::Scratch;

const FILE: &str = "clock";

/// What comes before the program on its command line.
pub(crate) fn words(flavour: Flavour, scratch: &Scratch) -> Vec<String> {
    // It calls its own allocator by name, which asks for the time before the library is ready.
    assert!(flavour != Flavour::Valkey, "the clock of Valkey cannot be set");
    set(scratch, "+0");
    let library = programs::faketime_library();
    vec![
        "env".into(),
        // The C library before Redis's allocator, which would ask for the time too early as well.
        format!("LD_PRELOAD={}:libc.so.6", library.display()),
        format!("FAKETIME_TIMESTAMP_FILE={}", scratch.join(FILE).display()),
        // It looks at the file each time, rather than every ten seconds.
        "FAKETIME_NO_CACHE=1".into(),
        // How long something takes is measured as before.
        "FAKETIME_DONT_FAKE_MONOTONIC=1".into(),
    ]
}

/// In one step, so that it is never seen half written.
pub(crate) fn set(scratch: &Scratch, offset: &str) {
    let written = scratch.write("clock.new", &format!("{offset}\n"));
    if let Err(error) = std::fs::rename(&written, scratch.join(FILE)) {
        panic!("cannot set the clock: {error}");
    }
}
