//! A stream of events, read one by one.

use serde_json::Value;

use super::Client;

/// An event of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) event: String,
    pub(crate) id: String,
    pub(crate) data: String,
}

impl Message {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// A stream that is open.
pub(crate) struct Sse {
    client: Client,
    unread: String,
}

impl Sse {
    #[track_caller]
    pub(crate) fn open(mut client: Client, path: &str, headers: &[&str]) -> Self {
        let mut all = vec!["accept: text/event-stream"];
        all.extend(headers);
        client.start("GET", path, &all, b"");
        let head = client.head().unwrap();
        assert_eq!(head.status, 200, "{head:?} {:?}", client.chunk());
        assert_eq!(head.header("content-type"), Some("text/event-stream"), "{head:?}");
        assert_eq!(head.header("cache-control"), Some("no-cache"), "{head:?}");
        Self { client, unread: String::new() }
    }

    /// The stream that answers a request which was sent.
    #[track_caller]
    pub(crate) fn begun(mut client: Client) -> Self {
        let head = client.head().unwrap();
        assert_eq!(head.status, 200, "{head:?}");
        Self { client, unread: String::new() }
    }

    /// The next event; none when the stream has ended. Signs of life are passed over.
    pub(crate) fn next(&mut self) -> Option<Message> {
        loop {
            if let Some((block, rest)) = self.unread.split_once("\n\n") {
                let message = read(block);
                self.unread = rest.to_owned();
                if let Some(message) = message {
                    return Some(message);
                }
                continue;
            }
            let piece = self.client.chunk()?;
            self.unread.push_str(&String::from_utf8(piece).unwrap());
        }
    }

    #[track_caller]
    pub(crate) fn expect(&mut self, event: &str) -> Message {
        let message = self.next().expect("the stream has ended");
        assert_eq!(message.event, event, "{message:?}");
        message
    }
}

fn read(block: &str) -> Option<Message> {
    let mut message = Message::default();
    for line in block.lines() {
        match line.split_once(": ") {
            Some(("event", event)) => message.event = event.to_owned(),
            Some(("id", id)) => message.id = id.to_owned(),
            Some(("data", data)) => message.data.push_str(data),
            _ => {}
        }
    }
    (!message.event.is_empty()).then_some(message)
}
