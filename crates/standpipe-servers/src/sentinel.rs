//! A pair that three sentinels watch: when the master is gone they promote the replica.

use crate::options::{Flavour, Options};
use crate::server::{Role, Server};
use crate::until::{PATIENCE, until};

/// A master, its replica, and three that watch. The fields keep their names after a failover.
#[derive(Debug)]
pub struct Sentinel {
    /// The one that is written to.
    pub master: Server,
    /// The one that follows.
    pub replica: Server,
    /// Those that watch.
    pub sentinels: Vec<Server>,
}

/// What the sentinels call the master.
const NAME: &str = "mymaster";

impl Sentinel {
    /// All five, when the sentinels know each other and the replica follows.
    #[must_use]
    pub fn start() -> Self {
        Self::start_with(&Options::default())
    }

    /// The same with options for the master and the replica.
    #[must_use]
    pub fn start_with(options: &Options) -> Self {
        assert!(options.flavour != Flavour::Old, "sentinels of Redis 6.2 cannot be hurried");
        let master = Server::start_with(options.clone());
        let follows = Options { replica_of: Some(master.port()), ..options.clone() };
        let replica = Server::start_with(follows);
        let watch = role(master.port());
        let alone = Options { flavour: options.flavour, ..Options::default() };
        let sentinels = (0..3).map(|_| Server::start_as(alone.clone(), &watch)).collect();
        let all = Self { master, replica, sentinels };
        for sentinel in &all.sentinels {
            // They look for each other every two seconds, and for replicas every ten.
            let sooner = ["publish-period", "100", "info-period", "200", "ask-period", "100"];
            sentinel.run(&[&["SENTINEL", "DEBUG"], &sooner[..]].concat());
        }
        all.wait("see all", |sentinel| {
            let fields = sentinel.run(&["SENTINEL", "MASTER", NAME]);
            let sees = field(&fields, "num-other-sentinels") == Some("2")
                && field(&fields, "num-slaves") == Some("1")
                && field(&fields, "flags") == Some("master");
            sees && all.replica.info("master_link_status").as_deref() == Some("up")
        });
        all
    }

    /// How a client names it: `redis+sentinel://127.0.0.1:1,127.0.0.1:2,127.0.0.1:3/mymaster`.
    #[must_use]
    pub fn url(&self) -> String {
        let addresses: Vec<String> = self.sentinels.iter().map(Server::address).collect();
        format!("redis+sentinel://{}/{NAME}", addresses.join(","))
    }

    /// The master dies at once; returns when every sentinel names the replica, which serves.
    pub fn fail_over(&mut self) {
        self.master.kill();
        let promoted = format!("127.0.0.1\n{}", self.replica.port());
        self.wait("promote the replica", |sentinel| {
            let named = sentinel.run(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME]);
            named == promoted && self.replica.info("role").as_deref() == Some("master")
        });
    }

    fn wait(&self, what: &str, holds: impl Fn(&Server) -> bool) {
        // Twice as long: an election may have to be repeated.
        let all = || self.sentinels.iter().all(&holds).then_some(());
        if until(2 * PATIENCE, all).is_none() {
            let logs: Vec<String> = self.sentinels.iter().map(Server::log).collect();
            panic!("the sentinels do not {what}:\n{}", logs.join("\n"));
        }
    }
}

fn role(master: u16) -> Role {
    let lines = [
        format!("sentinel monitor {NAME} 127.0.0.1 {master} 2"),
        // Short enough for a failover in a test, long enough for a machine that is busy.
        format!("sentinel down-after-milliseconds {NAME} 700"),
        format!("sentinel failover-timeout {NAME} 3000"),
    ];
    Role { sentinel: true, lines: lines.into() }
}

/// The value after a name, in a list of both.
fn field<'list>(list: &'list str, name: &str) -> Option<&'list str> {
    let mut lines = list.lines();
    while let (Some(found), Some(value)) = (lines.next(), lines.next()) {
        if found == name {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_not_taken_for_a_name() {
        let list = "name\nflags\nflags\nmaster";
        assert_eq!(field(list, "flags"), Some("master"));
        assert_eq!(field(list, "master"), None);
    }
}
