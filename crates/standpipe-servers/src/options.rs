//! What kind of server a test wants, and the configuration that follows.

use std::path::Path;

/// Which program it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flavour {
    /// Redis as Debian has it, 7.0 or later.
    #[default]
    Redis,
    /// Valkey, 8.0 or later.
    Valkey,
    /// Redis 6.2, the oldest that is still met.
    Old,
}

/// How a server is started. The default is a Redis that keeps nothing and lets everybody do
/// everything.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Which program it is.
    pub flavour: Flavour,
    /// More arguments, as on its command line: `["--maxmemory", "1mb"]`.
    pub args: Vec<String>,
    /// Who may do what: lines as in an ACL file, `user name on >password ~keys* +command`.
    pub acl: Option<String>,
    /// Only TLS on its port, with a certificate made on the spot.
    pub tls: bool,
    /// Every write is on disk before it is answered.
    pub persistent: bool,
    /// The port of the server of this machine that it follows.
    pub replica_of: Option<u16>,
    /// Its clock can be set, by [`crate::Server::set_clock`]. Not Valkey's.
    pub movable_clock: bool,
    /// The network namespace in which it runs, bound to the address of that.
    pub namespace: Option<String>,
}

/// Whom we are to the servers, whatever users a test defines. It has no password: the socket it
/// comes through is in a directory of the test's own.
pub(crate) const ADMINISTRATOR: &str = "standpipe-test";

/// The files in a server's directory by which we reach it, and that say who may do what.
pub(crate) const SOCKET: &str = "admin.sock";
pub(crate) const USERS: &str = "users.acl";

/// Configurations without what is only known later: port and address.
impl Options {
    pub(crate) fn lines(&self, directory: &Path) -> Vec<String> {
        let mut lines = self.sentinel_lines(directory);
        lines.extend(QUIET.iter().map(|line| (*line).to_owned()));
        if self.flavour != Flavour::Old {
            // Redis 6.2 has no such setting, and lets everybody debug.
            lines.push("enable-debug-command yes".into());
        }
        if self.persistent {
            lines.extend(["appendonly yes".into(), "appendfsync always".into()]);
        }
        if let Some(master) = self.replica_of {
            lines.push(format!("replicaof 127.0.0.1 {master}"));
        }
        lines
    }

    /// Those that a sentinel has too, which knows no data.
    pub(crate) fn sentinel_lines(&self, directory: &Path) -> Vec<String> {
        vec![
            "daemonize no".into(),
            "protected-mode no".into(),
            format!("dir {}", directory.display()),
            format!("unixsocket {SOCKET}"),
            match &self.acl {
                Some(_) => format!("aclfile {USERS}"),
                None => administrator(),
            },
        ]
    }

    /// The file of users, with ours at its end.
    pub(crate) fn users(&self) -> Option<String> {
        let acl = self.acl.as_ref()?;
        Some(format!("{}\n{}\n", acl.trim_end(), administrator()))
    }
}

fn administrator() -> String {
    format!("user {ADMINISTRATOR} on nopass ~* &* +@all")
}

/// No snapshots, and replicas that follow at once rather than in five seconds.
const QUIET: &[&str] =
    &["save \"\"", "appendonly no", "repl-diskless-sync yes", "repl-diskless-sync-delay 0"];
