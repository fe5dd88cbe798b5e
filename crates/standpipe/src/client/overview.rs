//! The overview of a pool for `doctor` and `audit`.
//!
//! It changes nothing: it neither sends the file's configuration nor reports dead sessions.

use std::collections::BTreeSet;
use std::sync::Arc;

use standpipe_core::{Instant, State};
use standpipe_observe::status::PoolOverview;
use standpipe_store::{PoolName, Store};

use super::StoreClient;
use crate::error::Error;
use crate::maintenance::liveness::LivenessCheck;
use crate::moment::{Now, Timestamp};
use crate::status::PoolStatus;

impl StoreClient {
    /// Returns the overview of a pool that exists.
    pub(crate) fn overview(self: &Arc<Self>, pool: &PoolName) -> Result<PoolOverview, Error> {
        let client = self.client(pool)?;
        let store = &**self.store();
        self.read(&client, |state, now, _| PoolOverview {
            status: PoolStatus::of(pool, state, now, &|id| store.process_of(id)),
            config: state.facts().config.clone(),
            unused_ms: Some(state.facts().used)
                .filter(|used| *used > Instant(0))
                .map(|used| now.millis_since(used)),
            dead: LivenessCheck::of(state.facts()).dead(store, now.store).len(),
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

const fn clock(now: &Now) -> Timestamp {
    Timestamp { millis: now.store.0 / 1_000 }
}
