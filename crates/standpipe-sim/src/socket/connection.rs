//! One client: its requests in their order, each decided, held for its service time and answered.

use std::net::TcpStream;
use std::time::Duration;

use super::Shared;
use super::api::{self, Answer};
use super::calls::{Asked, DecisionRecord};
use super::fault::{self, Fault};
use super::http::{Request, Wire, Wrong};
use super::realtime::{self, Session};
use super::stream;
use super::websocket;
use crate::provider::{Call, Reply, Used};

/// Serves a connection until the client closes it, breaks a bound, or the server stops.
pub(super) fn serve(stream: TcpStream, shared: &Shared) {
    let Ok(mut wire) = Wire::new(stream, shared.patience) else { return };
    loop {
        let request = match wire.request() {
            Ok(request) => request,
            Err(Wrong::Closed) => return,
            Err(Wrong::Answer(status)) => {
                // The connection ends either way.
                let _told = wire.reply(status, &[], b"", None);
                return;
            }
        };
        if request.header("upgrade").is_some_and(|to| to.eq_ignore_ascii_case("websocket")) {
            serve_websocket(&mut wire, &request, shared);
            return;
        }
        let Some(reply) = answer(&request, shared) else { return };
        let fault = Fault::of(&request);
        if let Some(status) = fault.informs
            && wire.inform(status).is_err()
        {
            return;
        }
        let sent = match reply {
            Answer::Stream(events) => stream::send(&mut wire, &fault, &events, shared),
            Answer::Whole(reply) => send_whole(&mut wire, &request, &fault, &reply),
        };
        if !sent || !request.keep_alive || fault.closes {
            return;
        }
    }
}

/// Sends a reply with its length. Returns whether it arrived whole.
fn send_whole(wire: &mut Wire, request: &Request, fault: &Fault, reply: &Reply) -> bool {
    let sent = match fault.truncates {
        Some(count) => wire.reply_part(reply, count).is_ok(),
        None => wire.reply(reply.status, &reply.headers, &reply.body, Some(request)).is_ok(),
    };
    sent && fault.truncates.is_none()
}

/// Serves a realtime session until one end closes it. It is one call all the while.
fn serve_websocket(wire: &mut Wire, request: &Request, shared: &Shared) {
    let decided = {
        let mut calls = shared.calls();
        let now = shared.clock.now();
        let model = realtime::model(request).to_owned();
        calls.arrive(now, Asked { model, ..asked(request) })
    };
    shared.happened.notify_all();
    let ticket = match decided {
        DecisionRecord::Accepted(ticket) => ticket,
        DecisionRecord::Refused(reply) => {
            let _sent = wire.reply(reply.status, &reply.headers, &reply.body, None);
            return;
        }
        DecisionRecord::Full => return,
    };
    let key = request.header("sec-websocket-key").unwrap_or_default();
    // It ends when either end closes it, whichever way.
    let mut session = Session::new(request);
    let _ended = wire.websocket(&websocket::accept(key), &mut session);
    let mut calls = shared.calls();
    let now = shared.clock.now();
    let _reply = calls.finish(now, &ticket, session.used(), None);
    drop(calls);
    shared.happened.notify_all();
}

/// There are as many connections as may be.
pub(super) fn turn_away(stream: TcpStream) {
    if let Ok(mut wire) = Wire::new(stream, Duration::from_millis(100)) {
        let _told = wire.reply(503, &[], b"", None);
    }
}

/// The reply to a request; none when the server stops first.
fn answer(request: &Request, shared: &Shared) -> Option<Answer> {
    if request.method == "GET" && request.path() == "/log" {
        return Some(Answer::Whole(log(request, shared)));
    }
    let mut reply = reply(request, shared)?;
    // The usage that a stream states comes from the reply.
    if request.header("x-usage").is_some() {
        fault::distort(request, &mut reply);
    }
    let mut answer = api::answer(shared.shape, request, reply);
    match &mut answer {
        Answer::Whole(reply) => fault::distort(request, reply),
        Answer::Stream(events) => fault::distort(request, &mut events.head),
    }
    Some(answer)
}

/// What the limiter says to a request; nothing when the server stops first.
fn reply(request: &Request, shared: &Shared) -> Option<Reply> {
    let asked = asked(request);
    let call = asked.call;
    let (decided, now) = {
        let mut calls = shared.calls();
        let now = shared.clock.now();
        let wish = request.header("x-refuse-once");
        let refused = wish.and_then(|wish| calls.refuse_once(now, &asked, wish));
        (refused.map_or_else(|| calls.arrive(now, asked), DecisionRecord::Refused), now)
    };
    shared.happened.notify_all();
    let ticket = match decided {
        DecisionRecord::Accepted(ticket) => ticket,
        DecisionRecord::Refused(reply) => return Some(reply),
        DecisionRecord::Full => {
            return Some(plain(503, "text/plain", b"the log is full\n".to_vec()));
        }
    };
    let service = request.number("x-service-ms").map(|ms| ms.saturating_mul(1_000));
    if !shared.clock.wait_until(now.saturating_add(service.unwrap_or(shared.service))) {
        return None;
    }
    let used = Used {
        input: request.number("x-used-input").unwrap_or(call.input),
        output: request.number("x-used-output").unwrap_or(call.max_output),
        cache_read: request.number("x-used-cache-read").unwrap_or(0),
        ..Used::default()
    };
    let reply = {
        let mut calls = shared.calls();
        let now = shared.clock.now();
        calls.finish(now, &ticket, used, api::failure(request))
    };
    shared.happened.notify_all();
    reply
}

/// The log, a JSON object per line; `?after=N` leaves out the first N calls.
fn log(request: &Request, shared: &Shared) -> Reply {
    let after = request.target.split_once("?after=").and_then(|(_, after)| after.parse().ok());
    let calls = shared.calls();
    let shown = calls.log().iter().skip(after.unwrap_or(0));
    let lines: String = shown.map(|logged| format!("{}\n", logged.json())).collect();
    drop(calls);
    plain(200, "application/x-ndjson", lines.into_bytes())
}

fn plain(status: u16, content: &str, body: Vec<u8>) -> Reply {
    Reply { status, headers: vec![("content-type".to_owned(), content.to_owned())], body }
}

/// What a request asks of the provider.
fn asked(request: &Request) -> Asked {
    let text = |name: &str| request.header(name).unwrap_or_default().to_owned();
    let writes = !matches!(request.method.as_str(), "GET" | "HEAD");
    let path = request.path().to_owned();
    let call = Call {
        agent: 0,
        // As providers estimate it before they read it: four bytes are a token.
        input: request.number("x-input-tokens").unwrap_or(request.length / 4),
        max_output: request.number("x-max-output-tokens").unwrap_or(0),
        writes,
        creates: request.method == "POST",
        graphql: path.ends_with("/graphql"),
    };
    let key = KEYS.iter().find_map(|name| request.header(name)).unwrap_or_default();
    let key = key.strip_prefix("Bearer ").unwrap_or(key).to_owned();
    let model = api::model_named(&request.body);
    Asked { key, path, agent: text("x-agent"), model, lease: text("x-lease"), call }
}

/// Where the clients of real providers put the API key.
const KEYS: [&str; 4] = ["authorization", "x-api-key", "api-key", "x-goog-api-key"];
