//! Routes: the file maps kinds of tasks to pools, so that simple tasks use cheap ones.
//!
//! A route only chooses a pool; it reserves nothing.

use std::sync::Arc;

use standpipe_store::PoolName;

use crate::client::operation::Operation;
use crate::error::Error;
use crate::pool::Pool;
use crate::request::Request;
use crate::tap::Standpipe;

impl Standpipe {
    /// Returns the pool for a request: the first pool of its task's route that has room, else the
    /// route's first. A request without a task, or with one that has no route, goes to `pool`.
    ///
    /// ```
    /// # use standpipe::config::{Settings, StoreUrl};
    /// # use standpipe::{Error, Request, Standpipe};
    /// # fn main() -> Result<(), Error> {
    /// let settings = Settings::parse(
    ///     "[pool.\"anthropic/sonnet\"]\nrequests = \"50/min\"\n\
    ///      [pool.\"anthropic/haiku\"]\nrequests = \"50/min\"\n\
    ///      [route]\nclassify = [\"anthropic/haiku\"]\n",
    ///     None,
    ///     0,
    /// )?;
    /// let tap = Standpipe::builder().settings(settings).store(StoreUrl::Memory).open()?;
    /// let request = Request::by("blog").task("classify");
    /// let pool = tap.route(tap.pool("anthropic/sonnet")?, &request).blocking()?;
    /// assert_eq!(pool.name().as_str(), "anthropic/haiku");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the request is invalid, or a pool cannot be read.
    pub fn route(&self, pool: Pool, request: &Request) -> Operation<Pool> {
        let (tap, request) = (self.clone(), request.clone());
        pool.clone().operation(move |_| tap.route_now(pool, &request))
    }

    fn route_now(&self, pool: Pool, request: &Request) -> Result<Pool, Error> {
        let Some(route) = request.task_name().and_then(|task| self.settings().routes.get(task))
        else {
            return Ok(pool);
        };
        if let Some(open) = pool.first_with_room(route, request)? {
            return Ok(open);
        }
        route.first().map_or(Ok(pool), |first| self.pool(first.as_str()))
    }
}

impl Pool {
    /// Returns the first of these pools that would admit a request now.
    pub(crate) fn first_with_room(
        &self,
        pools: &[PoolName],
        request: &Request,
    ) -> Result<Option<Self>, Error> {
        for name in pools {
            let pool = Self::new(Arc::clone(self.tap()), name.clone());
            if pool.peek_now(request)?.is_admitted() {
                return Ok(Some(pool));
            }
        }
        Ok(None)
    }
}
