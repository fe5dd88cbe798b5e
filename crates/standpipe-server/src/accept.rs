//! Taking connections: bounded in number, in the size of their headers, and in how long they may
//! say nothing.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::Router;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tower_service::Service;

use crate::guard::Via;
use crate::house::House;
use crate::peer::Peer;
use crate::stalls::Stalls;

/// How many connections are open at once.
pub(crate) const MOST: usize = 4_096;
/// How large the head of a request may be.
const LARGEST_HEAD: usize = 64 * 1024;
/// How long a connection may take for the head of its next request.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long those who are being answered when the daemon stops have left.
const DRAIN: Duration = Duration::from_secs(10);
/// After how long of silence it is looked whether the other end of a connection is still there.
const SILENCE: Duration = Duration::from_secs(30);

const TOO_MANY: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\n\
    x-standpipe-origin: ledger\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// Takes connections until the daemon stops, and then lets those that are open end.
pub(crate) async fn serve(house: Arc<House>, app: Router, tcp: TcpListener, unix: UnixListener) {
    let door = Door { house: Arc::clone(&house), app, open: GracefulShutdown::new() };
    let stops = house.stops();
    tokio::pin!(stops);
    loop {
        tokio::select! {
            came = tcp.accept() => match came {
                Ok((stream, _)) => door.take_tcp(stream),
                Err(error) => door.wait_a_moment(&error).await,
            },
            came = unix.accept() => match came {
                Ok((stream, _)) => door.take(stream, Via::Unix),
                Err(error) => door.wait_a_moment(&error).await,
            },
            () = &mut stops => break,
        }
    }
    drop((tcp, unix));
    tokio::select! {
        () = door.open.shutdown() => {}
        () = tokio::time::sleep(DRAIN) => {}
        () = house.ends_at_once() => {}
    }
}

struct Door {
    house: Arc<House>,
    app: Router,
    open: GracefulShutdown,
}

impl Door {
    fn take_tcp(&self, stream: TcpStream) {
        let Ok(ours) = stream.local_addr() else { return };
        // Small answers go at once, and an end that vanished is noticed in the end.
        let _best_effort = stream.set_nodelay(true);
        let _best_effort = rustix::net::sockopt::set_socket_keepalive(&stream, true);
        let _best_effort = rustix::net::sockopt::set_tcp_keepidle(&stream, SILENCE);
        self.take(stream, Via::Tcp(ours));
    }

    fn take<S>(&self, mut stream: S, via: Via)
    where
        S: AsyncRead + AsyncWrite + AsFd + Unpin + Send + 'static,
    {
        if self.house.connections.load(Ordering::Relaxed) >= MOST {
            tokio::spawn(async move {
                let told = stream.write_all(TOO_MANY);
                let _told_or_gone = tokio::time::timeout(Duration::from_secs(1), told).await;
            });
            return;
        }
        let counted = self.house.count_connection();
        let (app, peer) = (self.app.clone(), Peer::of(&stream));
        let service = service_fn(move |mut request: hyper::Request<Incoming>| {
            request.extensions_mut().insert(via);
            request.extensions_mut().insert(peer.clone());
            app.clone().call(request)
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(PATIENCE)
            .max_buf_size(LARGEST_HEAD)
            .serve_connection(TokioIo::new(Stalls::new(stream)), service);
        let watched = self.open.watch(connection);
        tokio::spawn(async move {
            // That the other end is gone concerns nobody here.
            let _ended = watched.await;
            drop(counted);
        });
    }

    /// Out of file descriptors, for example: others have to end first.
    async fn wait_a_moment(&self, error: &io::Error) {
        self.house.warn_of_connections(error);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
