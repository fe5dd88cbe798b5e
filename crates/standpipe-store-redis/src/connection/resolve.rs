//! Looks up host names, and does not wait for longer than a deadline.
//!
//! The system's lookup cannot be interrupted. So it runs in a thread of its own, one for each name
//! at a time, and every caller waits for it until its own deadline. A lookup that hangs
//! costs one thread, however often it is asked for.

use std::collections::HashMap;
use std::fmt;
use std::io::{Error, ErrorKind, Result};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::deadline::Deadline;
use super::socket::timed_out;

/// Returns the addresses of a host.
type Lookup = fn(&str) -> Result<Vec<IpAddr>>;

/// Looks up host names.
pub(crate) struct Resolver {
    lookup: Lookup,
    pending: Arc<Mutex<HashMap<String, Arc<Pending>>>>,
}

/// A lookup that has not ended.
#[derive(Default)]
struct Pending {
    result: Mutex<Option<std::result::Result<Vec<IpAddr>, ErrorKind>>>,
    ended: Condvar,
}

impl Default for Resolver {
    fn default() -> Self {
        Self::new(|host| {
            // The port does not matter here.
            Ok((host, 0).to_socket_addrs()?.map(|address| address.ip()).collect())
        })
    }
}

impl Resolver {
    fn new(lookup: Lookup) -> Self {
        Self { lookup, pending: Arc::default() }
    }

    /// Returns the addresses of a host, which may be an address itself.
    pub(crate) fn resolve(
        &self,
        host: &str,
        port: u16,
        deadline: Deadline,
    ) -> Result<Vec<SocketAddr>> {
        if let Ok(address) = host.parse::<IpAddr>() {
            return Ok(vec![(address, port).into()]);
        }
        let addresses = self.begin(host)?.wait(deadline)?;
        Ok(addresses.into_iter().map(|address| (address, port).into()).collect())
    }

    /// Joins the lookup of this name that is under way, or begins one.
    fn begin(&self, host: &str) -> Result<Arc<Pending>> {
        let mut lookups = lock(&self.pending);
        if let Some(pending) = lookups.get(host) {
            return Ok(Arc::clone(pending));
        }
        let pending = Arc::new(Pending::default());
        let (ended, all) = (Arc::clone(&pending), Arc::clone(&self.pending));
        let (lookup, name) = (self.lookup, host.to_owned());
        std::thread::Builder::new().name("standpipe-dns".to_owned()).spawn(move || {
            let result = lookup(&name).map_err(|error| error.kind());
            lock(&all).remove(&name);
            *lock(&ended.result) = Some(result);
            ended.ended.notify_all();
        })?;
        lookups.insert(host.to_owned(), Arc::clone(&pending));
        Ok(pending)
    }
}

impl Pending {
    fn wait(&self, deadline: Deadline) -> Result<Vec<IpAddr>> {
        let mut result = lock(&self.result);
        loop {
            if let Some(result) = &*result {
                let not_found = |kind| Error::new(kind, "its host name cannot be resolved");
                return result.clone().map_err(not_found);
            }
            let left = deadline.remaining().ok_or_else(timed_out)?;
            let waited = self.ended.wait_timeout(result, left);
            result = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl fmt::Debug for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resolver").finish_non_exhaustive()
    }
}

/// Locks a mutex. A panic elsewhere cannot leave these values half-written.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    static LOOKUPS: AtomicUsize = AtomicUsize::new(0);
    static ANSWERED: (Mutex<bool>, Condvar) = (Mutex::new(false), Condvar::new());

    /// Answers once the test allows it.
    fn hangs(_: &str) -> Result<Vec<IpAddr>> {
        LOOKUPS.fetch_add(1, Ordering::SeqCst);
        let mut answered = ANSWERED.0.lock().unwrap();
        while !*answered {
            answered = ANSWERED.1.wait(answered).unwrap();
        }
        Ok(vec!["127.0.0.9".parse().unwrap()])
    }

    #[test]
    fn a_lookup_that_hangs_holds_no_caller_and_runs_once() {
        let resolver = Resolver::new(hangs);
        let address = resolver.resolve("10.0.0.1", 7, Deadline::within(LONG)).unwrap();
        assert_eq!(address, ["10.0.0.1:7".parse().unwrap()], "no lookup is needed");
        for _ in 0..3 {
            let soon = Deadline::within(Duration::from_millis(1));
            let error = resolver.resolve("slow.example", 7, soon).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::TimedOut);
        }
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| resolver.resolve("slow.example", 7, Deadline::within(LONG)));
            *ANSWERED.0.lock().unwrap() = true;
            ANSWERED.1.notify_all();
            assert_eq!(waits.join().unwrap().unwrap(), ["127.0.0.9:7".parse().unwrap()]);
        });
        assert!(LOOKUPS.load(Ordering::SeqCst) <= 2, "one, or another after the first ended");
    }
}
