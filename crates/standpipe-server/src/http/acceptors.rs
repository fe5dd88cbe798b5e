//! The threads that accept connections, each with an event loop of its own.
//!
//! A connection stays on the thread that accepted it, so answering wakes no other thread: such a
//! wake-up costs more than the answer.

use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::sync::Arc;

use tokio::runtime::Runtime;
use tokio::sync::mpsc;

use super::connections;
use super::service::HttpService;
use crate::failure::Failure;
use crate::state::AppState;

/// The most threads. More than four contend for the pools' own locks.
const MAX_THREADS: usize = 4;

/// The sockets that connections arrive on.
pub(crate) struct Listeners {
    pub(crate) tcp: TcpListener,
    pub(crate) unix: UnixListener,
}

/// The running acceptor threads.
pub(crate) struct Acceptors {
    running: mpsc::Receiver<()>,
}

impl Acceptors {
    /// Starts one thread per core, at least two.
    pub(crate) fn start(
        state: &Arc<AppState>,
        service: &HttpService,
        listeners: &Listeners,
    ) -> Result<Self, Failure> {
        let cores = std::thread::available_parallelism().map_or(2, |cores| cores.get());
        // No message is ever sent: the channel closes when the last thread drops its sender.
        let (alive, running) = mpsc::channel(1);
        for _ in 0..cores.clamp(2, MAX_THREADS) {
            let (state, service, alive) = (Arc::clone(state), service.clone(), alive.clone());
            let listeners = listeners.duplicate().map_err(|error| cannot_start(&error))?;
            let runtime = runtime()?;
            let thread = std::thread::Builder::new().name("standpipe".to_owned());
            let started = thread.spawn(move || {
                runtime.block_on(listeners.serve(&state, service));
                // A blocking step may still run; the daemon does not wait for it.
                runtime.shutdown_background();
                drop(alive);
            });
            started.map_err(|error| cannot_start(&error))?;
        }
        Ok(Self { running })
    }

    /// Waits until every thread has ended.
    pub(crate) async fn ended(mut self) {
        while self.running.recv().await.is_some() {}
    }
}

impl Listeners {
    fn duplicate(&self) -> std::io::Result<Self> {
        self.tcp.set_nonblocking(true)?;
        self.unix.set_nonblocking(true)?;
        Ok(Self { tcp: self.tcp.try_clone()?, unix: self.unix.try_clone()? })
    }

    async fn serve(self, state: &Arc<AppState>, service: HttpService) {
        let tcp = tokio::net::TcpListener::from_std(self.tcp);
        let unix = tokio::net::UnixListener::from_std(self.unix);
        match (tcp, unix) {
            (Ok(tcp), Ok(unix)) => connections::serve(Arc::clone(state), service, tcp, unix).await,
            (Err(error), _) | (_, Err(error)) => tracing::error!("cannot listen: {error}"),
        }
    }
}

/// A single-threaded event loop.
pub(crate) fn runtime() -> Result<Runtime, Failure> {
    let built = tokio::runtime::Builder::new_current_thread()
        .max_blocking_threads(32)
        .thread_name("standpipe")
        .enable_all()
        .build();
    built.map_err(|error| cannot_start(&error))
}

fn cannot_start(error: &std::io::Error) -> Failure {
    Failure::new(
        format!("cannot start a thread: {error}"),
        "free threads or file descriptors, then start again",
    )
}
