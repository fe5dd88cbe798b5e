//! Every program that the tests may run: what a bare machine has, and what the test command
//! installs.
//!
//! The tests run with a `PATH` that holds links to these and to nothing else ([`crate::sandbox`]),
//! so a test that needs another program fails on every machine alike. Add a program here first.

/// What a bare machine has: the Rust toolchain, a C compiler, the usual commands of a shell,
/// Python, Node, Debian's package manager and git.
pub(crate) const BARE: &[&str] = &[
    // The Rust toolchain.
    "cargo",
    "cargo-clippy",
    "cargo-fmt",
    "clippy-driver",
    "rustc",
    "rustdoc",
    "rustfmt",
    // A C compiler and what it calls.
    "ar",
    "as",
    "cc",
    "gcc",
    "ld",
    "nm",
    "ranlib",
    // A shell and the programs of coreutils, sed, grep and util-linux that scripts and tests call.
    "awk",
    "basename",
    "bash",
    "cat",
    "chmod",
    "chown",
    "cp",
    "cut",
    "date",
    "dirname",
    "echo",
    "env",
    "expr",
    "false",
    "flock",
    "grep",
    "head",
    "id",
    "kill",
    "ln",
    "ls",
    "mkdir",
    "mktemp",
    "mount",
    "mv",
    "nice",
    "printf",
    "readlink",
    "rm",
    "script",
    "sed",
    "seq",
    "setpriv",
    "setsid",
    "sh",
    "sleep",
    "sort",
    "stty",
    "tail",
    "taskset",
    "test",
    "timeout",
    "touch",
    "tr",
    "true",
    "umount",
    "uname",
    "unshare",
    "wc",
    // Python, Node, Debian's packages, git.
    "apt-get",
    "dpkg-deb",
    "git",
    "node",
    "npm",
    "python3",
];

/// A program that the test command installs from one of Debian's packages when it is missing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Installed {
    /// The name by which the tests call it.
    pub(crate) name: &'static str,
    /// The file of the package that is linked under that name.
    pub(crate) file: &'static str,
    /// The package.
    pub(crate) package: &'static str,
}

const fn from(package: &'static str, name: &'static str) -> Installed {
    Installed { name, file: name, package }
}

/// What is installed from Debian's packages. The package with Redis's tools carries the server's
/// program too, under another name; the server's own package would start a service.
pub(crate) const INSTALLED: &[Installed] = &[
    from("chromium", "chromium"),
    from("curl", "curl"),
    from("g++", "c++"),
    from("gh", "gh"),
    from("iproute2", "ip"),
    from("openssl", "openssl"),
    from("redis-tools", "redis-cli"),
    Installed { name: "redis-server", file: "redis-check-rdb", package: "redis-tools" },
    from("systemd", "systemd-analyze"),
    Installed { name: "valkey-server", file: "valkey-check-rdb", package: VALKEY },
];

/// In Debian 12 only among the backports, so it is installed apart from the others.
pub(crate) const VALKEY: &str = "valkey-tools";
