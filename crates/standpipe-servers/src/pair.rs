//! A master and a replica, and the link between them, which can be held back.

use crate::gate::Gate;
use crate::options::Options;
use crate::server::Server;
use crate::until::{PATIENCE, until};

/// Two servers, of which one follows the other. The fields keep their names after a failover: the
/// one that serves then is `replica`, and `master` is dead and can be started again.
#[derive(Debug)]
pub struct Pair {
    /// The one that is written to.
    pub master: Server,
    /// The one that follows.
    pub replica: Server,
    link: Gate,
}

impl Pair {
    /// Two servers in step.
    #[must_use]
    pub fn start() -> Self {
        Self::start_with(&Options::default())
    }

    /// The same with options for both. Neither can have TLS or be in a namespace.
    #[must_use]
    pub fn start_with(options: &Options) -> Self {
        let plain = !options.tls && options.namespace.is_none() && options.replica_of.is_none();
        assert!(plain, "the replica follows over a plain connection of this machine");
        let master = Server::start_with(options.clone());
        let link = Gate::before(&master);
        let follows = Options { replica_of: Some(link.port()), ..options.clone() };
        let replica = Server::start_with(follows);
        let pair = Self { master, replica, link };
        pair.in_step();
        pair
    }

    /// The replica receives nothing any more, and both believe that the link is up: what is written
    /// from now on stays with the master alone.
    pub fn hold_back(&self) {
        self.link.stall();
    }

    /// The replica receives again, also what it missed.
    pub fn let_go(&self) {
        self.link.heal();
    }

    /// Waits until the replica has all that the master has.
    pub fn in_step(&self) {
        let in_step = until(PATIENCE, || {
            let up = self.replica.info("master_link_status")? == "up";
            let has = self.replica.info("slave_repl_offset")?;
            (up && has == self.master.info("master_repl_offset")?).then_some(())
        });
        if in_step.is_none() {
            let (master, replica) = (self.master.log(), self.replica.log());
            panic!("the replica does not follow\nmaster:\n{master}\nreplica:\n{replica}");
        }
    }

    /// The master dies at once, and the replica takes its place with what it has: nothing that was
    /// written since [`Pair::hold_back`].
    pub fn fail_over(&mut self) {
        self.master.kill();
        self.replica.run(&["REPLICAOF", "NO", "ONE"]);
        assert_eq!(self.replica.info("role").as_deref(), Some("master"));
    }
}
