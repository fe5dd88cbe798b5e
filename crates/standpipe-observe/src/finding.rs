//! What a look at the pools found, and what to do about it. Plain values to print or to serialise.

use serde::Serialize;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// All is well.
    Ok,
    /// Worth knowing.
    Note,
    /// It will cost something: waits, refusals, units.
    Warning,
    /// It does not work like this.
    Failure,
}

impl Level {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Failure => "failure",
        }
    }
}

/// One thing that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// How much it matters.
    pub level: Level,
    /// What was looked at, in a word or two: `contention`, `store`.
    pub check: &'static str,
    /// The pool it is about, if it is about one.
    pub pool: Option<String>,
    /// The agent it is about, if it is about one.
    pub agent: Option<String>,
    /// What was found.
    pub what: String,
    /// What to do about it; none when there is nothing to do.
    pub remedy: Option<String>,
}

impl Finding {
    pub(crate) fn ok(check: &'static str, what: impl Into<String>) -> Self {
        Self::new(Level::Ok, check, what)
    }

    pub(crate) fn note(check: &'static str, what: impl Into<String>) -> Self {
        Self::new(Level::Note, check, what)
    }

    pub(crate) fn warning(check: &'static str, what: impl Into<String>) -> Self {
        Self::new(Level::Warning, check, what)
    }

    pub(crate) fn failure(check: &'static str, what: impl Into<String>) -> Self {
        Self::new(Level::Failure, check, what)
    }

    fn new(level: Level, check: &'static str, what: impl Into<String>) -> Self {
        Self { level, check, pool: None, agent: None, what: what.into(), remedy: None }
    }

    /// What to do about it.
    pub(crate) fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    /// The pool it is about.
    pub(crate) fn on(mut self, pool: impl Into<String>) -> Self {
        self.pool = Some(pool.into());
        self
    }

    /// The agent it is about.
    pub(crate) fn by(mut self, agent: impl Into<String>) -> Self {
        self.agent = Some(agent.into());
        self
    }
}

/// What to do about refusals on a pool that limits no rate.
pub(crate) const UNLIMITED: &str = "no rate of this pool is known: state the provider's in \
                                    standpipe.toml, for example requests = \"1000/min\"";

/// What to do about refusals of calls at once: no rate prevents them.
pub(crate) const TOO_MANY_AT_ONCE: &str = "the provider accepts fewer calls at once: state or \
                                           lower `parallel` in standpipe.toml";

/// What to do about retries that the budget refuses. Clients that retry on their own are blamed
/// only if one was seen.
pub(crate) const fn retry_budget(client_retries: bool) -> &'static str {
    if client_retries {
        "find out why the calls fail, and switch off the retries of the SDK (`max_retries=0`)"
    } else {
        "find out why the calls fail: Standpipe retries refused calls itself, within \
         `retry_budget` in standpipe.toml"
    }
}

/// So many of a thing: `1 call`, `3 calls`.
pub(crate) fn counted(count: u64, thing: &str) -> String {
    match count {
        1 => format!("1 {thing}"),
        _ => format!("{count} {thing}s"),
    }
}
