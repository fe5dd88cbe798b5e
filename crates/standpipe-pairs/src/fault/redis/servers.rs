//! The servers of a scene, and the two ways that lead clients to them.
//!
//! All clients use the first way, except in a split brain, where some use the second one. Otherwise
//! both lead to the server that serves.

use std::time::Duration;

use standpipe_servers::{Gate, Options, Server};

use crate::record::now;

/// The server that serves, the one that follows it, and the ways there.
#[derive(Debug)]
pub struct Servers {
    serving: Server,
    follower: Option<Follower>,
    /// In a split brain, the other one that takes writes.
    promoted: Option<Follower>,
    /// Links of servers that were promoted. One that restarts looks for the server it followed, and
    /// must not find another one in its place.
    links: Vec<Gate>,
    first: Gate,
    second: Gate,
    network: Network,
    hung: bool,
    options: Options,
    /// By how many milliseconds the clock of the servers is ahead.
    clock: i64,
    /// How many servers took writes at once.
    pub(super) sides: u64,
    /// Processes that joined besides the workers of the scene.
    pub(super) more_processes: u64,
    /// What a pool does while its store is unavailable.
    pub on_failure: &'static str,
}

/// A server that follows another one over a link of its own.
#[derive(Debug)]
struct Follower {
    server: Server,
    link: Gate,
}

/// What the network between clients and servers is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// As it should be.
    Good,
    /// Cut.
    Cut,
    /// Nothing passes, connections stay.
    Stalled,
    /// Every answer is late.
    Lagging,
    /// Answers arrive byte by byte.
    Trickling,
}

impl Servers {
    /// Starts both servers.
    #[must_use]
    pub fn start(on_failure: &'static str) -> Self {
        let options = Options { persistent: true, ..Options::default() };
        let serving = Server::start_with(options.clone());
        let follower = Some(Follower::of(&serving, &options));
        let (first, second) = (Gate::before(&serving), Gate::before(&serving));
        Self {
            serving,
            follower,
            promoted: None,
            links: Vec::new(),
            first,
            second,
            network: Network::Good,
            hung: false,
            options,
            clock: 0,
            sides: 1,
            more_processes: 0,
            on_failure,
        }
    }

    /// Replaces both servers, before they are used, by others with these options.
    pub(super) fn replace(&mut self, change: impl FnOnce(&mut Options)) {
        change(&mut self.options);
        self.serving = Server::start_with(self.options.clone());
        self.follower = Some(Follower::of(&self.serving, &self.options));
        self.first.lead_to(&self.serving);
        self.second.lead_to(&self.serving);
    }

    /// How clients name it.
    #[must_use]
    pub fn url(&self) -> String {
        self.first.url()
    }

    /// How clients elsewhere name it.
    #[must_use]
    pub fn second_url(&self) -> String {
        self.second.url()
    }

    /// Runs a command on the server that serves. An error reply is part of the fault.
    pub(super) fn run(&self, words: &[&str]) {
        let _reply = self.ask(words);
    }

    /// The same with its answer. A server that hangs continues for that moment.
    pub(super) fn ask(&self, words: &[&str]) -> Result<String, String> {
        if self.hung {
            self.serving.resume();
        }
        let answer = self.serving.try_run(words);
        if self.hung {
            self.serving.pause();
        }
        answer
    }

    /// Ends a demand for more replicas than there are.
    pub(super) fn any_replicas(&self) {
        let least = if self.is_split() && !self.options.args.is_empty() { "1" } else { "0" };
        self.run(&["CONFIG", "SET", "min-replicas-to-write", least]);
    }

    /// The directory of the server that serves.
    pub(super) fn directory(&self) -> std::path::PathBuf {
        self.serving.directory().to_owned()
    }

    /// The server that serves answers nothing, or answers again.
    pub(super) fn hang(&mut self, hung: bool) {
        match hung {
            true => self.serving.pause(),
            false => self.serving.resume(),
        }
        self.hung = hung;
    }

    /// Sets the state of the network.
    pub(super) fn network(&mut self, network: Network) {
        self.network = network;
        for gate in [&self.first, &self.second] {
            gate.heal();
            match network {
                Network::Good => {}
                Network::Cut => gate.cut(),
                Network::Stalled => gate.stall(),
                Network::Lagging => gate.lag(Duration::from_millis(10), Duration::from_millis(200)),
                Network::Trickling => gate.trickle(Duration::from_micros(50)),
            }
        }
    }

    /// Ends that state of the network, unless another one has replaced it.
    pub(super) fn network_ends(&mut self, network: Network) {
        if self.network == network {
            self.network(Network::Good);
        }
    }

    /// The next answers are lost.
    pub(super) fn lose_answers(&self, count: usize) {
        self.first.lose_next_answers(count);
    }

    /// Moves the clock of every server by so many milliseconds.
    pub(super) fn move_clock(&mut self, by: i64) {
        self.clock += by;
        let others = self.follower.iter().chain(&self.promoted).map(|other| &other.server);
        others.chain([&self.serving]).for_each(|server| server.set_clock(&self.offset()));
    }

    fn offset(&self) -> String {
        let (sign, length) = (if self.clock < 0 { '-' } else { '+' }, self.clock.unsigned_abs());
        format!("{sign}{}.{:03}", length / 1_000, length % 1_000)
    }

    /// The server that serves is killed and starts again.
    pub(super) fn restart(&mut self, keeps_data: bool) {
        self.serving.kill();
        self.hung = false;
        if !keeps_data {
            let _none = std::fs::remove_dir_all(self.serving.directory().join("appendonlydir"));
        }
        self.serving.start_again();
        // Its configuration may still name the server that it followed.
        self.run(&["REPLICAOF", "NO", "ONE"]);
    }

    /// Whether two servers take writes.
    pub(super) const fn is_split(&self) -> bool {
        self.promoted.is_some()
    }

    /// The follower takes over, with all that the other server had, or without its last writes.
    /// Returns whether it had all.
    pub(super) fn fail_over(&mut self, lossy: bool) -> Result<bool, String> {
        self.hang(false);
        let follower = self.take_follower()?;
        let whole = if lossy {
            follower.link.stall();
            std::thread::sleep(Duration::from_millis(120));
            false
        } else {
            self.cut_ways();
            follower.is_in_step(&self.serving)
        };
        self.cut_ways();
        self.serving.kill();
        follower.promote()?;
        self.serving = follower.server;
        self.links.push(follower.link);
        self.open_ways();
        Ok(whole)
    }

    /// Two servers take writes from now on, and the second way leads to the other one. With
    /// `min-replicas-to-write` the first one refuses them by then.
    pub(super) fn split(&mut self, guarded: bool) -> Result<(), String> {
        self.hang(false);
        let follower = self.take_follower()?;
        if guarded {
            self.run(&["CONFIG", "SET", "min-replicas-to-write", "1"]);
            self.cut_ways();
            follower.is_in_step(&self.serving);
            // The server sees at once that no replica follows it, and refuses writes.
            follower.link.cut();
            self.wait_for_refusal()?;
        } else {
            follower.link.stall();
            self.second.cut();
        }
        follower.promote()?;
        self.second.lead_to(&follower.server);
        self.promoted = Some(follower);
        self.open_ways();
        Ok(())
    }

    fn wait_for_refusal(&self) -> Result<(), String> {
        let refuses = until(8, || self.ask(&["SET", "standpipe:probe", "1"]).is_err());
        refuses.then_some(()).ok_or_else(|| "the cut-off server takes writes".to_owned())
    }

    /// The promoted server is the only one.
    pub(super) fn unite(&mut self) {
        let Some(promoted) = self.promoted.take() else { return };
        self.cut_ways();
        self.serving.kill();
        self.hung = false;
        self.serving = promoted.server;
        self.links.push(promoted.link);
        self.open_ways();
    }

    fn cut_ways(&self) {
        self.first.cut();
        self.second.cut();
    }

    /// Both ways lead where they should, with the network as it is.
    fn open_ways(&mut self) {
        self.first.lead_to(&self.serving);
        self.second.lead_to(self.promoted.as_ref().map_or(&self.serving, |other| &other.server));
        self.network(self.network);
    }

    /// The server that follows; a fresh one if the last one was promoted.
    fn take_follower(&mut self) -> Result<Follower, String> {
        if let Some(follower) = self.follower.take() {
            return Ok(follower);
        }
        let follower = Follower::of(&self.serving, &self.options);
        if self.options.movable_clock {
            follower.server.set_clock(&self.offset());
        }
        match follower.is_in_step(&self.serving) {
            true => Ok(follower),
            false => Err("a fresh replica cannot follow this server".to_owned()),
        }
    }
}

impl Follower {
    fn of(server: &Server, options: &Options) -> Self {
        let link = Gate::before(server);
        let options = Options { replica_of: Some(link.port()), ..options.clone() };
        let follower = Self { server: Server::start_with(options), link };
        follower.is_in_step(server);
        follower
    }

    /// Waits for a moment until it has all that the other one has. Returns whether it does.
    fn is_in_step(&self, with: &Server) -> bool {
        until(4, || {
            let up = self.server.info("master_link_status").is_some_and(|status| status == "up");
            up && self.server.info("slave_repl_offset") == with.info("master_repl_offset")
        })
    }

    /// It takes writes, although no replica follows it.
    fn promote(&self) -> Result<(), String> {
        self.server.try_run(&["CONFIG", "SET", "min-replicas-to-write", "0"])?;
        self.server.try_run(&["REPLICAOF", "NO", "ONE"])?;
        Ok(())
    }
}

/// Asks until it holds. Returns whether it did within so many seconds.
fn until(seconds: u64, mut holds: impl FnMut() -> bool) -> bool {
    let bound = now() + seconds * 1_000_000;
    while now() < bound {
        if holds() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    false
}
