//! A pool as it is, looked at from the side: no file has its say, and the dead are not buried.

use std::collections::BTreeSet;
use std::sync::Arc;

use standpipe_core::{Instant, State};
use standpipe_store::{PoolName, Store};

use super::Shared;
use crate::dead::Suspects;
use crate::error::Error;
use crate::moment::{Moment, Now};
use crate::status::PoolStatus;

/// A pool as it is.
#[derive(Clone, Debug)]
pub(crate) struct Glance {
    pub(crate) status: PoolStatus,
    /// How long ago it was last used or configured; none if it never was.
    pub(crate) unused_ms: Option<u64>,
    /// How many sessions and owners of leases there are dead and not buried.
    pub(crate) dead: usize,
    /// How many living processes were active on it in the last two minutes, or hold something.
    pub(crate) processes: usize,
    /// The store's clock, where it began near the calendar.
    pub(crate) clock: Moment,
}

impl Shared {
    /// Looks at a pool that there is.
    pub(crate) fn glance(self: &Arc<Self>, pool: &PoolName) -> Result<Glance, Error> {
        let desk = self.desk(pool)?;
        let store = &**self.store();
        self.read(&desk, |state, now, _| Glance {
            status: PoolStatus::of(pool, state, now, store),
            unused_ms: Some(state.facts().used)
                .filter(|used| *used > Instant(0))
                .map(|used| now.millis_since(used)),
            dead: Suspects::of(state.facts()).dead(store, now.store).len(),
            processes: processes(state, store),
            clock: clock(now),
        })
    }
}

fn processes(state: &State, store: &dyn Store) -> usize {
    let sessions = state.facts().sessions.iter().filter(|(_, session)| !session.ended);
    let living = sessions.filter_map(|(session, _)| store.process_of(*session));
    let others = living.map(|process| process.pid).filter(|pid| *pid != std::process::id());
    others.collect::<BTreeSet<u32>>().len()
}

const fn clock(now: &Now) -> Moment {
    Moment { millis: now.store.0 / 1_000 }
}
