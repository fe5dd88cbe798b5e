//! The end of a lease, whatever happened to its call.
//!
//! A [`Settlement`] goes with the answer's body. When the body has passed, the lease is settled
//! with the usage that the answer stated; when it is dropped before, with what was seen by then.

use std::io::Write;
use std::sync::Arc;

use flate2::write::GzDecoder;
use standpipe::{Error, Lease, Operation, Reply, StreamedReply, Unit};
use tokio::runtime::Handle;

use super::caller::Caller;
use super::hold::Call;
use super::prompt_cache::SizedCall;
use super::recent::{Prices, ProxiedCall, cost};
use crate::state::AppState;
use crate::watch::history::millis;

/// A lease, and the answer that settles it while it passes.
pub(crate) struct Settlement {
    state: Arc<AppState>,
    caller: Caller,
    cached: Option<SizedCall>,
    /// How the call is shown when it has ended, with the status of its answer.
    shown: (ProxiedCall, u16),
    prices: Prices,
    /// A stream is complete only with its last event; the end of any other body is its end.
    is_stream: bool,
    open: Option<(Lease, StreamedReply)>,
    encoding: Encoding,
    /// The input was reported, before the end of a stream.
    reported: bool,
}

/// How the answer is compressed. The client gets it as it is; only what is read is decompressed.
enum Encoding {
    Plain,
    Gzip(Box<GzDecoder<Vec<u8>>>),
    /// Not readable: the call settles at its estimate.
    Unknown,
}

impl Settlement {
    pub(crate) fn new(
        call: &Call,
        (lease, status): (Lease, u16),
        reply: StreamedReply,
        encoding: Option<&str>,
    ) -> Self {
        let encoding = match encoding.map(str::trim) {
            None | Some("identity" | "") => Encoding::Plain,
            Some("gzip" | "x-gzip") => Encoding::Gzip(Box::new(GzDecoder::new(Vec::new()))),
            Some(_) => Encoding::Unknown,
        };
        Self {
            state: Arc::clone(&call.state),
            caller: call.caller.clone(),
            cached: call.cached.clone(),
            is_stream: call.facts.stream,
            shown: (ProxiedCall::of(call, millis(lease.waited())), status),
            prices: call.prices(),
            open: Some((lease, reply)),
            encoding,
            reported: false,
        }
    }

    /// Reads bytes of the body as they pass.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        let Some((lease, reply)) = &mut self.open else { return };
        match &mut self.encoding {
            Encoding::Plain => reply.feed(bytes),
            Encoding::Gzip(decoder) => {
                if decompress(decoder, bytes, reply).is_err() {
                    self.encoding = Encoding::Unknown;
                }
            }
            Encoding::Unknown => {}
        }
        if !self.reported
            && !reply.is_finished()
            && let Some(input) = reply.known_input()
        {
            self.reported = true;
            // A failure changes nothing: the end of the stream reports the input again.
            let progress = lease.progress([(Unit::InputTokens, input)]);
            after_the_response(progress, |_| {});
        }
    }

    /// The body has passed to its end.
    pub(crate) fn end(&mut self) {
        let Some((lease, reply)) = self.open.take() else { return };
        // A body that cannot be read states nothing: the call settles at its estimate.
        let is_unreadable = matches!(self.encoding, Encoding::Unknown);
        let whole = reply.is_finished() || is_unreadable || !self.is_stream;
        self.count(&reply);
        let used = reply.used();
        // The ledger computes the same; stated, it is in the journal as well.
        let is_known = self.prices.keys().all(|unit| used.of(unit).is_some());
        let money = (whole && is_known && !self.prices.is_empty())
            .then(|| (Unit::Usd, cost(&used, &self.prices)));
        settle(lease, money, if whole { reply.end() } else { reply.cut() });
    }
}

impl Settlement {
    fn count(&self, reply: &StreamedReply) {
        let used = reply.used();
        if let (Some(call), Some(input)) = (&self.cached, used.of(&Unit::InputTokens)) {
            self.state.prompt_caches.learn(call, input);
        }
        let (call, status) = &self.shown;
        self.state.recent_calls.add(call.clone().used(&used, &self.prices), *status);
        self.state.proxied.add(&self.caller, |own| {
            own.calls += 1;
            own.input_tokens += used.of(&Unit::InputTokens).unwrap_or(0);
            own.output_tokens += used.of(&Unit::OutputTokens).unwrap_or(0);
        });
    }
}

/// How many compressed bytes are decompressed at once. A thousandfold of them is kept for a moment.
const PIECE: usize = 1_024;

/// Reads what is compressed, without keeping it.
fn decompress(
    decoder: &mut GzDecoder<Vec<u8>>,
    bytes: &[u8],
    reply: &mut StreamedReply,
) -> std::io::Result<()> {
    for piece in bytes.chunks(PIECE) {
        decoder.write_all(piece)?;
        decoder.flush()?;
        reply.feed(&std::mem::take(decoder.get_mut()));
    }
    Ok(())
}

/// The client or the provider ended the connection.
impl Drop for Settlement {
    fn drop(&mut self) {
        if let Some((lease, reply)) = self.open.take() {
            self.count(&reply);
            let reply = if reply.is_finished() { reply.end() } else { reply.cut() };
            settle(lease, None, reply);
        }
    }
}

fn settle(lease: Lease, money: Option<(Unit, u64)>, reply: Reply) {
    after_the_response(lease.answered_using(reply, money), |error| {
        tracing::debug!(%error, "a proxied call was not settled with its usage");
    });
}

/// Runs an operation once the bytes that just arrived are passed on. Without a runtime the daemon
/// ends: the lease is then settled at its estimate with its session.
pub(super) fn after_the_response<T: Send + 'static>(
    operation: Operation<T>,
    failed: impl FnOnce(&Error) + Send + 'static,
) {
    let Ok(runtime) = Handle::try_current() else { return };
    runtime.spawn(async move {
        if let Err(error) = operation.await {
            failed(&error);
        }
    });
}
