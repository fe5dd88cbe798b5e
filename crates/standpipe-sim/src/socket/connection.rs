//! One client: its requests in their order, each decided, held for its service time and answered.

use std::net::TcpStream;
use std::time::Duration;

use super::Shared;
use super::calls::{Asked, Decided};
use super::fault::{self, Fault};
use super::http::{Request, Wire, Wrong};
use super::stream::{self, Wish};
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
        let Some(mut reply) = answer(&request, shared) else { return };
        fault::distort(&request, &mut reply);
        let fault = Fault::of(&request);
        if let Some(status) = fault.informs
            && wire.inform(status).is_err()
        {
            return;
        }
        let sent = match stream::events(&reply, Wish::of(&request.body)) {
            Some(events) => send_stream(&mut wire, &fault, &reply, &events, shared),
            None => send_whole(&mut wire, &request, &fault, &reply),
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

/// Returns every message until one end closes. It is one call all the while.
fn serve_websocket(wire: &mut Wire, request: &Request, shared: &Shared) {
    let decided = {
        let mut calls = shared.calls();
        let now = shared.clock.now();
        calls.arrive(now, asked(request))
    };
    shared.happened.notify_all();
    let ticket = match decided {
        Decided::Accepted(ticket) => ticket,
        Decided::Refused(reply) => {
            let _sent = wire.reply(reply.status, &reply.headers, &reply.body, None);
            return;
        }
        Decided::Full => return,
    };
    let key = request.header("sec-websocket-key").unwrap_or_default();
    // It ends when either end closes it, whichever way.
    let _ended = wire.echo(&websocket::accept(key));
    let mut calls = shared.calls();
    let now = shared.clock.now();
    let _reply = calls.finish(now, &ticket, Used::default());
    drop(calls);
    shared.happened.notify_all();
}

/// Sends a reply as a stream. Returns whether it arrived whole.
fn send_stream(
    wire: &mut Wire,
    fault: &Fault,
    reply: &Reply,
    events: &[String],
    shared: &Shared,
) -> bool {
    if wire.begin_stream(&reply.headers).is_err() {
        return false;
    }
    for (at, event) in (0_u64..).zip(events) {
        if fault.breaks == Some(at) {
            return false;
        }
        if fault.resets == Some(at) {
            wire.reset();
            return false;
        }
        if fault.stalls == Some(at) {
            wire.until_closed();
            return false;
        }
        if fault.fails == Some(at) {
            return wire.chunk(&stream::error(events)).and_then(|()| wire.chunk("")).is_ok();
        }
        let until = shared.clock.now().saturating_add(fault.chunk_ms.saturating_mul(1_000));
        if !shared.clock.wait_until(until) || wire.chunk(event).is_err() {
            return false;
        }
    }
    wire.chunk("").is_ok()
}

/// There are as many connections as may be.
pub(super) fn turn_away(stream: TcpStream) {
    if let Ok(mut wire) = Wire::new(stream, Duration::from_millis(100)) {
        let _told = wire.reply(503, &[], b"", None);
    }
}

/// The reply to a request; none when the server stops first.
fn answer(request: &Request, shared: &Shared) -> Option<Reply> {
    if request.method == "GET" && request.path() == "/log" {
        return Some(log(request, shared));
    }
    let asked = asked(request);
    let call = asked.call;
    let (decided, now) = {
        let mut calls = shared.calls();
        let now = shared.clock.now();
        let wish = request.header("x-refuse-once");
        let refused = wish.and_then(|wish| calls.refuse_once(now, &asked, wish));
        (refused.map_or_else(|| calls.arrive(now, asked), Decided::Refused), now)
    };
    shared.happened.notify_all();
    let ticket = match decided {
        Decided::Accepted(ticket) => ticket,
        Decided::Refused(reply) => return Some(reply),
        Decided::Full => return Some(plain(503, "text/plain", b"the log is full\n".to_vec())),
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
        calls.finish(now, &ticket, used)
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
    let model = stream::model(&request.body);
    Asked { key, path, agent: text("x-agent"), model, lease: text("x-lease"), call }
}

/// Where the clients of real providers put the API key.
const KEYS: [&str; 4] = ["authorization", "x-api-key", "api-key", "x-goog-api-key"];
