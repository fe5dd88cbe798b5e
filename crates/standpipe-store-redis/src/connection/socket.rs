//! A socket whose every read and write ends by a deadline.
//!
//! The system's timeout is for one call, so what arrives byte by byte would extend it without end.
//! Here the time that is left is computed before each call. The timeout of the socket is set to a
//! slice of that time, and only when it has to change: most calls need no system call for it.

use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use super::deadline::Deadline;

/// The longest single wait. A read that needs longer is repeated until the deadline.
const SLICE: Duration = Duration::from_millis(500);

/// The system rounds a timeout up, and zero means none.
const SHORTEST_WAIT: Duration = Duration::from_millis(1);

/// A connected socket.
#[derive(Debug)]
pub(crate) struct Socket {
    kind: Kind,
    read_timeout: Duration,
    write_timeout: Duration,
}

#[derive(Debug)]
enum Kind {
    Tcp(TcpStream),
    Unix(UnixStream),
}

#[derive(Clone, Copy)]
enum Direction {
    Read,
    Write,
}

impl Socket {
    /// Connects to the first address that answers. No address takes the time of those behind it.
    pub(crate) fn connect_tcp(addresses: &[SocketAddr], deadline: Deadline) -> Result<Self> {
        let mut last = Error::from(ErrorKind::NotFound);
        for (index, address) in addresses.iter().enumerate() {
            let share = deadline.share(addresses.len() - index);
            let Some(timeout) = share.remaining() else { return Err(timed_out()) };
            match TcpStream::connect_timeout(address, timeout) {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    return Self::new(Kind::Tcp(stream));
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Connects to a Unix socket. A server that does not accept makes `connect` wait, which the
    /// timeout for sending bounds.
    pub(crate) fn connect_unix(path: &Path, deadline: Deadline) -> Result<Self> {
        let Some(timeout) = deadline.remaining() else { return Err(timed_out()) };
        let (family, kind) = (AddressFamily::UNIX, SocketType::STREAM);
        let socket = socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
        set_socket_timeout(&socket, Timeout::Send, Some(timeout.max(SHORTEST_WAIT)))?;
        connect(&socket, &SocketAddrUnix::new(path)?).map_err(|error| {
            let error = Error::from(error);
            if is_timeout(&error) { timed_out() } else { error }
        })?;
        Self::new(Kind::Unix(UnixStream::from(socket)))
    }

    fn new(kind: Kind) -> Result<Self> {
        let mut socket = Self { kind, read_timeout: SLICE, write_timeout: SLICE };
        socket.set_timeout(Direction::Read, SLICE)?;
        socket.set_timeout(Direction::Write, SLICE)?;
        Ok(socket)
    }

    /// Reads what has arrived, or waits for it until the deadline.
    pub(crate) fn read(&mut self, buffer: &mut [u8], deadline: Deadline) -> Result<usize> {
        loop {
            self.bound(Direction::Read, deadline)?;
            let result = match &mut self.kind {
                Kind::Tcp(stream) => stream.read(buffer),
                Kind::Unix(stream) => stream.read(buffer),
            };
            match result {
                Err(error) if is_timeout(&error) => {}
                result => return result,
            }
        }
    }

    /// Writes some of the bytes, or waits for room until the deadline.
    pub(crate) fn write(&mut self, bytes: &[u8], deadline: Deadline) -> Result<usize> {
        loop {
            self.bound(Direction::Write, deadline)?;
            let result = match &mut self.kind {
                Kind::Tcp(stream) => stream.write(bytes),
                Kind::Unix(stream) => stream.write(bytes),
            };
            match result {
                Err(error) if is_timeout(&error) => {}
                result => return result,
            }
        }
    }

    /// Writes all of the bytes. After an error some may have been written.
    pub(crate) fn write_all(&mut self, mut bytes: &[u8], deadline: Deadline) -> Result<()> {
        while !bytes.is_empty() {
            match self.write(bytes, deadline)? {
                0 => return Err(ErrorKind::WriteZero.into()),
                written => bytes = &bytes[written..],
            }
        }
        Ok(())
    }

    /// Makes the next call end by the deadline, or a little earlier.
    fn bound(&mut self, direction: Direction, deadline: Deadline) -> Result<()> {
        let Some(left) = deadline.remaining() else { return Err(timed_out()) };
        let now = match direction {
            Direction::Read => self.read_timeout,
            Direction::Write => self.write_timeout,
        };
        let wanted = left.min(SLICE).max(SHORTEST_WAIT);
        // A timeout that is a little short only costs another call.
        if now > wanted || now * 4 < wanted { self.set_timeout(direction, wanted) } else { Ok(()) }
    }

    fn set_timeout(&mut self, direction: Direction, timeout: Duration) -> Result<()> {
        let some = Some(timeout);
        match (&self.kind, direction) {
            (Kind::Tcp(stream), Direction::Read) => stream.set_read_timeout(some)?,
            (Kind::Tcp(stream), Direction::Write) => stream.set_write_timeout(some)?,
            (Kind::Unix(stream), Direction::Read) => stream.set_read_timeout(some)?,
            (Kind::Unix(stream), Direction::Write) => stream.set_write_timeout(some)?,
        }
        match direction {
            Direction::Read => self.read_timeout = timeout,
            Direction::Write => self.write_timeout = timeout,
        }
        Ok(())
    }
}

/// A socket with a deadline, for code that reads and writes by itself.
#[derive(Debug)]
pub(crate) struct Bounded<'a>(pub(crate) &'a mut Socket, pub(crate) Deadline);

impl Read for Bounded<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        self.0.read(buffer, self.1)
    }
}

impl Write for Bounded<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.0.write(bytes, self.1)
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

/// The error of a call whose deadline has passed.
pub(crate) fn timed_out() -> Error {
    ErrorKind::TimedOut.into()
}

fn is_timeout(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
