//! The provider on a socket: over real connections it decides as the oracle says, by a clock that
//! the test moves, and no client can hold up another one.

mod api;
mod client;
mod crowd;
mod exact;
mod hostile_clients;
mod program;

use std::sync::Arc;

use standpipe_sim::{ManualClock, ProviderServer, Rule, ServerOptions, Shape, Unit};

const SECOND: u64 = 1_000_000;

/// A server by a clock of its own.
fn server(rules: &[Rule], shape: Shape) -> (ProviderServer, Arc<ManualClock>) {
    serve(ServerOptions::new(shape, rules.to_vec()))
}

fn serve(options: ServerOptions) -> (ProviderServer, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new());
    let shared: Arc<ManualClock> = Arc::clone(&clock);
    (ProviderServer::start_with(options, shared).unwrap(), clock)
}

const fn requests(amount: u64, period: u64) -> Rule {
    Rule::Rolling { unit: Unit::Requests, amount, period }
}
