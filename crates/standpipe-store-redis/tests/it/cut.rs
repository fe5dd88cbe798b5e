//! Networks that are cut and healed, by proxies and by pulled cables, for longer than a window.

use standpipe_core::{Limit, Span};
use standpipe_servers::{Gate, Namespace, Options as ServerOptions, Server};

use crate::support::crew::{Crew, PERIOD};
use crate::support::{assert_never_over, assert_whole, parallel, pass, requests, store};

const LIMIT: usize = 30;

fn limits() -> Vec<Limit> {
    vec![requests(LIMIT as u64, PERIOD), parallel(6)]
}

/// Longer than a window, and than a call waits for its answer.
const OUTAGE: Span = Span::millis(1_500);

#[test]
fn b20_a_cable_pulled_for_longer_than_a_window_brings_nothing_into_the_next() {
    let namespace = Namespace::new();
    let inside = Some(namespace.name());
    let server =
        Server::start_with(ServerOptions { namespace: inside, ..ServerOptions::default() });
    let crew = Crew::start(4, &server.url(), &limits());
    for _ in 0..2 {
        crew.goes_on(10);
        namespace.cut();
        pass(&server, OUTAGE);
        namespace.heal();
    }
    crew.goes_on(10);
    assert_never_over(&crew.stop(), LIMIT, PERIOD);
    assert_whole(&store(&server.url()));
}

#[test]
fn b20_a_way_that_swallows_everything_for_a_while_does_no_harm() {
    let server = Server::start();
    let gate = Gate::before(&server);
    let crew = Crew::start(4, &gate.url(), &limits());
    for _ in 0..2 {
        crew.goes_on(10);
        gate.stall();
        pass(&server, OUTAGE);
        gate.heal();
    }
    crew.goes_on(10);
    assert_never_over(&crew.stop(), LIMIT, PERIOD);
    assert_whole(&store(&server.url()));
}

#[test]
fn a_way_that_is_closed_and_opened_again_and_again_does_no_harm() {
    let server = Server::start();
    let gate = Gate::before(&server);
    let crew = Crew::start(4, &gate.url(), &limits());
    for _ in 0..10 {
        crew.goes_on(3);
        gate.cut();
        gate.heal();
    }
    crew.goes_on(3);
    let news = crew.take_messages();
    assert!(!news.contains("was lost") && !news.contains("another server"), "{news}");
    assert_never_over(&crew.stop(), LIMIT, PERIOD);
    assert_whole(&store(&server.url()));
}
