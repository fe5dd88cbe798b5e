//! The thread of one pool that takes blocking steps for callers that must not block.
//!
//! A task must not block its executor, and a step may take long: the store is across a network, or
//! a stopped process holds the pool's lock. Such a caller hands a [`Job`] to the worker of its
//! pool. The worker gathers all jobs that are ready and goes to the store once for them: a thousand
//! tasks cost one call. Pools are independent: each has a worker of its own, started when it is
//! first needed and ended when it was idle for a while.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant as Local};

use super::notify::Notify;
use super::{Dispatcher, PoolClient, StoreClient};
use crate::maintenance::attend;

/// Work on a pool that takes as many steps as it needs.
pub(crate) trait Job: Send {
    /// Returns the client whose dispatcher takes the next step.
    fn client(&self) -> Arc<PoolClient>;

    /// Returns what is notified when the job should take its next step.
    fn notify(&self) -> Arc<Notify>;

    /// Returns whether a caller still waits for the job. A job that no caller wants is dropped.
    fn is_wanted(&self) -> bool;

    /// Submits what the job wants to be sent. Returns its progress if that is nothing.
    fn submit(&mut self) -> Option<Progress>;

    /// Takes the outcome of what was submitted.
    fn receive(&mut self, dispatcher: &mut Dispatcher) -> Progress;

    /// Hands the result over and wakes the task that waits for it.
    ///
    /// This runs foreign code, so the dispatcher must not be held. The process may end as soon as
    /// it has the result, so nothing of the job may keep the store open by then: the last handle
    /// ends the session and writes the journal.
    fn finish(self: Box<Self>);
}

/// How far a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// The result is known.
    Done,
    /// Nothing to do before the job is notified.
    Sleeping,
    /// The job has more to submit at once.
    Again,
}

/// A closure that may block on the store.
pub(crate) type Task = Box<dyn FnOnce() + Send>;

/// The thread that takes blocking steps on one pool.
#[derive(Default)]
pub(crate) struct IoWorker {
    state: Mutex<State>,
    changed: Condvar,
}

type JobId = u64;

/// A job that should take its next step, and since when.
struct ReadyJob {
    id: JobId,
    since: Local,
    job: Box<dyn Job>,
}

/// The jobs of one client that take a step together.
type Batch = Vec<ReadyJob>;

/// How long a worker waits for more work before its thread ends.
const IDLE: Duration = Duration::from_secs(10);

#[derive(Default)]
struct State {
    running: bool,
    stopped: bool,
    last_id: JobId,
    jobs: BTreeMap<JobId, Box<dyn Job>>,
    /// The jobs that should take their next step, and since when.
    ready: Vec<(JobId, Local)>,
    /// Clients with actions in their submit queue that no caller sends.
    unattended: Vec<Arc<PoolClient>>,
    /// Clients that maintenance wants to be attended to, and whether a wake-up was the reason.
    attend: Vec<(Arc<PoolClient>, bool)>,
    tasks: VecDeque<Task>,
}

/// What a worker does in one round.
#[derive(Default)]
struct Round {
    jobs: Batch,
    unattended: Vec<Arc<PoolClient>>,
    attend: Vec<(Arc<PoolClient>, bool)>,
    task: Option<Task>,
}

impl IoWorker {
    /// Takes a job over. Returns it if no thread can be started.
    pub(crate) fn run_job(
        self: &Arc<Self>,
        store_client: &Arc<StoreClient>,
        job: Box<dyn Job>,
    ) -> Result<(), Box<dyn Job>> {
        let Some(mut state) = self.start(store_client) else { return Err(job) };
        state.last_id += 1;
        let id = state.last_id;
        state.jobs.insert(id, job);
        state.ready.push((id, Local::now()));
        self.wake(state);
        Ok(())
    }

    /// Runs a closure on the worker's thread. Returns it if no thread can be started.
    pub(crate) fn run_task(
        self: &Arc<Self>,
        store_client: &Arc<StoreClient>,
        task: Task,
    ) -> Result<(), Task> {
        let Some(mut state) = self.start(store_client) else { return Err(task) };
        state.tasks.push_back(task);
        self.wake(state);
        Ok(())
    }

    /// Sends what lies in a client's submit queue. Returns whether there is a thread to do it.
    pub(crate) fn send(
        self: &Arc<Self>,
        store_client: &Arc<StoreClient>,
        client: &Arc<PoolClient>,
    ) -> bool {
        let Some(mut state) = self.start(store_client) else { return false };
        if !state.unattended.iter().any(|known| Arc::ptr_eq(known, client)) {
            state.unattended.push(Arc::clone(client));
        }
        self.wake(state);
        true
    }

    /// Attends to a client for the maintenance thread. Returns whether there is a thread to do it.
    pub(crate) fn attend(
        self: &Arc<Self>,
        store_client: &Arc<StoreClient>,
        client: &Arc<PoolClient>,
        woken: bool,
    ) -> bool {
        let Some(mut state) = self.start(store_client) else { return false };
        match state.attend.iter_mut().find(|(known, _)| Arc::ptr_eq(known, client)) {
            Some((_, known)) => *known |= woken,
            None => state.attend.push((Arc::clone(client), woken)),
        }
        self.wake(state);
        true
    }

    /// Ends the thread after its current step.
    pub(crate) fn stop(&self) {
        self.lock().stopped = true;
        self.changed.notify_one();
    }

    /// Starts the thread if it does not run. Returns the locked state if it runs afterwards.
    fn start(self: &Arc<Self>, store_client: &Arc<StoreClient>) -> Option<MutexGuard<'_, State>> {
        let mut state = self.lock();
        if !state.running && !state.stopped {
            let (worker, store_client) = (Arc::clone(self), Arc::clone(store_client));
            let thread = std::thread::Builder::new().name("standpipe-io".to_owned());
            state.running = thread.spawn(move || worker.run(&store_client)).is_ok();
        }
        (state.running && !state.stopped).then_some(state)
    }

    fn wake(&self, state: MutexGuard<'_, State>) {
        drop(state);
        self.changed.notify_one();
    }

    fn run(self: &Arc<Self>, store_client: &Arc<StoreClient>) {
        while let Some(round) = self.next_round() {
            self.run_jobs(store_client, round.jobs, round.unattended);
            for (client, woken) in round.attend {
                let next = attend::attend(store_client, &client, &mut client.dispatcher(), woken);
                if let Some(at) = next {
                    store_client.maintenance().plan(at);
                }
            }
            if let Some(task) = round.task {
                task();
            }
        }
    }

    /// Waits for work. Returns `None` when the thread should end.
    fn next_round(&self) -> Option<Round> {
        let mut state = self.lock();
        while state.is_idle() && !state.stopped {
            let waited = self.changed.wait_timeout(state, IDLE);
            let (guard, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            state = guard;
            // Jobs that sleep need the thread when they are notified; `requeue` cannot start it.
            if timeout.timed_out() && state.is_idle() && state.jobs.is_empty() {
                state.running = false;
                return None;
            }
        }
        if state.stopped {
            state.running = false;
            return None;
        }
        let ready = std::mem::take(&mut state.ready);
        let jobs = ready
            .into_iter()
            .filter_map(|(id, since)| Some(ReadyJob { id, since, job: state.jobs.remove(&id)? }));
        Some(Round {
            jobs: jobs.collect(),
            unattended: std::mem::take(&mut state.unattended),
            attend: std::mem::take(&mut state.attend),
            task: state.tasks.pop_front(),
        })
    }

    fn run_jobs(
        self: &Arc<Self>,
        store_client: &Arc<StoreClient>,
        jobs: Batch,
        unattended: Vec<Arc<PoolClient>>,
    ) {
        let mut batches: Vec<(Arc<PoolClient>, Batch)> =
            unattended.into_iter().map(|client| (client, Vec::new())).collect();
        for ReadyJob { id, since, mut job } in jobs {
            if !job.is_wanted() {
                continue;
            }
            // The waker is in place before the job looks, so that no notification is lost.
            let waker = Waker::from(Arc::new(JobWaker { worker: Arc::clone(self), id }));
            while job.notify().take_notified(&waker) {}
            if let Some(progress) = job.submit() {
                self.proceed(id, job, progress);
                continue;
            }
            let client = job.client();
            let ready = ReadyJob { id, since, job };
            match batches.iter_mut().find(|(known, _)| Arc::ptr_eq(known, &client)) {
                Some((_, batch)) => batch.push(ready),
                None => batches.push((client, vec![ready])),
            }
        }
        for (client, batch) in batches {
            // Jobs that waited behind a step that failed share its failure. They must not wait for
            // the next step as well, which may take as long.
            let dispatcher = client.dispatcher();
            let (failed, batch): (Batch, Batch) =
                batch.into_iter().partition(|ready| dispatcher.has_failed_since(ready.since));
            drop(dispatcher);
            if !failed.is_empty() {
                self.run_batch(store_client, &client, failed);
            }
            self.run_batch(store_client, &client, batch);
        }
    }

    /// Goes to the store once for all jobs of a client.
    fn run_batch(&self, store_client: &Arc<StoreClient>, client: &Arc<PoolClient>, batch: Batch) {
        let waiting_since = batch.iter().map(|ready| ready.since).max();
        let mut dispatcher = client.dispatcher_since(waiting_since);
        let mut received = Vec::with_capacity(batch.len());
        for ReadyJob { id, mut job, .. } in batch {
            let progress = job.receive(&mut dispatcher);
            received.push((id, job, progress));
        }
        let pending = dispatcher.flush().is_err();
        drop(dispatcher);
        for (id, job, progress) in received {
            self.proceed(id, job, progress);
        }
        if pending {
            store_client.schedule_resend();
        }
    }

    fn proceed(&self, id: JobId, job: Box<dyn Job>, progress: Progress) {
        if progress == Progress::Done {
            job.finish();
            return;
        }
        let mut state = self.lock();
        state.jobs.insert(id, job);
        if progress == Progress::Again {
            state.ready.push((id, Local::now()));
        }
    }

    fn requeue(&self, id: JobId) {
        self.lock().ready.push((id, Local::now()));
        self.changed.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn is_idle(&self) -> bool {
        self.ready.is_empty()
            && self.unattended.is_empty()
            && self.attend.is_empty()
            && self.tasks.is_empty()
    }
}

/// Marks a job as ready when it is notified.
struct JobWaker {
    worker: Arc<IoWorker>,
    id: JobId,
}

impl Wake for JobWaker {
    fn wake(self: Arc<Self>) {
        self.worker.requeue(self.id);
    }
}

/// The result of a job or task, for the task that awaits it.
pub(crate) struct ResultSlot<T> {
    state: Mutex<SlotState<T>>,
    /// Notified when no caller waits for the result any more.
    notify: Arc<Notify>,
}

struct SlotState<T> {
    result: Option<T>,
    waker: Option<Waker>,
    abandoned: bool,
}

impl<T> ResultSlot<T> {
    pub(crate) fn new(notify: Arc<Notify>) -> Arc<Self> {
        let state = SlotState { result: None, waker: None, abandoned: false };
        Arc::new(Self { state: Mutex::new(state), notify })
    }

    /// Stores the result. Returns it if no caller waits for it.
    pub(crate) fn put(&self, result: T) -> Option<T> {
        let mut state = self.lock();
        if state.abandoned {
            return Some(result);
        }
        state.result = Some(result);
        None
    }

    /// Wakes the caller.
    pub(crate) fn wake(&self) {
        let waker = self.lock().waker.take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    pub(crate) fn poll(&self, context: &Context<'_>) -> Poll<T> {
        let mut state = self.lock();
        match state.result.take() {
            Some(result) => Poll::Ready(result),
            None => {
                state.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Marks that no caller waits any more. Returns a result that was not taken.
    pub(crate) fn abandon(&self) -> Option<T> {
        let mut state = self.lock();
        state.abandoned = true;
        let result = state.result.take();
        drop(state);
        self.notify.notify();
        result
    }

    pub(crate) fn is_wanted(&self) -> bool {
        !self.lock().abandoned
    }

    fn lock(&self) -> MutexGuard<'_, SlotState<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for IoWorker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IoWorker").field("jobs", &self.lock().jobs.len()).finish_non_exhaustive()
    }
}
