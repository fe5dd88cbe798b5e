//! Several members that ask, hold and settle all the time, whatever happens to their server.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;

use standpipe_core::{Limit, Span};
use standpipe_store_redis::{Options, RedisStore};

use super::{
    admitted, admitted_at, ask, commit, configure, decision, insist, member, reserve, store_with,
    until,
};

/// Members at work, each in a thread and with connections of its own.
pub(crate) struct Crew {
    threads: Vec<JoinHandle<Vec<u64>>>,
    stores: Vec<RedisStore>,
    stop: Arc<AtomicBool>,
    made: Vec<Arc<AtomicUsize>>,
}

impl Crew {
    /// So many at this address, who give the pool these limits.
    pub(crate) fn start(count: usize, url: &str, limits: &[Limit]) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stores: Vec<_> = (0..count).map(|_| store_with(url, Options::default())).collect();
        let made: Vec<Arc<AtomicUsize>> = stores.iter().map(|_| Arc::default()).collect();
        let mut first = member(&stores[0]);
        insist(&mut first, vec![configure(limits.to_vec())]);
        let hand = |(store, made): (&RedisStore, &Arc<AtomicUsize>)| {
            let (store, made, stop) = (store.clone(), Arc::clone(made), Arc::clone(&stop));
            let limits = limits.to_vec();
            std::thread::spawn(move || work(&store, limits, &made, &stop))
        };
        let threads = stores.iter().zip(&made).map(hand).collect();
        Self { threads, stores, stop, made }
    }

    /// Waits until each has been admitted so many times more.
    pub(crate) fn goes_on(&self, times: usize) {
        let count = |made: &Arc<AtomicUsize>| made.load(Ordering::Relaxed);
        let before: Vec<usize> = self.made.iter().map(count).collect();
        until("everybody is admitted again", || {
            self.made.iter().zip(&before).all(|(made, before)| count(made) >= before + times)
        });
    }

    /// What their stores had to tell, so far.
    pub(crate) fn take_messages(&self) -> String {
        let all = self
            .stores
            .iter()
            .flat_map(standpipe_store::Store::take_messages)
            .map(|news| news.text);
        all.collect::<Vec<String>>().join("\n")
    }

    /// Lets them settle what they hold. Answers when each call was admitted, by the server's clock.
    pub(crate) fn stop(self) -> Vec<u64> {
        self.stop.store(true, Ordering::Relaxed);
        let threads = self.threads.into_iter();
        threads.flat_map(|thread| thread.join().unwrap()).collect()
    }
}

/// Takes up to two calls at a time and settles the older one, over and over.
fn work(store: &RedisStore, limits: Vec<Limit>, made: &AtomicUsize, stop: &AtomicBool) -> Vec<u64> {
    let mut member = member(store);
    insist(&mut member, vec![configure(limits)]);
    let (mut stamps, mut holds) = (Vec::new(), std::collections::VecDeque::new());
    while !stop.load(Ordering::Relaxed) {
        let lease = match holds.len() {
            2 => {
                let settle = commit(holds.pop_front().unwrap());
                let outcomes = insist(&mut member, vec![settle, reserve()]);
                admitted(&decision(&outcomes[1]))
            }
            _ => admitted(&ask(&mut member)),
        };
        if let Some(lease) = lease {
            stamps.push(admitted_at(&member, lease).0);
            made.fetch_add(1, Ordering::Relaxed);
            holds.push_back(lease);
        } else {
            // What it holds may be what the others wait for.
            let settle = holds.drain(..).map(commit).collect();
            insist(&mut member, settle);
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
    }
    insist(&mut member, holds.into_iter().map(commit).collect());
    stamps
}

/// The window of a crew: short, so that it comes round several times in a test.
pub(crate) const PERIOD: Span = Span::millis(400);
