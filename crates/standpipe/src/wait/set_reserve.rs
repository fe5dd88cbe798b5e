//! Calls that draw on several pools: a pool and those it lies within, and sets of pools.
//!
//! All pools are reserved in one order: the deepest first, then by name. While a call waits for a
//! pool it holds only pools before it in that order, so that no two calls wait for each other. When
//! the last pool has granted, the charges of the others are dated to that instant, or the pool is
//! asked again if others may have used them meanwhile. When one pool refuses, everything is given
//! back. `lease/several.rs` continues with the lease.

use std::cmp::Reverse;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant as Local, SystemTime};

use standpipe_observe::lease_id::MAX_POOLS;

use super::Reserving;
use crate::client::operation::Operation;
use crate::error::Error;
use crate::lease::Lease;
use crate::moment::micros;
use crate::pool::Pool;
use crate::request::Request;

/// How often earlier pools are asked again because a period passed between two grants. A period
/// that is shorter than that many round trips cannot be kept by any caller.
const MAX_ROUNDS: u32 = 32;

/// Calls on their way to their leases on all pools that they draw on.
pub(super) struct SetReserve {
    /// The calls, until the pools that they draw on are known.
    calls: Vec<(Pool, Request)>,
    /// Every pool of every call, in the order in which they are reserved.
    links: Vec<Link>,
    began: Option<Local>,
    present: Option<Present>,
    /// The links whose charges are still to be dated, once all pools have granted.
    to_date: Option<Vec<usize>>,
    rounds: u32,
}

/// One pool that a call draws on.
struct Link {
    pool: Pool,
    request: Request,
    /// Which call, in the caller's order.
    call: usize,
    /// Whether the caller named this pool: its lease is the one the caller gets.
    is_named: bool,
    lease: Option<Lease>,
}

/// The step that is under way, and the link it is about.
enum Present {
    Reserve(usize, Box<Reserving>),
    Redate(usize, Operation<Option<SystemTime>>),
}

impl SetReserve {
    pub(super) fn new(calls: Vec<(Pool, Request)>) -> Self {
        let (links, present) = (Vec::new(), None);
        Self { calls, links, began: None, present, to_date: None, rounds: 0 }
    }

    /// Continues a call whose pool turned out to lie within another one when it was granted.
    pub(super) fn of_granted(lease: Lease, parent: &Pool, began: Local) -> Self {
        let pool = Pool::new(Arc::clone(parent.tap()), lease.pool().clone());
        let mut set = Self::new(Vec::new()).since(began);
        let (request, is_named) = (Request::of_reserve(lease.reserve()), true);
        set.links.push(Link { pool, request, call: 0, is_named, lease: None });
        set.granted(0, lease);
        set
    }

    /// Counts the timeouts from an earlier instant.
    pub(super) fn since(mut self, instant: Local) -> Self {
        self.began = Some(instant);
        self
    }

    /// Waits on this thread. Returns one lease per call, in the caller's order.
    pub(super) fn blocking(mut self) -> Result<Vec<Lease>, Error> {
        while let Some(present) = self.next()? {
            match present {
                Present::Reserve(link, mut reserving) => {
                    let mut park = None;
                    let result = loop {
                        if let Some(result) = reserving.step(&mut park) {
                            break result;
                        }
                        self.yield_earlier(link, &reserving);
                    };
                    self.reserved(link, result)?;
                }
                Present::Redate(link, dating) => self.redated(link, dating.blocking())?,
            }
        }
        Ok(self.leases())
    }

    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<Vec<Lease>, Error>> {
        while let Some(mut present) = self.next()? {
            let step = match &mut present {
                Present::Reserve(link, reserving) => {
                    let (link, polled) = (*link, Pin::new(&mut **reserving).poll(context));
                    if polled.is_pending() {
                        self.yield_earlier(link, reserving);
                    }
                    polled.map(|result| self.reserved(link, result))
                }
                Present::Redate(link, dating) => {
                    let (link, polled) = (*link, Pin::new(dating).poll(context));
                    polled.map(|result| self.redated(link, result))
                }
            };
            if step.is_pending() {
                self.present = Some(present);
            }
            ready!(step)?;
        }
        Poll::Ready(Ok(self.leases()))
    }

    /// Returns the next step; `None` when every call has all its leases.
    fn next(&mut self) -> Result<Option<Present>, Error> {
        if let Some(present) = self.present.take() {
            return Ok(Some(present));
        }
        let began = *self.began.get_or_insert_with(Local::now);
        if !self.calls.is_empty() {
            self.links = links(std::mem::take(&mut self.calls))?;
        }
        if let Some(at) = self.links.iter().position(|link| link.lease.is_none()) {
            self.to_date = None;
            let link = &self.links[at];
            let mut request = link.request.clone();
            if self.holds_later(at) {
                // Pools behind this one are held, so this call must not wait for it.
                request = request.timeout(Duration::ZERO);
            }
            let mut later = self.links[at + 1..].iter().filter(|link| link.lease.is_none());
            let next = later.next().map(|link| link.pool.name().clone());
            let reserving = Reserving::on_one_pool(link.pool.clone(), request, next).since(began);
            return Ok(Some(Present::Reserve(at, Box::new(reserving))));
        }
        if self.to_date.is_none() {
            self.to_date = Some(self.links_to_date());
        }
        let next = self.to_date.as_mut().and_then(Vec::pop);
        let lease = next.and_then(|at| Some((at, self.links[at].lease.as_ref()?)));
        Ok(lease.map(|(at, lease)| Present::Redate(at, lease.redate())))
    }

    /// Gives back earlier pools that the call must not hold while it waits for this one: all of
    /// them while this pool is paused, and any in which a call of a higher priority waits. They are
    /// asked again when this pool has granted.
    fn yield_earlier(&mut self, at: usize, reserving: &Reserving) {
        let paused = reserving.is_paused();
        for earlier in &mut self.links[..at] {
            if earlier.lease.as_ref().is_some_and(|lease| paused || lease.blocks_a_higher_tier()) {
                earlier.lease.take().into_iter().for_each(Lease::withdraw);
            }
        }
    }

    fn holds_later(&self, at: usize) -> bool {
        self.links[at + 1..].iter().any(|link| link.lease.is_some())
    }

    fn reserved(&mut self, at: usize, result: Result<Lease, Error>) -> Result<(), Error> {
        let error = match result {
            Ok(lease) => {
                self.granted(at, lease);
                return self.check_size();
            }
            Err(error) => error,
        };
        let waits = !self.links[at].request.patience().is_zero();
        let in_vain = error.as_refused().is_none_or(|refused| refused.is_never());
        if waits && !in_vain && self.holds_later(at) {
            for later in &mut self.links[at + 1..] {
                later.lease.take().into_iter().for_each(Lease::withdraw);
            }
            return Ok(());
        }
        let several = self.links.iter().filter(|link| link.call == self.links[at].call).count() > 1;
        self.withdraw();
        Err(if several { error.of_one_pool() } else { error })
    }

    fn granted(&mut self, at: usize, lease: Lease) {
        let call = self.links[at].call;
        if lease.is_settled() && self.links[at].is_named {
            // The call of this id was made before: there is nothing more to reserve for it.
            self.links[at].lease = Some(lease);
            self.drop_others(call);
            return;
        }
        if let Some(parent) = lease.parent().cloned() {
            self.add_parent(at, parent);
        }
        self.links[at].lease = Some(lease);
    }

    /// Adds a pool that the ledger of another one names as its parent.
    fn add_parent(&mut self, at: usize, parent: Pool) {
        let Link { call, request, .. } = &self.links[at];
        let call = *call;
        let mut own = self.links.iter().filter(|link| link.call == call);
        if own.any(|link| link.pool.name() == parent.name()) {
            return;
        }
        let named = self.links.iter().find(|link| link.call == call && link.is_named);
        let request = match named {
            Some(named) if self.links[at].is_named => request.clone().part_of(named.pool.name()),
            _ => request.clone(),
        };
        let link = Link { pool: parent, request, call, is_named: false, lease: None };
        let behind = self.links[at + 1..].partition_point(|other| rank(other) < rank(&link));
        self.links.insert(at + 1 + behind, link);
    }

    fn drop_others(&mut self, call: usize) {
        let goes = |link: &mut Link| link.call == call && !link.is_named;
        for link in self.links.extract_if(.., goes) {
            match link.lease {
                Some(lease) if lease.is_new() => lease.withdraw(),
                Some(lease) => lease.disown(),
                None => {}
            }
        }
    }

    fn check_size(&mut self) -> Result<(), Error> {
        let most = self.links.iter().map(|link| link.call).max().unwrap_or(0);
        let too_many =
            |call: usize| self.links.iter().filter(|link| link.call == call).count() > MAX_POOLS;
        if (0..=most).any(too_many) {
            self.withdraw();
            return Err(too_many_pools());
        }
        Ok(())
    }

    /// Returns the links whose charges are older than the last grant by more than a fraction of the
    /// pool's slack, which allows for the way to the provider.
    fn links_to_date(&self) -> Vec<usize> {
        let leases = || self.links.iter().filter_map(|link| link.lease.as_ref());
        let Some(last) = leases().max_by_key(|lease| lease.asked_at()) else { return Vec::new() };
        // If no lease is new, the whole call was admitted before and may have been sent.
        if self.rounds >= MAX_ROUNDS || !leases().any(Lease::is_new) {
            return Vec::new();
        }
        let is_old = |lease: &Lease| {
            let by_store = micros(last.started().since(lease.started()));
            // Stamps of two pools are not comparable where each has a server of its own.
            let age = by_store.max(lease.asked_at().elapsed());
            lease.asked_at() < last.asked_at() && age > micros(lease.slack()) / 5
        };
        let old = |link: &Link| link.lease.as_ref().is_some_and(is_old);
        (0..self.links.len()).rev().filter(|at| old(&self.links[*at])).collect()
    }

    fn redated(
        &mut self,
        at: usize,
        result: Result<Option<SystemTime>, Error>,
    ) -> Result<(), Error> {
        match result {
            Ok(Some(expires_at)) => {
                if let Some(lease) = &mut self.links[at].lease {
                    lease.set_expires_at(expires_at);
                }
                Ok(())
            }
            Ok(None) => {
                self.rounds += 1;
                self.links[at].lease.take().into_iter().for_each(Lease::disown);
                Ok(())
            }
            Err(error) => {
                self.withdraw();
                Err(error)
            }
        }
    }

    /// Returns one lease per call, in the caller's order.
    fn leases(&mut self) -> Vec<Lease> {
        let mut links = std::mem::take(&mut self.links);
        links.sort_by_key(|link| (link.call, !link.is_named));
        let mut leases: Vec<Lease> = Vec::new();
        for link in links {
            match (link.lease, leases.last_mut()) {
                (Some(lease), _) if link.is_named => leases.push(lease),
                (Some(lease), Some(named)) => named.join(lease),
                _ => {}
            }
        }
        leases
    }

    /// Gives everything back, because the calls are not made.
    fn withdraw(&mut self) {
        self.calls.clear();
        for link in self.links.drain(..).rev() {
            link.lease.into_iter().for_each(Lease::withdraw);
        }
    }
}

/// A caller that disconnects leaves what the next request with its id takes over.
impl Drop for SetReserve {
    fn drop(&mut self) {
        self.present = None;
        for link in self.links.drain(..).rev() {
            link.lease.into_iter().for_each(Lease::give_back);
        }
    }
}

/// The place of a pool in the one order: the deepest first, then by name.
fn rank(link: &Link) -> (Reverse<usize>, &str, usize) {
    let depth = link.pool.tap().settings().ancestors(link.pool.name()).len();
    (Reverse(depth), link.pool.name().as_str(), link.call)
}

/// Returns the pools that a call would draw on, in the one order, each with its part of the
/// request. The pools that only the ledgers name as parents come last.
pub(crate) fn parts_of(pool: &Pool, request: &Request) -> Result<Vec<(Pool, Request)>, Error> {
    let links = links(vec![(pool.clone(), request.clone())])?;
    let mut parts: Vec<_> = links.into_iter().map(|link| (link.pool, link.request)).collect();
    for at in 0..parts.len() {
        for above in parts[at].0.ancestors()? {
            if parts.iter().all(|(known, _)| known.name() != above.name()) {
                parts.push((above, request.clone().part_of(pool.name())));
            }
        }
    }
    Ok(parts)
}

/// Returns every pool that these calls draw on, in the one order.
fn links(calls: Vec<(Pool, Request)>) -> Result<Vec<Link>, Error> {
    check_stores(&calls)?;
    let mut links: Vec<Link> = Vec::new();
    for (call, (pool, mut request)) in calls.into_iter().enumerate() {
        let mut own = vec![pool.clone()];
        for name in request.take_also() {
            let other = pool.sibling(&name)?;
            if own.iter().any(|known| known.name() == other.name()) {
                let what = format!("`{name}` is named twice");
                return Err(Error::invalid(what, "name each pool once"));
            }
            own.push(other);
        }
        let beside = own.iter().skip(1).map(|other| other.name().clone()).collect();
        for of in own.clone() {
            for above in pool.tap().settings().ancestors(of.name()) {
                if own.iter().all(|known| *known.name() != above) {
                    own.push(Pool::new(Arc::clone(pool.tap()), above));
                }
            }
        }
        if own.len() > MAX_POOLS {
            return Err(too_many_pools());
        }
        request = request.beside(beside);
        for other in own.drain(1..) {
            let request = request.clone().part_of(pool.name());
            links.push(Link { pool: other, request, call, is_named: false, lease: None });
        }
        links.push(Link { pool, request, call, is_named: true, lease: None });
    }
    links.sort_by(|one, other| rank(one).cmp(&rank(other)));
    Ok(links)
}

/// Charges of several pools are dated by one clock, and one process must reach them all.
fn check_stores(calls: &[(Pool, Request)]) -> Result<(), Error> {
    let Some((first, _)) = calls.first() else { return Ok(()) };
    let store = first.tap().store_handle()?;
    for (pool, _) in calls {
        if !Arc::ptr_eq(store.store_client(), pool.tap().store_handle()?.store_client()) {
            let what = format!("`{}` and `{}` are on different stores", first.name(), pool.name());
            let remedy = "reserve pools of one store together; calls that draw on pools of two \
                          stores cannot be admitted on both or none";
            return Err(Error::invalid(what, remedy));
        }
    }
    Ok(())
}

fn too_many_pools() -> Error {
    let what = format!("one call draws on more than {MAX_POOLS} pools");
    Error::invalid(what, "name fewer pools; the pools that each lies within count too")
}
