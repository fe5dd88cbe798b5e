//! A lease by its id, for example one that the command line printed earlier.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use standpipe_core::{Action, Amounts, Commit, LeaseAnswer, Unit};

use super::amounts;
use crate::error::Error;
use crate::lease_id::LeaseId;
use crate::pool::Pool;
use crate::reply::{Meaning, Reply};
use crate::report::Throttle;
use crate::shared::usage::Ended;
use crate::tap::Tap;

/// A lease by its id. Dropping it changes nothing.
pub struct LeaseHandle {
    tap: Arc<Tap>,
    id: LeaseId,
}

impl LeaseHandle {
    pub(crate) const fn new(tap: Arc<Tap>, id: LeaseId) -> Self {
        Self { tap, id }
    }

    /// Its name.
    #[must_use]
    pub const fn id(&self) -> &LeaseId {
        &self.id
    }

    /// The call is over and used this much. What is not named settles at the estimate.
    ///
    /// # Errors
    /// [`Error::LeaseGone`] when there is no such lease, or no longer; nothing changed then.
    pub fn commit(&self, used: impl IntoIterator<Item = (Unit, u64)>) -> Result<(), Error> {
        self.used(used, false)
    }

    /// The call goes on and has used this much so far.
    ///
    /// # Errors
    /// As [`LeaseHandle::commit`].
    pub fn progress(&self, used: impl IntoIterator<Item = (Unit, u64)>) -> Result<(), Error> {
        self.used(used, true)
    }

    /// The call was never sent: everything goes back.
    ///
    /// # Errors
    /// As [`LeaseHandle::commit`].
    pub fn cancel(&self) -> Result<(), Error> {
        self.about(Action::Cancel { lease: self.id.key() }).map(drop)
    }

    /// The lease lives on: by its own time to live, from now. Answers until when.
    ///
    /// # Errors
    /// As [`LeaseHandle::commit`].
    pub fn heartbeat(&self) -> Result<SystemTime, Error> {
        self.beat(None)
    }

    /// From now on the lease lives so long by itself. Answers until when.
    ///
    /// # Errors
    /// As [`LeaseHandle::commit`].
    pub fn keep(&self, ttl: Duration) -> Result<SystemTime, Error> {
        self.beat(Some(ttl))
    }

    /// The provider refused the call.
    ///
    /// # Errors
    /// As [`LeaseHandle::commit`].
    pub fn throttled(&self, throttle: Throttle) -> Result<(), Error> {
        let guard = self.tap.guard()?;
        let desk = guard.shared().desk(self.id.pool())?.of_lease(self.id.key());
        guard.shared().throttle(&desk, &throttle.lease(self.id.clone()), self.tap.graph())
    }

    /// The provider answered the call: it is settled by what the answer means. `used` are figures
    /// the caller knows better than the answer.
    ///
    /// # Errors
    /// As [`LeaseHandle::commit`].
    pub fn answered_using(
        &self,
        reply: &Reply,
        used: impl IntoIterator<Item = (Unit, u64)>,
    ) -> Result<Meaning, Error> {
        let used = self.checked(used)?;
        let pool = Pool::new(Arc::clone(&self.tap), self.id.pool().clone());
        let guard = self.tap.guard()?;
        let desk = guard.shared().desk(self.id.pool())?.of_lease(self.id.key());
        let read = reply.read(pool.dialect(), pool.name());
        let agent = guard.shared().agent_of(&desk, self.id.key())?;
        let (agent, graph) = (agent.as_ref().map(|agent| agent.as_str()), self.tap.graph());
        let known = guard.shared().call_of(&desk, self.id.key());
        guard.shared().answered(&desk, &self.id, agent, &read, &used, graph)?;
        if let Some(known) = &known {
            guard.shared().note_answered(&desk, known.call(), &read, &used);
        }
        Ok(read.meaning)
    }

    fn beat(&self, ttl: Option<Duration>) -> Result<SystemTime, Error> {
        let ttl = ttl.map(|ttl| crate::moment::span(ttl.max(Duration::from_micros(1))));
        let (answer, now) = self.about(Action::Heartbeat { lease: Some(self.id.key()), ttl })?;
        match answer {
            LeaseAnswer::Lives(until) => Ok(now.system(until)),
            LeaseAnswer::Ended | LeaseAnswer::Gone => {
                Err(Error::LeaseGone { lease: self.id.clone() })
            }
        }
    }

    fn used(
        &self,
        used: impl IntoIterator<Item = (Unit, u64)>,
        progress: bool,
    ) -> Result<(), Error> {
        let (lease, used, refused) = (self.id.key(), self.checked(used)?, false);
        self.about(Action::Commit(Commit { lease, used, progress, refused })).map(drop)
    }

    /// Figures of units that the pool or the lease counts.
    fn checked(&self, used: impl IntoIterator<Item = (Unit, u64)>) -> Result<Amounts, Error> {
        let used = amounts(used)?;
        let guard = self.tap.guard()?;
        let desk = guard.shared().desk(self.id.pool())?.of_lease(self.id.key());
        guard.shared().check_units(&desk, &used, &[], Some(self.id.key()))?;
        Ok(used)
    }

    fn about(&self, action: Action) -> Result<(LeaseAnswer, crate::moment::Now), Error> {
        let guard = self.tap.guard()?;
        let shared = guard.shared();
        let desk = shared.desk(self.id.pool())?.of_lease(self.id.key());
        let Some(how) = Ended::by(&action) else {
            return shared.about_lease(&desk, &self.id, action);
        };
        let known = shared.call_of(&desk, self.id.key());
        let told = shared.about_lease(&desk, &self.id, action.clone())?;
        if let Some(known) = &known {
            shared.note_ended(&desk, known.call(), how);
        }
        Ok(told)
    }
}

impl fmt::Debug for LeaseHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaseHandle").field("id", &self.id).finish_non_exhaustive()
    }
}
