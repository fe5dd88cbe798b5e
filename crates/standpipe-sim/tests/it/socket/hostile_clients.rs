//! Clients that are slow, send too much, leave in the middle or never stop: each is bounded, and
//! none of them holds up another.

use std::time::Duration;

use standpipe_sim::{ProviderServer, ServerOptions, Shape};

use super::client::{Client, call};
use super::{SECOND, requests, serve, server};

#[test]
fn requests_sent_at_once_are_answered_in_order() {
    let (server, clock) = server(&[requests(2, SECOND)], Shape::Plain);
    let mut client = Client::new(server.address());
    let mut bytes = Vec::new();
    for (path, service) in [("/a", "30"), ("/b", "0"), ("/a", "0"), ("/a", "0")] {
        bytes.extend(call(path, &[("x-service-ms", service), ("content-length", "3")]));
        bytes.extend(b"abc");
    }
    client.send(&bytes);
    server.wait_until(|log| log.len() == 1);
    clock.advance_to(30_000);
    let statuses: Vec<u16> = (0..4).map(|_| client.answer().status).collect();
    assert_eq!(statuses, [200, 200, 200, 429]);
    let paths: Vec<_> = server.log().into_iter().map(|call| (call.path, call.arrived)).collect();
    // The second one is decided when the first is over.
    let wanted = [("/a", 0), ("/b", 30_000), ("/a", 30_000), ("/a", 30_000)];
    assert_eq!(paths, wanted.map(|(path, at)| (path.to_owned(), at)));
}

#[test]
fn heads_and_bodies_that_are_too_large_are_refused() {
    let (server, _clock) = server(&[], Shape::Plain);
    let long = format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(20_000));
    let many = format!("GET / HTTP/1.1\r\n{}", "x: y\r\n".repeat(10_000));
    let huge = "POST / HTTP/1.1\r\ncontent-length: 1048577\r\n\r\n".to_owned();
    let chunked = "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n".to_owned();
    for (bytes, status) in [(long, 431), (many, 431), (huge, 413), (chunked, 501)] {
        let mut client = Client::new(server.address());
        client.try_send(bytes.as_bytes());
        // With much unread the answer may be lost to a reset; then it is closed all the same.
        if let Some(answer) = client.answer_if_any() {
            assert_eq!(answer.status, status);
            assert!(client.answer_if_any().is_none(), "it is closed behind the answer");
        }
    }
    assert_eq!(server.log(), [], "none of them is a call");
}

#[test]
fn a_client_that_sends_half_a_head_is_given_up_and_holds_nobody_up() {
    let mut options = ServerOptions::new(Shape::Plain, Vec::new());
    options.patience = Duration::from_millis(200);
    let (server, _clock) = serve(options);
    let mut slow = Client::new(server.address());
    slow.send(b"POST /v1/x HTTP/1.1\r\nx-ag");
    let mut other = Client::new(server.address());
    other.call(&[]);
    assert_eq!(other.answer().status, 200);
    assert_eq!(slow.answer().status, 408);
    assert!(slow.answer_if_any().is_none());
    let mut short = Client::new(server.address());
    short.send(b"POST /v1/x HTTP/1.1\r\ncontent-length: 5\r\n\r\nab");
    assert_eq!(short.answer().status, 408, "a body that never comes");
    assert_eq!(server.log().len(), 1);
}

#[test]
fn a_client_that_leaves_is_served_to_the_end_all_the_same() {
    let rules = [standpipe_sim::Rule::Concurrency { amount: 1 }];
    let (server, clock) = server(&rules, Shape::Plain);
    let mut leaves = Client::new(server.address());
    leaves.call(&[("x-service-ms", "1000")]);
    server.wait_until(|log| log.len() == 1);
    drop(leaves);
    let mut other = Client::new(server.address());
    other.call(&[]);
    assert_eq!(other.answer().status, 429, "a provider works on for a client that left");
    clock.advance_to(SECOND);
    server.wait_until(|log| log[0].finished.is_some());
    other.call(&[]);
    assert_eq!(other.answer().status, 200);
}

#[test]
fn more_connections_than_may_be_are_turned_away() {
    let mut options = ServerOptions::new(Shape::Plain, Vec::new());
    options.connections = 2;
    let (server, _clock) = serve(options);
    let mut both = [(); 2].map(|()| Client::new(server.address()));
    for client in &mut both {
        client.call(&[]);
        assert_eq!(client.answer().status, 200);
    }
    let mut third = Client::new(server.address());
    assert_eq!(third.answer_if_any().map(|answer| answer.status), Some(503));
    both[0].call(&[]);
    assert_eq!(both[0].answer().status, 200, "the others go on");
}

#[test]
fn it_stops_whatever_its_clients_do() {
    let (server, _clock) = server(&[], Shape::Plain);
    let address = server.address();
    let mut idle = Client::new(address);
    let mut half = Client::new(address);
    half.send(b"POST /v1/x HT");
    let mut served = Client::new(address);
    served.call(&[("x-service-ms", "1000")]);
    server.wait_until(|log| log.len() == 1);
    let log = server.stop();
    assert_eq!(log[0].finished, None, "it was cut off: {log:?}");
    for client in [&mut idle, &mut half, &mut served] {
        assert!(client.answer_if_any().is_none());
    }
    assert!(std::net::TcpStream::connect(address).is_err(), "nobody listens");
}

#[test]
fn by_the_real_clock_calls_are_served_and_written_down() {
    let mut options = ServerOptions::new(Shape::OpenAi, vec![requests(2, 3_600 * SECOND)]);
    options.service = Duration::from_millis(1);
    let server = ProviderServer::start(options).unwrap();
    let mut client = Client::new(server.address());
    let statuses: Vec<u16> = (0..3)
        .map(|_| {
            client.call(&[]);
            client.answer().status
        })
        .collect();
    assert_eq!(statuses, [200, 200, 429]);
    client.close_sending();
    let log = server.stop();
    let took = |at: usize| log[at].finished.unwrap() - log[at].arrived;
    assert!(took(0) >= 1_000 && took(1) >= 1_000 && took(2) == 0, "{log:?}");
    assert!(log.is_sorted_by_key(|call| call.arrived));
}
