//! Settles a lease by what the provider answered.
//!
//! In the common case that is one step on one pool, which a task takes without a thread. A refusal
//! and a call on several pools take more steps.

use std::sync::Arc;

use standpipe_core::{Amounts, Answer, LeaseAnswer, Unit};

use super::Lease;
use super::usage::amounts;
use crate::client::operation::{Operation, Plan, Sending};
use crate::client::{StoreClient, units};
use crate::error::Error;
use crate::lease_id::LeaseId;
use crate::provider::reply::{Meaning, Read, Reply};

impl Lease {
    /// Settles the lease by what the provider's answer means: its usage is charged, its limits are
    /// applied, and a refusal pauses everyone on the pool.
    ///
    /// ```
    /// # use standpipe::config::{Settings, StoreUrl};
    /// # use standpipe::{Limit, Meaning, Reply, Request, Rule, Standpipe};
    /// # fn main() -> Result<(), standpipe::Error> {
    /// # let tap = Standpipe::builder().settings(Settings::default());
    /// # let tap = tap.store(StoreUrl::Memory).open()?;
    /// # let pool = tap.pool("anthropic/doc")?;
    /// # pool.limit(vec![Limit::new(Rule::Parallel { amount: 5 })]).blocking()?;
    /// let lease = pool.reserve(Request::by("blog")).blocking()?;
    /// let reply = Reply::new(429).header("retry-after", "17");
    /// let meaning = lease.answered(reply).blocking()?;
    /// assert!(matches!(meaning, Meaning::Refused { .. }));
    /// assert!(pool.status().blocking()?.pause.is_some(), "everyone pauses");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Lease::commit`].
    pub fn answered(self, reply: Reply) -> Operation<Meaning> {
        self.answered_using(reply, [])
    }

    /// Does the same as [`Lease::answered`], with amounts of the caller that replace the answer's.
    ///
    /// # Errors
    /// As [`Lease::commit`].
    pub fn answered_using(
        self,
        reply: Reply,
        used: impl IntoIterator<Item = (Unit, u64)>,
    ) -> Operation<Meaning> {
        let used = amounts(used);
        Operation::new(move || {
            let read = reply.read(self.context.dialect, self.id.pool());
            let has_one_pool = self.others.is_empty();
            match used {
                // A refusal is also recorded for workflows, in a pool of its own.
                Ok(used)
                    if has_one_pool
                        && !read.is_refused()
                        && units::custom(&used, &[]).is_empty() =>
                {
                    self.end_by(read, &used)
                }
                used => self.block(move |lease, client| lease.end_all_by(client, read, &used?)),
            }
        })
    }

    /// Settles the lease on its one pool by what an answer means.
    fn end_by(mut self, read: Read, used: &Amounts) -> Plan<Meaning> {
        if let Err(error) = self.check_owned() {
            return Plan::Ready(Err(error));
        }
        self.owned = false;
        self.note_reply(&read, used);
        let (handle, client) = (Arc::clone(&self.handle), self.client());
        handle.store_client().note_answer(&client, Some(&self.id), Some(self.agent()), &read);
        let actions = read.actions(self.id.key(), used);
        let then = Box::new(move |received: Result<(Vec<Answer>, _), Error>| {
            self.lease_ended();
            let answered = answered(&received?.0, &self.id);
            answered.map(|()| read.meaning)
        });
        Plan::Send(Sending { handle, client, actions, then })
    }

    /// Settles the lease by what an answer means on each of its pools.
    fn end_all_by(
        &mut self,
        store_client: &Arc<StoreClient>,
        read: Read,
        used: &Amounts,
    ) -> Result<Meaning, Error> {
        store_client.check_units(&self.client(), used, &[], Some(self.id.key()))?;
        self.check_owned()?;
        let parts = self.take_parts();
        let split = store_client.split_reply(&parts, &read);
        for (part, read) in self.each(|part| part).zip(&split) {
            part.note_reply(read, used);
        }
        let (agent, graph) = (Some(self.agent()), &self.context.graph);
        store_client.answered(&parts, &self.id, agent, &split, used, graph)?;
        Ok(read.meaning)
    }

    /// Writes an answer to the journal, unless an earlier request created the lease.
    fn note_reply(&self, read: &Read, used: &Amounts) {
        if self.granted.is_new {
            let call = self.granted.call();
            self.handle.store_client().note_answered(&self.client(), call, read, used);
        }
    }

    /// Checks that this value settles the lease.
    fn check_owned(&self) -> Result<(), Error> {
        self.ours()?;
        match self.owned {
            true => Ok(()),
            false => Err(Error::LeaseGone { lease: self.id.clone() }),
        }
    }
}

/// Returns whether a provider's answer settled a lease. A lease that has ended is an error.
pub(crate) fn answered(answers: &[Answer], lease: &LeaseId) -> Result<(), Error> {
    match answers.last() {
        Some(Answer::Lease(LeaseAnswer::Gone)) => Err(Error::LeaseGone { lease: lease.clone() }),
        _ => Ok(()),
    }
}
