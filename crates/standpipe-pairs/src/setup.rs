//! The pools of a scene: their limits as a configuration file and as the referee knows them.

use std::fmt::Write;
use std::path::Path;

/// What a pool's one interesting limit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// At most so many calls in flight.
    Parallel(u64),
    /// At most so many requests in any stretch of so many microseconds.
    Window(u64, u64),
    /// So many requests per stretch, refilled continuously, and at most so many at once.
    Bucket(u64, u64, u64),
    /// At most so many requests in any day of the provider. The second figure is an instant at
    /// which a day begins, on the referee's clock.
    Day(u64, u64),
    /// Not limited.
    Absent,
}

/// A pool.
#[derive(Clone, Debug)]
pub struct Pool {
    /// Its name.
    pub name: &'static str,
    /// Its limit.
    pub rule: Rule,
    /// Whether the limit is enforced.
    pub enforced: bool,
    /// More lines of its table.
    pub lines: Vec<String>,
}

/// All pools, and what goes with them.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The version of the file.
    pub version: u64,
    /// The value of `store`.
    pub store: String,
    /// The value of `on_store_failure`.
    pub on_store_failure: &'static str,
    /// The pools.
    pub pools: Vec<Pool>,
    /// The tables of agents.
    pub agents: String,
    /// When days begin on [`DAY`].
    pub resets: String,
}

/// The pool whose calls need a slot.
pub const SLOTS: &str = "pairs/slots";
/// The pool with a rolling window.
pub const WINDOW: &str = "pairs/window";
/// The pool with a bucket.
pub const BUCKET: &str = "pairs/bucket";
/// A pool with slots that lies within [`PARENT`].
pub const CHILD: &str = "pairs/child";
/// The pool with a rolling window that every call on [`CHILD`] draws on too. No call names it.
pub const PARENT: &str = "pairs/parent";
/// The pool with a calendar window.
pub const DAY: &str = "pairs/day";
/// A pool in fair order on which every process always waits, in virtual time.
pub const FAIR: &str = "pairs/fair";
/// A pool with a long rolling window on which background is paced, in virtual time.
pub const LONG: &str = "pairs/long";
/// A pool with a calendar window on which background is paced, in virtual time.
pub const PACED: &str = "pairs/paced";
/// The length of a day.
pub const DAY_PERIOD: u64 = 86_400_000_000;
/// When a day begins in virtual time: when the quota of the first one is used up, and before a run
/// ends.
pub const DAY_BEGINS: u64 = 1_015_000_000;
/// When the day of [`PACED`] began in virtual time: shortly before a run.
pub const PACED_BEGINS: u64 = 990_000_000;
/// The pools that workers name.
pub const NAMED: [&str; 5] = [SLOTS, WINDOW, BUCKET, CHILD, DAY];
/// The weights of agents in fair order, by the number in their name.
pub const WEIGHTS: [u16; 3] = [1, 3, 6];
/// A pool with more slots than a ledger may have leases.
pub const CROWD: &str = "pairs/crowd";
/// A pool with one slot and a long line.
pub const LINE: &str = "pairs/line";
/// What the capped agent may use of each pool: so many requests in so many microseconds.
pub const CAP: (u64, u64) = (5, PERIOD);
/// The agent that gets a cap, as real processes and those in virtual time are named.
pub const CAPPED: [&str; 2] = ["w1", "p1"];
/// The period of all rates.
pub const PERIOD: u64 = 1_000_000;

/// The pool that a file of the store belongs to.
#[must_use]
pub fn pool_of(file: &Path) -> Option<&'static str> {
    let name = file.file_name()?.to_string_lossy().into_owned();
    let last = |pool: &str| pool.rsplit('/').next().is_some_and(|last| name.contains(last));
    let pools = [SLOTS, WINDOW, BUCKET, CHILD, PARENT, CROWD, LINE, DAY, FAIR, LONG, PACED];
    pools.into_iter().find(|pool| last(pool))
}

/// The weight of an agent of this name in fair order.
#[must_use]
pub fn weight(agent: &str) -> u16 {
    let number = agent.get(1..).and_then(|number| number.parse::<usize>().ok());
    number.and_then(|number| number.checked_sub(1)).map_or(1, |at| WEIGHTS[at % WEIGHTS.len()])
}

/// What the pools of a pair in virtual time have beside a limit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extra {
    /// Background is paced on long limits.
    Spread,
    /// Agents of different weights wait in fair order.
    Fair,
    /// A pool within another one.
    Within,
    /// All of it.
    All,
}

impl Extra {
    /// One of them by a number.
    #[must_use]
    pub const fn draw(number: u64) -> Self {
        match number % 7 {
            0 | 1 => Self::Spread,
            2 | 3 => Self::Fair,
            4 | 5 => Self::Within,
            _ => Self::All,
        }
    }

    /// Whether it comprises another one.
    #[must_use]
    pub fn has(self, other: Self) -> bool {
        self == other || self == Self::All
    }
}

/// Whether a call that names one pool draws on another one.
#[must_use]
pub fn draws_on(named: &str, pool: &str) -> bool {
    named == pool || named == CHILD && pool == PARENT
}

impl Setup {
    /// As every scene begins.
    #[must_use]
    pub fn new(store: String) -> Self {
        let pool = |name, rule| Pool { name, rule, enforced: true, lines: Vec::new() };
        Self {
            version: 1,
            store,
            on_store_failure: "closed",
            pools: vec![
                pool(SLOTS, Rule::Parallel(2)),
                pool(WINDOW, Rule::Window(20, PERIOD)),
                pool(BUCKET, Rule::Bucket(20, PERIOD, 5)),
                pool(CHILD, Rule::Parallel(2)),
                pool(PARENT, Rule::Window(12, PERIOD)),
                pool(DAY, Rule::Day(12, 0)),
            ],
            agents: String::new(),
            resets: "00:00 UTC".to_owned(),
        }
    }

    /// Lets days begin at this time of day, which lies so many microseconds ahead of `now`.
    pub fn days_begin(&mut self, resets: &str, now: u64, left: u64) {
        resets.clone_into(&mut self.resets);
        if let Some(pool) = self.pool_mut(DAY) {
            pool.rule = Rule::Day(12, now + left);
        }
    }

    /// The pools for processes in virtual time.
    #[must_use]
    pub fn in_virtual_time(extra: Extra) -> Self {
        let mut setup = Self::new(String::new());
        setup.pools.retain(|pool| [SLOTS, WINDOW, BUCKET].contains(&pool.name));
        let mut add = |name, rule| {
            setup.pools.push(Pool { name, rule, enforced: true, lines: Vec::new() });
        };
        add(DAY, Rule::Day(12, DAY_BEGINS));
        if extra.has(Extra::Within) {
            add(CHILD, Rule::Window(8, PERIOD));
            add(PARENT, Rule::Window(12, PERIOD));
        }
        if extra.has(Extra::Fair) {
            add(FAIR, Rule::Bucket(40, PERIOD, 1));
        }
        if extra.has(Extra::Spread) {
            add(LONG, Rule::Window(200, 600 * PERIOD));
            // One unit per second.
            add(PACED, Rule::Day(86_400, PACED_BEGINS));
        }
        setup
    }

    /// Whether agents have floors.
    #[must_use]
    pub fn has_floors(&self) -> bool {
        self.agents.contains("floor")
    }

    /// Whether pools are in fair order. Every change of the configuration changes the order, too.
    #[must_use]
    pub const fn is_fair(&self) -> bool {
        self.version % 2 == 1
    }

    /// Whether an agent has a cap.
    #[must_use]
    pub fn has_cap(&self) -> bool {
        self.agents.contains("cap")
    }

    /// The pool of that name.
    pub fn pool_mut(&mut self, name: &str) -> Option<&mut Pool> {
        self.pools.iter_mut().find(|pool| pool.name == name)
    }

    /// As a configuration file. Every pool has a wide second limit, so that none is without limits
    /// when the other one is removed.
    #[must_use]
    pub fn toml(&self) -> String {
        let mut text = format!("version = {}\nstore = \"{}\"\n", self.version, self.store);
        for pool in &self.pools {
            let _ = write!(text, "\n[pool.\"{}\"]\nlease_ttl = \"2s\"\nmargin = 0\n", pool.name);
            let _ = writeln!(text, "on_store_failure = \"{}\"", self.on_store_failure);
            let _ = writeln!(text, "enforce = {}", pool.enforced);
            let order = if self.is_fair() { "fair" } else { "arrival" };
            let _ = writeln!(text, "order = \"{order}\"");
            let _ = match pool.rule {
                Rule::Parallel(amount) => writeln!(text, "parallel = {amount}"),
                Rule::Window(amount, period) => writeln!(
                    text,
                    "parallel = 64\nrequests = {{ rate = \"{amount}/{}ms\", kind = \"window\" }}",
                    period / 1_000
                ),
                Rule::Bucket(amount, period, burst) => writeln!(
                    text,
                    "parallel = 64\nrequests = {{ rate = \"{amount}/{}ms\", kind = \"bucket\", \
                     burst = {burst} }}",
                    period / 1_000
                ),
                Rule::Day(amount, _) => writeln!(
                    text,
                    "parallel = 64\nrequests = {{ rate = \"{amount}/d\", resets = \"{}\" }}",
                    self.resets
                ),
                Rule::Absent => writeln!(text, "parallel = 64"),
            };
            if pool.name == CHILD {
                let _ = writeln!(text, "within = \"{PARENT}\"");
            }
            for line in &pool.lines {
                let _ = writeln!(text, "{line}");
            }
        }
        // The referee does not judge these: only processes beyond a bound use them.
        for (name, slots) in [(CROWD, 100_000), (LINE, 1)] {
            let _ = write!(text, "\n[pool.\"{name}\"]\nparallel = {slots}\n");
        }
        text.push_str(&self.agents);
        // Agents that no change of the limits names.
        for name in ["w3", "w5"] {
            let _ = write!(text, "\n[agent.{name}]\nweight = {}\n", weight(name));
        }
        text
    }

    /// What a probe takes to see that nothing leaked: `name=amount` for every limited pool.
    #[must_use]
    pub fn capacity(&self) -> String {
        let whole = self.pools.iter().filter_map(|pool| {
            let amount = match pool.rule {
                Rule::Parallel(amount) | Rule::Window(amount, _) => amount,
                Rule::Bucket(_, _, burst) => burst,
                // A day is too long to wait for.
                Rule::Day(..) | Rule::Absent => return None,
            };
            Some(format!("{}={amount}", pool.name))
        });
        whole.collect::<Vec<_>>().join(",")
    }
}
