//! What every call of the public API that talks to the store returns: `.await` it or call
//! [`Operation::blocking`].
//!
//! Nothing happens before that. Awaited, an operation never blocks its executor: it is tried
//! without waiting, and if the store is across a network or in use, the pool's worker takes over.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant as Local};

use standpipe_core::{Action, Answer};
use standpipe_store::StoreError;

use super::io_worker::{IoWorker, Job, Progress, ResultSlot, Task};
use super::notify::Notify;
use super::registry::StoreHandle;
use super::store_client::{FIRST_RETRY, LAST_RETRY, SEND_TIMEOUT, answers};
use super::{CallerId, Dispatcher, PoolClient, StoreClient};
use crate::error::Error;
use crate::moment::Now;

/// An operation on the store: `.await` it, or call [`Operation::blocking`].
///
/// Dropped before that, it does nothing. Dropped later, it still completes.
///
/// ```
/// # use standpipe::config::{Settings, StoreUrl};
/// # use standpipe::{Limit, Pool, Rule, Standpipe};
/// # fn main() -> Result<(), standpipe::Error> {
/// # let tap = Standpipe::builder().settings(Settings::default());
/// # let tap = tap.store(StoreUrl::Memory).open()?;
/// # let pool = tap.pool("doc/operation")?;
/// pool.limit(vec![Limit::new(Rule::Parallel { amount: 2 })]).blocking()?; // on a thread
///
/// async fn in_flight(pool: &Pool) -> Result<usize, standpipe::Error> {
///     Ok(pool.status().await?.in_flight) // in a task
/// }
/// # Ok(())
/// # }
/// ```
#[must_use = "nothing is done until this is awaited or `blocking` is called"]
pub struct Operation<T> {
    stage: Stage<T>,
}

enum Stage<T> {
    Created(Box<dyn FnOnce() -> Plan<T> + Send>),
    OnWorker(Arc<ResultSlot<Result<T, Error>>>),
    Done,
}

/// How an operation is carried out.
pub(crate) enum Plan<T> {
    /// It needs no store.
    Ready(Result<T, Error>),
    /// It sends actions to one pool in one step.
    Send(Sending<T>),
    /// It may block for several steps: on this worker's thread, unless the caller may block.
    Block(Worker, Box<dyn FnOnce() -> Result<T, Error> + Send>),
}

/// The thread that an operation may block.
pub(crate) struct Worker {
    pub(crate) thread: Arc<IoWorker>,
    pub(crate) handle: Arc<StoreHandle>,
}

/// Actions for one pool, and what becomes of their outcome.
pub(crate) struct Sending<T> {
    pub(crate) handle: Arc<StoreHandle>,
    pub(crate) client: Arc<PoolClient>,
    pub(crate) actions: Vec<Action>,
    pub(crate) then: Then<T>,
}

/// Turns the answers of the ledger into the result of an operation.
pub(crate) type Then<T> =
    Box<dyn FnOnce(Result<(Vec<Answer>, Now), Error>) -> Result<T, Error> + Send>;

impl<T: Send + 'static> Operation<T> {
    pub(crate) fn new(begin: impl FnOnce() -> Plan<T> + Send + 'static) -> Self {
        Self { stage: Stage::Created(Box::new(begin)) }
    }

    /// Carries the operation out on this thread. No runtime is needed.
    ///
    /// # Errors
    /// As the function that returned the operation says.
    pub fn blocking(mut self) -> Result<T, Error> {
        match std::mem::replace(&mut self.stage, Stage::Done) {
            Stage::Created(begin) => match begin() {
                Plan::Ready(result) => result,
                Plan::Block(_, run) => run(),
                Plan::Send(sending) => sending.blocking(),
            },
            _ => Err(Error::invalid("this operation already began", "call it again")),
        }
    }

    /// Changes the result of the operation.
    pub(crate) fn map<U: Send + 'static>(
        self,
        change: impl FnOnce(T) -> U + Send + 'static,
    ) -> Operation<U> {
        let Stage::Created(begin) = self.stage else {
            return Operation { stage: Stage::Done };
        };
        Operation::new(move || match begin() {
            Plan::Ready(result) => Plan::Ready(result.map(change)),
            Plan::Block(worker, run) => Plan::Block(worker, Box::new(move || run().map(change))),
            Plan::Send(Sending { handle, client, actions, then }) => {
                let then: Then<U> = Box::new(move |received| then(received).map(change));
                Plan::Send(Sending { handle, client, actions, then })
            }
        })
    }

    fn begin(plan: Plan<T>) -> Result<Stage<T>, Result<T, Error>> {
        match plan {
            Plan::Ready(result) => Err(result),
            Plan::Block(worker, run) => Ok(worker.run(run)),
            Plan::Send(sending) => sending.begin(),
        }
    }
}

impl<T: Send + 'static> Future for Operation<T> {
    type Output = Result<T, Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        if matches!(this.stage, Stage::Created(_))
            && let Stage::Created(begin) = std::mem::replace(&mut this.stage, Stage::Done)
        {
            match Self::begin(begin()) {
                Ok(stage) => this.stage = stage,
                Err(result) => return Poll::Ready(result),
            }
        }
        let Stage::OnWorker(slot) = &this.stage else {
            let error = Error::invalid("this operation already has its result", "call it again");
            return Poll::Ready(Err(error));
        };
        let result = ready!(slot.poll(context));
        this.stage = Stage::Done;
        Poll::Ready(result)
    }
}

impl Worker {
    /// The worker of a pool.
    pub(crate) fn of(handle: &Arc<StoreHandle>, client: &PoolClient) -> Self {
        Self { thread: Arc::clone(client.worker()), handle: Arc::clone(handle) }
    }

    fn run<T: Send + 'static>(self, run: Box<dyn FnOnce() -> Result<T, Error> + Send>) -> Stage<T> {
        let slot = ResultSlot::new(Arc::<Notify>::default());
        let result = Arc::clone(&slot);
        let task: Task = Box::new(move || {
            result.put(run());
            result.wake();
        });
        // Operations that block do not queue behind each other: with a store that does not answer
        // the last of a crowd would wait for all timeouts before its own.
        let mut task = Some(task);
        if RUNNING.fetch_add(1, Ordering::Relaxed) < MAX_THREADS {
            let own = Arc::new(Mutex::new(task.take()));
            let shared = Arc::clone(&own);
            let thread = std::thread::Builder::new().name("standpipe-op".to_owned());
            let spawned = thread.spawn(move || {
                if let Some(task) = take(&shared) {
                    task();
                }
                RUNNING.fetch_sub(1, Ordering::Relaxed);
            });
            if spawned.is_ok() {
                return Stage::OnWorker(slot);
            }
            task = take(&own);
        }
        RUNNING.fetch_sub(1, Ordering::Relaxed);
        if let Some(task) = task
            && let Err(task) = self.thread.run_task(self.handle.store_client(), task)
        {
            // Without a thread to hand it to, the operation blocks its caller.
            task();
        }
        Stage::OnWorker(slot)
    }
}

/// How many threads run operations that block. Beyond that they queue at their pool's worker.
const MAX_THREADS: usize = 256;

static RUNNING: AtomicUsize = AtomicUsize::new(0);

fn take(task: &Mutex<Option<Task>>) -> Option<Task> {
    task.lock().unwrap_or_else(PoisonError::into_inner).take()
}

impl<T: Send + 'static> Sending<T> {
    fn blocking(self) -> Result<T, Error> {
        let Self { handle, client, actions, then } = self;
        then(handle.store_client().settle(&client, actions))
    }

    /// Tries to send without waiting. Returns the result, or the stage that waits for it.
    fn begin(self) -> Result<Stage<T>, Result<T, Error>> {
        // Where an offline ledger may answer, several steps may be needed.
        if self.client.has_fallback() || self.client.is_offline() {
            let worker = Worker::of(&self.handle, &self.client);
            return Ok(worker.run(Box::new(move || self.blocking())));
        }
        let mut job = Box::new(SendJob::new(self));
        if !job.store_client().store().is_remote() {
            job.submit();
            let client = Arc::clone(&job.client);
            let progress = job.receive(&mut client.short_turn());
            if progress == Progress::Done {
                return Err(job.complete());
            }
        }
        let (slot, client) = (Arc::clone(&job.slot), Arc::clone(&job.client));
        let store_client = Arc::clone(job.store_client());
        if let Err(mut job) = client.worker().run_job(&store_client, job) {
            // Without a thread to hand it to, the operation blocks its caller.
            job.submit();
            while job.receive(&mut client.dispatcher()) != Progress::Done {
                std::thread::sleep(FIRST_RETRY);
            }
            job.finish();
        }
        Ok(Stage::OnWorker(slot))
    }
}

/// Actions that the pool's worker sends.
struct SendJob<T> {
    handle: Arc<StoreHandle>,
    client: Arc<PoolClient>,
    /// The actions, until they are in the submit queue.
    actions: Option<Vec<Action>>,
    then: Option<Then<T>>,
    caller: CallerId,
    notify: Arc<Notify>,
    slot: Arc<ResultSlot<Result<T, Error>>>,
    received: Option<Result<(Vec<Answer>, Now), Error>>,
    deadline: Local,
    retry: Duration,
    timer: Option<Local>,
}

impl<T> SendJob<T> {
    fn new(sending: Sending<T>) -> Self {
        let Sending { handle, client, actions, then } = sending;
        let notify = Arc::<Notify>::default();
        Self {
            caller: handle.store_client().caller(),
            handle,
            client,
            actions: Some(actions),
            then: Some(then),
            slot: ResultSlot::new(Arc::clone(&notify)),
            notify,
            received: None,
            deadline: Local::now() + SEND_TIMEOUT,
            retry: FIRST_RETRY,
            timer: None,
        }
    }

    fn store_client(&self) -> &Arc<StoreClient> {
        self.handle.store_client()
    }

    fn clear_timer(&mut self) {
        if let Some(at) = self.timer.take() {
            self.store_client().maintenance().clear_timer(at, self.caller);
        }
    }

    fn done(&mut self, received: Result<(Vec<Answer>, Now), Error>) -> Progress {
        self.clear_timer();
        self.received = Some(received);
        Progress::Done
    }

    fn complete(mut self) -> Result<T, Error> {
        let unanswered = || Err(StoreError::transient("the store did not answer in time").into());
        let received = self.received.take().unwrap_or_else(unanswered);
        match self.then.take() {
            Some(then) => then(received),
            None => Err(Error::invalid("this operation already has its result", "call it again")),
        }
    }
}

impl<T: Send + 'static> Job for SendJob<T> {
    fn client(&self) -> Arc<PoolClient> {
        Arc::clone(&self.client)
    }

    fn notify(&self) -> Arc<Notify> {
        Arc::clone(&self.notify)
    }

    fn is_wanted(&self) -> bool {
        // What was sent counts, whether or not a caller waits for the answer.
        true
    }

    fn submit(&mut self) -> Option<Progress> {
        if let Some(actions) = self.actions.take() {
            self.client.submit(self.caller, actions);
        }
        None
    }

    fn receive(&mut self, dispatcher: &mut Dispatcher) -> Progress {
        match dispatcher.answer(self.caller) {
            Ok(outcomes) => {
                let now = dispatcher.now();
                self.done(Ok((answers(outcomes), now)))
            }
            Err(_) if dispatcher.was_blocked() => Progress::Again,
            Err(error) if error.is_transient() && Local::now() + self.retry < self.deadline => {
                let at = Local::now() + self.retry;
                self.retry = (self.retry * 2).min(LAST_RETRY);
                let store_client = Arc::clone(self.store_client());
                if !store_client.maintenance().start(&store_client) {
                    return Progress::Again;
                }
                self.clear_timer();
                self.timer = Some(at);
                store_client.maintenance().set_timer(at, self.caller, &self.notify);
                Progress::Sleeping
            }
            Err(error) => {
                dispatcher.detach(self.caller);
                self.done(Err(error.into()))
            }
        }
    }

    fn finish(self: Box<Self>) {
        let slot = Arc::clone(&self.slot);
        slot.put(self.complete());
        slot.wake();
    }
}

impl<T> fmt::Debug for Operation<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operation").finish_non_exhaustive()
    }
}

/// Nothing inside points to itself.
impl<T> Unpin for Operation<T> {}
