//! The first use of a pool after a reboot: leases and tickets end, usage is carried over.

use std::sync::Arc;

use standpipe_core::{Action, Facts, LeaseOwner};
use standpipe_store::engine::entry_bodies;
use standpipe_store::{Replica, StoreError, entry};

use crate::file::head::Head;
use crate::file::pool_file::{CHAIN_SIZE, PoolFile};
use crate::log::FileLog;
use crate::testing::failpoint;

impl FileLog {
    /// Appends the end of all sessions, leases and tickets, and gives the pool a clock origin for
    /// this boot.
    ///
    /// At the bounds of the ledger the log has no room for all these events at once, so they are
    /// written in parts, with snapshots in between. Only the last part changes the origin: if the
    /// process is killed before it, the next one continues.
    pub(crate) fn carry_over_reboot(
        &self,
        file: &PoolFile,
        mut head: Arc<Head>,
        mut replica: Replica,
    ) -> Result<Arc<Head>, StoreError> {
        failpoint::reach("reboot detected");
        let origin = self.store.time.origin_after_reboot(head.stamp, head.wall);
        let bodies = entry_bodies(end_events(replica.state().facts()));
        let mut rest = bodies.as_slice();
        loop {
            let (part, behind) = rest.split_at(count_that_fits(rest, head.log_size / 2));
            let begin = head.snapshot().map_or(head.base, |slot| slot.taken_at);
            let length = head.end.bytes - begin.bytes + total_size(part);
            if length > head.log_size {
                head = self.store_snapshot(file, &head, head.end, &replica.snapshot())?;
            }
            if behind.is_empty() {
                // After a reboot the wall clock is trusted again, even if it went back.
                let wall = head.wall.min(self.store.time.wall());
                let last = Head { origin, wall, ..Head::clone(&head) };
                return self.append_entries(file, &last, part);
            }
            let now = self.store.time.now(origin);
            head = self.append_entries_at(file, &head, part, now)?;
            rest = behind;
            replica = self.replay(file, &head)?.map_err(StoreError::damaged)?;
        }
    }
}

/// Returns the events for everything that ends with the machine: sessions with all they hold,
/// leases that only a ttl ends, and tickets without a session.
fn end_events(facts: &Facts) -> Vec<Action> {
    let living = facts.sessions.iter().filter(|(_, known)| !known.ended);
    let sessions = living.map(|(session, _)| Action::SessionEnded { session: *session });
    let by_ttl =
        facts.leases.iter().filter(|(_, lease)| matches!(lease.owner, LeaseOwner::Ttl { .. }));
    let leases = by_ttl.map(|(lease, _)| Action::OwnerEnded { lease: *lease });
    let waiting = facts.tickets.values().filter(|ticket| ticket.session.is_none());
    let tickets = waiting.map(|ticket| Action::Cancel { lease: ticket.key });
    sessions.chain(leases).chain(tickets).collect()
}

/// Returns how many bodies fit into `limit` bytes of the log, at least one.
fn count_that_fits(bodies: &[Vec<u8>], limit: u64) -> usize {
    let mut used = 0;
    let fits = |body: &&Vec<u8>| {
        used += max_record_size(body);
        used <= limit
    };
    bodies.iter().take_while(fits).count().max(1).min(bodies.len())
}

fn total_size(bodies: &[Vec<u8>]) -> u64 {
    bodies.iter().map(|body| max_record_size(body)).sum()
}

/// Returns the most bytes a body can take in the log.
const fn max_record_size(body: &[u8]) -> u64 {
    (body.len() + 3 + entry::STAMP_AND_CHECKSUM + CHAIN_SIZE) as u64
}
