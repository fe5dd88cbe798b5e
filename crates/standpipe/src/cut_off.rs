//! A pool whose store is away, decided on in this process until it is back.
//!
//! It is a small ledger in memory behind a desk of its own. With `share` its limits are those of
//! the pool divided by the sessions that were last seen there; with `open` it only counts. When the
//! store answers again, what was admitted here is told to it as recovered: leases in flight are put
//! back, above the limit if need be, and what was settled counts there as used now.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant as Local};

use standpipe_core::{Action, Configure, Limit, PoolConfig, Rule, Source, Span, State};
use standpipe_store::member::random_session;
use standpipe_store::{Clock, Log, Member, MemoryLog};

use crate::config::{Settings, StoreFailure};
use crate::desk::{Counter, Desk};
use crate::journal::What;
use crate::shared::Shared;
use crate::status::Away;

/// How long a store may not answer before it counts as away.
pub(crate) const AWAY: Duration = Duration::from_secs(1);

/// A pool that is decided on here.
pub(crate) struct CutOff {
    pub(crate) desk: Arc<Desk>,
    pub(crate) since: Local,
    pub(crate) mode: StoreFailure,
    /// Among how many the limits are divided.
    pub(crate) among: u64,
}

impl CutOff {
    /// Where a pool is decided on while its store is away; none if it is to wait for it.
    pub(crate) fn of(
        shared: &Arc<Shared>,
        home: &Arc<Desk>,
        counter: &Counter,
        settings: &Settings,
    ) -> Option<Arc<Self>> {
        let mode = settings.pools.get(home.pool())?.on_store_failure;
        let away = counter.silent_since().is_some_and(|since| since.elapsed() >= AWAY);
        if mode == StoreFailure::Closed || !away {
            return None;
        }
        let mut present = home.lock_cut_off();
        if present.is_none() {
            *present = Self::begin(shared, home, counter, settings, mode).map(Arc::new);
        }
        present.clone()
    }

    fn begin(
        shared: &Arc<Shared>,
        home: &Arc<Desk>,
        counter: &Counter,
        settings: &Settings,
        mode: StoreFailure,
    ) -> Option<Self> {
        let replica = counter.member.replica();
        let state = replica.state();
        let among = sessions(state);
        if state.facts().terminal.is_some() || mode == StoreFailure::Share && among == 0 {
            return None;
        }
        let config = settings.pool_config(home.pool())?;
        let config = match mode {
            StoreFailure::Share => shared_out(config, among)?,
            _ => PoolConfig { enforce: false, ..config },
        };
        // The ledger's clock goes on where the store's was last heard of.
        let (began, from) = (Local::now(), replica.now());
        let clock: Clock = Arc::new(move || {
            from + Span(u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX))
        });
        let log: Box<dyn Log + Send> = Box::new(MemoryLog::new(clock));
        let mut member = Member::new(log, random_session);
        let pause = state.facts().pause.map(|until| until.since(from));
        let configure = Configure { source: Source::Change, config };
        let mut actions = vec![Action::Configure(Box::new(configure))];
        actions.extend(pause.map(|length| Action::Pause { length }));
        member.submit(actions).ok()?;
        let desk = Desk::standing_in(home, member, shared.pen());
        let what = match mode {
            StoreFailure::Share => format!(
                "the store is away; each of {among} processes admits its share of the limits"
            ),
            _ => "the store is away; calls are admitted without limit".to_owned(),
        };
        shared.journal().note(home.pool(), What::Store { what });
        // The keeper sees when the store is back.
        shared.owes();
        Some(Self { desk: Arc::new(desk), since: began, mode, among: among.max(1) })
    }

    pub(crate) fn status(&self) -> Away {
        Away {
            for_ms: u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX),
            mode: if self.mode == StoreFailure::Share { "share" } else { "open" },
            among: self.among,
        }
    }

    /// The store is back: what was decided here is told to it.
    pub(crate) fn end(&self, shared: &Shared, home: &Desk, counter: &mut Counter) {
        let mut own = self.desk.counter();
        let mut actions = own.member.recollect();
        actions.retain(|action| !matches!(action, Action::Configure(_)));
        let count = actions.iter().filter(|action| is_call(action)).count();
        *home.lock_cut_off() = None;
        self.desk.moves();
        own.ring_all();
        drop(own);
        counter.tell_all(actions);
        let seconds = self.since.elapsed().as_secs();
        let what = format!(
            "the store is back after {seconds} s; {count} call(s) that were admitted meanwhile \
             count there from now on"
        );
        shared.journal().note(home.pool(), What::Store { what });
    }
}

fn is_call(action: &Action) -> bool {
    matches!(action, Action::Recovered(standpipe_core::Recovered::Reserve { .. }))
}

/// How many sessions were alive when the store was last heard of.
fn sessions(state: &State) -> u64 {
    let living = state.facts().sessions.values().filter(|session| !session.ended);
    living.count() as u64
}

/// A share of every limit; none if it comes to nothing. What is kept for single agents is not
/// divided: it would be too little for anybody.
fn shared_out(mut config: PoolConfig, among: u64) -> Option<PoolConfig> {
    for limit in &mut config.limits {
        *limit = share_of(limit, among)?;
    }
    for rule in &mut config.agents {
        rule.floors.clear();
    }
    Some(config)
}

fn share_of(limit: &Limit, among: u64) -> Option<Limit> {
    let part = |whole: u64| Some(whole / among).filter(|part| *part > 0);
    let rule = match limit.rule.clone() {
        Rule::Window { unit, amount, period } => {
            Rule::Window { unit, amount: part(amount)?, period }
        }
        Rule::Bucket { unit, amount, period, burst } => {
            Rule::Bucket { unit, amount: part(amount)?, period, burst: part(burst)? }
        }
        Rule::Parallel { amount } => Rule::Parallel { amount: part(amount)? },
    };
    Some(Limit { rule, ..limit.clone() })
}

impl fmt::Debug for CutOff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CutOff").field("mode", &self.mode).finish_non_exhaustive()
    }
}
