//! One HTTP exchange on a connection that is kept: as much of HTTP/1.1 as the provider and the
//! daemon of a scene answer with.

use std::io::{self, Read, Write};
use std::net::TcpStream;

/// What was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The status.
    pub status: u16,
    /// The body.
    pub body: String,
}

/// Sends a request and reads the reply.
///
/// # Errors
/// When the connection ends or fails before the reply has arrived.
pub fn exchange(stream: &mut (impl Read + Write), request: &str) -> io::Result<Reply> {
    stream.write_all(request.as_bytes())?;
    let (mut bytes, mut piece) = (Vec::new(), [0; 4_096]);
    loop {
        if let Some(reply) = whole(&bytes) {
            return Ok(reply);
        }
        match stream.read(&mut piece)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => bytes.extend_from_slice(&piece[..count]),
        }
    }
}

/// The reply, once it has arrived with its body.
fn whole(bytes: &[u8]) -> Option<Reply> {
    let text = String::from_utf8_lossy(bytes);
    let (head, body) = text.split_once("\r\n\r\n")?;
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        let is_length = name.eq_ignore_ascii_case("content-length");
        is_length.then(|| value.trim().parse::<usize>().ok()).flatten()
    });
    let status = head.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or_default();
    let is_whole = body.len() >= length.unwrap_or_default();
    is_whole.then(|| Reply { status, body: body.to_owned() })
}

/// A caller's connection to the provider of a scene.
#[derive(Debug)]
pub struct ProviderClient {
    address: String,
    agent: String,
    stream: Option<TcpStream>,
}

impl ProviderClient {
    /// One that is not connected yet.
    #[must_use]
    pub fn new(address: &str, agent: &str) -> Self {
        Self { address: address.to_owned(), agent: agent.to_owned(), stream: None }
    }

    /// Makes a call under a lease, which takes so many milliseconds.
    ///
    /// # Errors
    /// When the reply does not arrive. The next call connects anew.
    pub fn call(&mut self, pool: &str, lease: &str, service: u64) -> io::Result<()> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => {
                let stream = TcpStream::connect(&self.address)?;
                stream.set_nodelay(true)?;
                stream
            }
        };
        let agent = &self.agent;
        let request = format!(
            "POST /{pool} HTTP/1.1\r\nhost: x\r\nx-agent: {agent}\r\nx-lease: {lease}\r\n\
             x-service-ms: {service}\r\n\r\n"
        );
        exchange(&mut stream, &request)?;
        self.stream = Some(stream);
        Ok(())
    }
}
