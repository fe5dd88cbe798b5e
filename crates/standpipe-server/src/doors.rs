//! Threads that take connections, each with an event loop of its own.
//!
//! A connection stays with the thread that took it, so a call is answered without waking another
//! thread: that would cost more than the answer.

use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::sync::Arc;

use axum::Router;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

use crate::accept;
use crate::failure::Failure;
use crate::house::House;

/// How many there are at most: more than the pools' own steps can use.
const MOST: usize = 4;

/// Where connections come from.
pub(crate) struct Listeners {
    pub(crate) tcp: TcpListener,
    pub(crate) unix: UnixListener,
}

/// The threads that take connections, while they do.
pub(crate) struct Doors {
    open: mpsc::Receiver<()>,
}

impl Doors {
    /// Opens one per core.
    pub(crate) fn open(
        house: &Arc<House>,
        app: &Router,
        listeners: &Listeners,
    ) -> Result<Self, Failure> {
        let cores = std::thread::available_parallelism().map_or(2, |cores| cores.get());
        let (holds, open) = mpsc::channel(1);
        for _ in 0..cores.clamp(2, MOST) {
            let (house, app, holds) = (Arc::clone(house), app.clone(), holds.clone());
            let listeners = listeners.again().map_err(|error| cannot(&error))?;
            let runtime = runtime()?;
            let thread = std::thread::Builder::new().name("standpipe".to_owned());
            let begun = thread.spawn(move || {
                runtime.block_on(listeners.serve(&house, app));
                // Whatever a thread still waits for, nobody waits for that.
                runtime.shutdown_background();
                drop(holds);
            });
            begun.map_err(|error| cannot(&error))?;
        }
        Ok(Self { open })
    }

    /// Waits until all are closed, which they are soon after the daemon was told to stop.
    pub(crate) async fn closed(mut self) {
        while self.open.recv().await.is_some() {}
    }
}

impl Listeners {
    fn again(&self) -> std::io::Result<Self> {
        self.tcp.set_nonblocking(true)?;
        self.unix.set_nonblocking(true)?;
        Ok(Self { tcp: self.tcp.try_clone()?, unix: self.unix.try_clone()? })
    }

    async fn serve(self, house: &Arc<House>, app: Router) {
        let tcp = tokio::net::TcpListener::from_std(self.tcp);
        let unix = tokio::net::UnixListener::from_std(self.unix);
        match (tcp, unix) {
            (Ok(tcp), Ok(unix)) => accept::serve(Arc::clone(house), app, tcp, unix).await,
            (Err(error), _) | (_, Err(error)) => house.log.warn(&format!("cannot listen: {error}")),
        }
    }
}

/// An event loop of one thread.
pub(crate) fn runtime() -> Result<Runtime, Failure> {
    let built = tokio::runtime::Builder::new_current_thread()
        .max_blocking_threads(32)
        .thread_name("standpipe")
        .enable_all()
        .build();
    built.map_err(|error| cannot(&error))
}

fn cannot(error: &std::io::Error) -> Failure {
    Failure::new(format!("no threads can be started: {error}"), "end what uses them up; try again")
}
