//! Sends an answer as a stream of server-sent events. Headers of the request break it on purpose,
//! see [`Fault`].

use super::Shared;
use super::api::Events;
use super::http::{Request, Wire};

/// What goes wrong with a stream, by the number of the event before which it does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Fault {
    /// The connection ends: `x-break-after`.
    breaks: Option<u64>,
    /// An error event ends it: `x-error-after`.
    fails: Option<u64>,
    /// How long each event takes, in milliseconds: `x-chunk-ms`.
    chunk_ms: u64,
}

/// Sends an answer as a stream. Returns whether it arrived whole.
pub(super) fn send(wire: &mut Wire, request: &Request, stream: &Events, shared: &Shared) -> bool {
    let fault = Fault {
        breaks: request.number("x-break-after"),
        fails: request.number("x-error-after"),
        chunk_ms: request.number("x-chunk-ms").unwrap_or(0),
    };
    if wire.begin_stream(&stream.head.headers).is_err() {
        return false;
    }
    for (at, event) in (0_u64..).zip(&stream.events) {
        if fault.breaks == Some(at) {
            return false;
        }
        if fault.fails == Some(at) {
            return wire.chunk(&stream.error).and_then(|()| wire.chunk("")).is_ok();
        }
        let until = shared.clock.now().saturating_add(fault.chunk_ms.saturating_mul(1_000));
        if !shared.clock.wait_until(until) || wire.chunk(event).is_err() {
            return false;
        }
    }
    wire.chunk("").is_ok()
}
