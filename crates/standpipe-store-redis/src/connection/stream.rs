//! Commands and replies over a socket, with TLS or without.
//!
//! What has arrived of a reply stays here when a deadline passes, so a later read continues with
//! it.

use std::io::{Error, ErrorKind, Read, Result, Write};
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};

use super::deadline::Deadline;
use super::error::Failure;
use super::socket::{Bounded, Socket};
use crate::protocol::resp::{Reply, Unparsed, parse};

/// The size of the buffer for replies. It grows with a longer one, and shrinks afterwards.
const BUFFER_BYTES: usize = 4_096;

/// A connection that carries commands and replies.
#[derive(Debug)]
pub(crate) struct Stream {
    socket: Socket,
    tls: Option<Box<ClientConnection>>,
    /// `received[start..end]` has arrived and was not parsed yet.
    received: Vec<u8>,
    start: usize,
    end: usize,
}

impl Stream {
    /// A connection without TLS.
    pub(crate) const fn plain(socket: Socket) -> Self {
        Self { socket, tls: None, received: Vec::new(), start: 0, end: 0 }
    }

    /// A connection with TLS to the server that has a certificate for `name`.
    pub(crate) fn encrypted(
        mut socket: Socket,
        config: Arc<ClientConfig>,
        name: ServerName<'static>,
        deadline: Deadline,
    ) -> Result<Self> {
        let mut tls = ClientConnection::new(config, name).map_err(Error::other)?;
        while tls.is_handshaking() {
            tls.complete_io(&mut Bounded(&mut socket, deadline))?;
        }
        Ok(Self { tls: Some(Box::new(tls)), ..Self::plain(socket) })
    }

    /// Sends bytes. After an error some of them may have been sent: then the connection is useless.
    pub(crate) fn send(&mut self, mut bytes: &[u8], deadline: Deadline) -> Result<()> {
        let Some(tls) = &mut self.tls else { return self.socket.write_all(bytes, deadline) };
        while !bytes.is_empty() {
            let taken = tls.writer().write(bytes)?;
            bytes = &bytes[taken..];
            while tls.wants_write() {
                tls.write_tls(&mut Bounded(&mut self.socket, deadline))?;
            }
        }
        Ok(())
    }

    /// Returns the next reply.
    pub(crate) fn receive(&mut self, deadline: Deadline) -> std::result::Result<Reply, Failure> {
        let mut needed = 1;
        loop {
            if self.end - self.start >= needed {
                match parse(&self.received[self.start..self.end]) {
                    Ok((reply, length)) => {
                        self.start += length;
                        self.release_buffer();
                        return Ok(reply);
                    }
                    Err(Unparsed::Incomplete { at_least }) => needed = at_least,
                    Err(Unparsed::Malformed) => return Err(Failure::Malformed),
                }
            }
            self.receive_more(needed, deadline)?;
        }
    }

    /// Makes room for a reply of `needed` bytes and reads what has arrived.
    fn receive_more(&mut self, needed: usize, deadline: Deadline) -> Result<()> {
        self.received.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        if self.end == self.received.len() || self.received.is_empty() {
            // The length is only claimed: room grows with what has arrived.
            let size = needed.clamp(BUFFER_BYTES, (self.end * 2).max(BUFFER_BYTES));
            self.received.resize(size.max(self.end + BUFFER_BYTES), 0);
        }
        let room = &mut self.received[self.end..];
        let length = match &mut self.tls {
            None => self.socket.read(room, deadline)?,
            Some(tls) => read_encrypted(tls, &mut self.socket, room, deadline)?,
        };
        self.end += length;
        if length == 0 { Err(ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }

    /// Frees the memory of a long reply when nothing of the next one has arrived.
    fn release_buffer(&mut self) {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
            if self.received.len() > 16 * BUFFER_BYTES {
                self.received = Vec::new();
            }
        }
    }
}

fn read_encrypted(
    tls: &mut ClientConnection,
    socket: &mut Socket,
    room: &mut [u8],
    deadline: Deadline,
) -> Result<usize> {
    loop {
        match tls.reader().read(room) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            result => return result,
        }
        let mut bounded = Bounded(socket, deadline);
        if tls.read_tls(&mut bounded)? == 0 {
            return Ok(0);
        }
        let processed = tls.process_new_packets();
        // An alert, or the answer to a request for new keys.
        while tls.wants_write() {
            tls.write_tls(&mut bounded)?;
        }
        processed.map_err(|error| Error::new(ErrorKind::InvalidData, error))?;
    }
}
