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
/// The pool with a calendar window, for processes in virtual time.
pub const DAY: &str = "pairs/day";
/// The length of a day.
pub const DAY_PERIOD: u64 = 86_400_000_000;
/// When a day begins in virtual time: when the quota of the first one is used up, and before a run
/// ends.
pub const DAY_BEGINS: u64 = 1_015_000_000;
/// The pools that workers name.
pub const NAMED: [&str; 4] = [SLOTS, WINDOW, BUCKET, CHILD];
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
    [SLOTS, WINDOW, BUCKET, CHILD, PARENT, CROWD, LINE, DAY].into_iter().find(|pool| last(pool))
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
            ],
            agents: String::new(),
        }
    }

    /// The pools that lie within no other one, for processes in virtual time: those take part in
    /// the log of one pool at a time and know no others.
    #[must_use]
    pub fn of_single_pools() -> Self {
        let mut setup = Self::new(String::new());
        setup.pools.retain(|pool| ![CHILD, PARENT].contains(&pool.name));
        let (rule, lines) = (Rule::Day(12, DAY_BEGINS), Vec::new());
        setup.pools.push(Pool { name: DAY, rule, enforced: true, lines });
        setup
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
                    "parallel = 64\nrequests = {{ rate = \"{amount}/d\", resets = \"00:00 UTC\" }}"
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
