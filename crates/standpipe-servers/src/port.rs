//! A port that the system chose and that stays ours, also while the server on it is dead.
//!
//! It is held by a socket that is bound and does not listen. Linux lets a server that reuses
//! addresses, as Redis does, listen on the same port beside it, and gives it to nobody else: not to
//! another test that asks for a port, and not to a connection that goes out.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::OwnedFd;

use rustix::net::{
    AddressFamily, SocketFlags, SocketType, bind, getsockname, socket_with, sockopt,
};

#[derive(Debug)]
pub(crate) struct Port {
    number: u16,
    _held: OwnedFd,
}

impl Port {
    /// A port of this machine that nobody else uses.
    pub(crate) fn new() -> Self {
        match Self::choose() {
            Ok(port) => port,
            Err(error) => panic!("the system gives no port on 127.0.0.1: {error}"),
        }
    }

    fn choose() -> std::io::Result<Self> {
        let held = bound(0)?;
        let number = SocketAddr::try_from(getsockname(&held)?)?.port();
        Ok(Self { number, _held: held })
    }

    pub(crate) fn number(&self) -> u16 {
        self.number
    }

    /// A socket on this port, beside the one that holds it; it does not listen yet.
    pub(crate) fn socket(&self) -> std::io::Result<OwnedFd> {
        bound(self.number)
    }
}

fn bound(port: u16) -> std::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, port))?;
    Ok(socket)
}
