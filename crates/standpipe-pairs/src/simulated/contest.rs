//! The pool in fair order: every process always has several tickets there.

use super::calls::{Ask, Reply};
use super::{PATIENT, World};
use crate::setup::FAIR;

/// How many tickets each process has.
const TICKETS: usize = 3;

impl World {
    /// Every process that runs takes what is due to it, and asks for more.
    pub(super) fn contend(&mut self) -> Result<(), String> {
        let Some(pool) = self.pool_number(FAIR) else { return Ok(()) };
        for at in 0..self.processes.len() {
            if self.processes[at].stopped {
                continue;
            }
            self.claim_contest(at, pool)?;
            for _ in self.processes[at].contest.len()..TICKETS {
                let call = self.record(at, Ask { timeout: PATIENT, ..Ask::of(pool) });
                let reply = self.reserve(at, pool, None, call)?;
                self.contested(at, pool, call, reply)?;
            }
        }
        Ok(())
    }

    /// Takes what is due, without asking for more.
    pub(super) fn end_contest(&mut self, at: usize) -> Result<(), String> {
        let Some(pool) = self.pool_number(FAIR) else { return Ok(()) };
        self.claim_contest(at, pool)
    }

    /// Claims the tickets of a process in their order, up to the first that still waits.
    fn claim_contest(&mut self, at: usize, pool: usize) -> Result<(), String> {
        while let Some((ticket, call)) = self.processes[at].contest.pop_front() {
            let reply = self.reserve(at, pool, Some(ticket), call)?;
            if let Reply::Waits(ticket) = reply {
                self.processes[at].contest.push_front((ticket, call));
                break;
            }
            self.contested(at, pool, call, reply)?;
        }
        Ok(())
    }

    fn contested(
        &mut self,
        at: usize,
        pool: usize,
        call: usize,
        reply: Reply,
    ) -> Result<(), String> {
        match reply {
            Reply::Waits(ticket) => self.processes[at].contest.push_back((ticket, call)),
            Reply::Refused(words) => self.answered(call, Some(words)),
            Reply::Granted(lease) => {
                self.answered(call, None);
                let logged = &mut self.calls[call];
                (logged.held_until, logged.settled) = (self.now, true);
                return self.end_lease(at, pool, lease, false);
            }
        }
        Ok(())
    }
}
