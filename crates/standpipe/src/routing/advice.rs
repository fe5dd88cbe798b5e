//! Where a call could go instead, over the pool's fallback chain.
//!
//! Advice never delays a call. The ledger forecasts when a call like this would have to wait.

pub(crate) use standpipe_observe::explain::{Advice, Remedy};

use crate::client::operation::Operation;
use crate::error::Error;
use crate::pool::Pool;
use crate::request::Request;

impl Pool {
    /// Returns what the caller of such a request should do about a long wait, if one is forecast.
    /// Changes nothing.
    ///
    /// # Errors
    /// As [`Pool::peek`].
    pub fn advise(&self, request: &Request) -> Operation<Option<Advice>> {
        let request = request.clone();
        self.operation(move |pool| pool.advise_now(&request))
    }

    pub(crate) fn advise_now(&self, request: &Request) -> Result<Option<Advice>, Error> {
        let Some(mut advice) = self.forecast(request)? else { return Ok(None) };
        let elsewhere = self.fallback_now(request)?;
        advice
            .try_this
            .extend(elsewhere.map(|pool| Remedy::Fallback { pool: pool.name().clone() }));
        Ok(Some(advice))
    }

    /// Returns the first pool of its fallback chain that has room for a request.
    ///
    /// # Errors
    /// As [`Pool::peek`].
    pub fn fallback(&self, request: &Request) -> Operation<Option<Self>> {
        let request = request.clone();
        self.operation(move |pool| pool.fallback_now(&request))
    }

    fn fallback_now(&self, request: &Request) -> Result<Option<Self>, Error> {
        let settings = self.tap().settings().pools.get(self.name());
        let chain = settings.map_or(&[][..], |pool| &pool.fallback);
        self.first_with_room(chain, request)
    }
}
