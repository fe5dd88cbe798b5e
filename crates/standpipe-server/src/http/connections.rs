//! Accepts connections and serves HTTP/1.1 on them.
//!
//! Bounded: the number of connections, the size of a request's head, and every wait for the peer.

use std::convert::Infallible;
use std::io;
use std::os::fd::AsFd;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::StatusCode;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio::sync::mpsc;

use super::budget::ConnectionSlot;
use super::guard::Transport;
use super::peer::Peer;
use super::service::HttpService;
use super::write_timeout::WriteTimeout;
use crate::state::AppState;

/// The most connections over TCP.
pub(crate) const MAX_TCP: usize = 4_096;
/// The most connections over the Unix socket. A crowd on one transport leaves the other usable.
pub(crate) const MAX_UNIX: usize = 1_024;
/// The largest head of a request, in bytes.
const MAX_HEAD: usize = 64 * 1024;
/// How long a connection may take for the head of its first request.
const FIRST_HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a connection may be idle between requests, the next head included.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// How long requests in progress may take to end once the daemon stops.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);
/// After how long without traffic the kernel probes whether the peer still exists.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);

const TOO_MANY: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\n\
    x-standpipe-origin: ledger\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// Accepts connections until the daemon stops, then waits for open ones to end.
pub(crate) async fn serve(
    state: Arc<AppState>,
    service: HttpService,
    tcp: TcpListener,
    unix: UnixListener,
) {
    let (open, mut all_closed) = mpsc::channel(1);
    let acceptor = Acceptor { state: Arc::clone(&state), service, open };
    let stopped = state.stopped();
    tokio::pin!(stopped);
    loop {
        tokio::select! {
            accepted = tcp.accept() => match accepted {
                Ok((stream, _)) => acceptor.serve_tcp(stream),
                Err(error) => acceptor.back_off(&error).await,
            },
            accepted = unix.accept() => match accepted {
                Ok((stream, _)) => acceptor.serve(stream, Transport::Unix),
                Err(error) => acceptor.back_off(&error).await,
            },
            () = &mut stopped => break,
        }
    }
    drop((tcp, unix, acceptor));
    tokio::select! {
        _none = all_closed.recv() => {}
        () = tokio::time::sleep(DRAIN_TIMEOUT) => {}
        () = state.stopped_now() => {}
    }
}

struct Acceptor {
    state: Arc<AppState>,
    service: HttpService,
    /// Every open connection has a clone: the channel closes with the last one.
    open: mpsc::Sender<Infallible>,
}

impl Acceptor {
    fn serve_tcp(&self, stream: TcpStream) {
        let Ok(local) = stream.local_addr() else { return };
        // Small responses leave at once, and a vanished peer is noticed eventually.
        let _best_effort = stream.set_nodelay(true);
        let _best_effort = rustix::net::sockopt::set_socket_keepalive(&stream, true);
        let _best_effort = rustix::net::sockopt::set_tcp_keepidle(&stream, KEEPALIVE_IDLE);
        self.serve(stream, Transport::Tcp(local));
    }

    fn serve<S>(&self, mut stream: S, transport: Transport)
    where
        S: AsyncRead + AsyncWrite + AsFd + Unpin + Send + 'static,
    {
        let budget = match transport {
            Transport::Tcp(_) => &self.state.tcp_connections,
            Transport::Unix => &self.state.unix_connections,
        };
        let Some(slot) = budget.acquire() else {
            self.state.warn_of_connections(&"the maximum is open");
            tokio::spawn(async move {
                let refused = stream.write_all(TOO_MANY);
                let _sent_or_gone = tokio::time::timeout(Duration::from_secs(1), refused).await;
            });
            return;
        };
        let slot = Arc::new(slot);
        let (http, peer) = (Arc::new(self.service.clone()), Peer::of(&stream));
        let own: Arc<ConnectionSlot> = Arc::clone(&slot);
        let service = service_fn(move |request: hyper::Request<Incoming>| {
            own.head_arrived();
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(peer.clone());
            let (own, http) = (Arc::clone(&own), Arc::clone(&http));
            async move {
                let response = http.respond(transport, request).await;
                // A connection that became something else has no next head to wait for.
                if response.status() != StatusCode::SWITCHING_PROTOCOLS {
                    own.answered();
                }
                Ok::<_, Infallible>(response)
            }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(IDLE_TIMEOUT)
            .max_buf_size(MAX_HEAD)
            .serve_connection(TokioIo::new(WriteTimeout::new(stream, Arc::clone(&slot))), service)
            .with_upgrades();
        let (open, state) = (self.open.clone(), Arc::clone(&self.state));
        tokio::spawn(async move {
            let mut connection = pin!(connection);
            let served = async {
                tokio::select! {
                    // A peer that disconnects is no error of the daemon's.
                    _ended = &mut connection => return,
                    () = state.stopped() => connection.as_mut().graceful_shutdown(),
                }
                let _ended = connection.await;
            };
            tokio::select! {
                () = served => {}
                () = slot.overdue(FIRST_HEAD_TIMEOUT) => {}
            }
            drop(open);
        });
    }

    /// Waits after a failed accept, for example without free file descriptors, instead of spinning.
    async fn back_off(&self, error: &io::Error) {
        self.state.warn_of_connections(error);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
