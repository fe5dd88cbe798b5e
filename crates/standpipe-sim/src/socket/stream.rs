//! Sends an answer as a stream of server-sent events. `fault` breaks it on purpose.

use super::Shared;
use super::api::Events;
use super::fault::Fault;
use super::http::Wire;

/// Sends an answer as a stream. Returns whether it arrived whole.
pub(super) fn send(wire: &mut Wire, fault: &Fault, stream: &Events, shared: &Shared) -> bool {
    if wire.begin_stream(&stream.head.headers).is_err() {
        return false;
    }
    for (at, event) in (0_u64..).zip(&stream.events) {
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
            return wire.chunk(&stream.error).and_then(|()| wire.chunk("")).is_ok();
        }
        let until = shared.clock.now().saturating_add(fault.chunk_ms.saturating_mul(1_000));
        if !shared.clock.wait_until(until) || wire.chunk(event).is_err() {
            return false;
        }
    }
    wire.chunk("").is_ok()
}
