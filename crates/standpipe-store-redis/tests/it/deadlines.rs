//! A step ends by its deadline, however its server answers: late, byte by byte, or not at all.

use std::path::Path;
use std::slice;
use std::time::{Duration, Instant as Local};

use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, bind, listen, socket};
use standpipe_servers::{Gate, Options, Server};
use standpipe_store::{Log, LogRead, Position, StoreError, Tail, entry};
use standpipe_store_redis::{Address, Options as StoreOptions, RedisLog, RedisStore};

use crate::support::fake::{Answer, FakeServer, bulk, info};
use crate::support::{LONG, beat, failed, insist, member, pool, store, until};

const GAP: Duration = Duration::from_millis(20);

/// Answers to a step that there is no such pool.
fn missing() -> Vec<u8> {
    b"*2\r\n$7\r\nmissing\r\n:1700000000000000\r\n".to_vec()
}

/// Far more than can arrive within any bound of a step.
fn endless() -> Answer {
    Answer::Trickled(bulk(&[b'x'; 1_000]), GAP)
}

fn log(server: &FakeServer) -> RedisLog {
    store(&server.url()).pool_log(&pool())
}

fn is(command: &[Vec<u8>], name: &str) -> bool {
    command[0].eq_ignore_ascii_case(name.as_bytes())
}

/// The client left although the server had more to send.
fn assert_cut_off(server: &FakeServer, error: &StoreError) {
    assert!(error.is_transient(), "{error}");
    assert!(error.to_string().contains("did not answer in time"), "{error}");
    until("the server cannot send the rest", || server.was_cut_off());
}

#[test]
fn a_reply_that_trickles_does_not_hold_a_step() {
    let server = FakeServer::start(|command| match is(command, "INFO") {
        true => Answer::Whole(info()),
        false => endless(),
    });
    let mut log = log(&server);
    let error = failed(log.append(Position::START, &[vec![1]]));
    assert!(!error.is_unsent(), "it may have taken effect");
    drop(log);
    assert_cut_off(&server, &error);
}

#[test]
fn a_login_that_trickles_does_not_hold_a_step() {
    let server = FakeServer::start(|_| endless());
    let mut log = log(&server);
    let error = failed(log.append(Position::START, &[vec![1]]));
    assert!(error.is_unsent(), "{error}");
    assert_cut_off(&server, &error);
}

#[test]
fn replies_that_arrive_one_by_one_share_one_deadline() {
    // Each is in time by itself, and the script always asks for one more call.
    let server = FakeServer::start(|command| match is(command, "INFO") {
        true => Answer::Whole(info()),
        false => Answer::Trickled(b"*1\r\n$7\r\nchanged\r\n".to_vec(), GAP * 2),
    });
    let error = failed(log(&server).append(Position::START, &[vec![1]]));
    assert!(error.is_transient(), "{error}");
    let steps = server.commands().iter().filter(|name| *name == "EVALSHA").count();
    assert!(steps < 8, "{steps} calls of 700 ms were made");
}

#[test]
fn a_step_after_its_deadline_sends_nothing() {
    let server = FakeServer::start(|command| match is(command, "INFO") {
        true => Answer::Whole(info()),
        false => Answer::Whole(missing()),
    });
    let mut log = log(&server);
    log.set_deadline(Some(Local::now()));
    for connected in [false, true] {
        let sent = server.commands();
        for result in [log.append(Position::START, &[vec![1]]), log.read(Position::START)] {
            let error = failed(result);
            assert!(error.is_transient() && error.is_unsent(), "connected {connected}: {error}");
        }
        assert_eq!(server.commands(), sent, "connected: {connected}");
        log.set_deadline(None);
        assert!(matches!(log.read(Position::START).unwrap(), LogRead::Tail(_)));
        log.set_deadline(Some(Local::now()));
    }
    assert_eq!(server.connections(), 1);
}

#[test]
fn the_deadline_of_one_caller_does_not_cost_the_next_one_its_connection() {
    // Some 140 ms: well within the bound of the engine, and beyond that of a caller in a hurry.
    let server = FakeServer::start(|command| match is(command, "INFO") {
        true => Answer::Whole(info()),
        false => Answer::Trickled(missing(), Duration::from_millis(4)),
    });
    let mut log = log(&server);
    log.read(Position::START).unwrap();
    log.set_deadline(Some(Local::now() + Duration::from_millis(50)));
    let error = failed(log.read(Position::START));
    assert!(error.is_transient() && !error.is_unsent(), "{error}");
    log.set_deadline(Some(Local::now() + LONG));
    // Its reply is not taken for the late one before it.
    until("a step without haste is answered", || log.read(Position::START).is_ok());
    assert_eq!(server.connections(), 1);
}

#[test]
fn a_tls_handshake_that_trickles_does_not_hold_a_step() {
    let options = Options { tls: true, ..Options::default() };
    let server = Server::start_with(options);
    let gate = Gate::before(&server);
    let authority = std::fs::read(server.ca_file()).unwrap();
    let address: Address = gate.url().parse().unwrap();
    let store = RedisStore::new(address.with_authority(authority), StoreOptions::default());
    gate.trickle(GAP);
    let error = failed(store.pool_log(&pool()).read(Position::START));
    assert!(error.is_transient() && error.is_unsent(), "{error}");
    gate.heal();
    until("it is reached", || store.pool_log(&pool()).read(Position::START).is_ok());
}

#[test]
fn a_unix_socket_is_used_and_one_without_an_acceptor_does_not_hold_a_step() {
    let server = Server::start();
    let url = |path: &Path| format!("redis+unix://{}", path.display());
    let path = server.directory().join("admin.sock");
    insist(&mut member(&store(&url(&path))), vec![beat()]);
    let path = server.directory().join("hung.sock");
    let listener = socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
    bind(&listener, &SocketAddrUnix::new(&path).unwrap()).unwrap();
    listen(&listener, 0).unwrap();
    // The first two connections have a place in the queue, or the first alone.
    let mut logs = [0, 1, 2].map(|_| store(&url(&path)).pool_log(&pool()));
    for log in &mut logs {
        let error = failed(log.read(Position::START));
        assert!(error.is_transient() && error.is_unsent(), "{error}");
    }
}

#[test]
fn a_long_log_is_read_in_several_steps_if_each_has_little_time() {
    const ENTRIES: usize = 20;
    let server = Server::start();
    let mut writer = store(&server.url()).pool_log(&pool());
    let body = entry::body_of(0, &[7; 50_000]);
    let mut head = Position::START;
    for _ in 0..ENTRIES {
        head = tail(writer.append(head, slice::from_ref(&body))).head;
    }
    // The calls of one whole read take 600 ms.
    let gate = Gate::before(&server);
    let lag = Duration::from_millis(30);
    gate.lag(lag, lag);
    let mut reader = store(&gate.url()).pool_log(&pool());
    let read = (0..1_000).find_map(|_| {
        reader.set_deadline(Some(Local::now() + lag * 5));
        reader.read(Position::START).ok()
    });
    let read = tail(Ok(read.expect("every step starts from the beginning")));
    assert_eq!(read.head, head);
    assert!(read.entries.len() > ENTRIES * body.len());
}

fn tail(result: Result<LogRead, StoreError>) -> Tail {
    match result.unwrap() {
        LogRead::Tail(tail) => tail,
        LogRead::Forked => panic!("forked"),
    }
}

#[test]
fn a_stopped_server_that_goes_on_answers_the_next_step() {
    let server = Server::start();
    let mut member = member(&store(&server.url()));
    insist(&mut member, vec![beat()]);
    server.pause();
    let error = failed(member.submit(vec![beat()]));
    assert!(error.is_transient(), "{error}");
    server.resume();
    until("the call that failed is answered", || member.resend().is_ok());
}
