//! Calls that wait at the daemon beside those of the command line and the library.

use standpipe::Request;

use crate::daemon::support::{
    Daemon, lease, library, line_of, take_the_slot, until_in_flight, until_waiting, wants_the_slot,
};
use crate::support::Home;

#[test]
fn a_place_that_comes_back_in_any_way_goes_to_who_waits() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    let mut held = take_the_slot(&daemon);
    // By HTTP, by the command line, and by the Unix socket.
    let ways: [&dyn Fn(&str); 4] = [
        &|id| drop(daemon.settle(id, "commit").ok(200)),
        &|id| drop(home.run(["commit", id]).printed().to_owned()),
        &|id| drop(home.run(["cancel", id]).printed().to_owned()),
        &|id| {
            let mut client = daemon.unix();
            client.start("DELETE", &format!("/v1/leases/{id}"), &[], b"");
            client.answer().ok(200);
        },
    ];
    for way in ways {
        let mut waits = daemon.begin(&wants_the_slot("next"));
        until_waiting(&home, "my/slots", 1);
        way(&held);
        let granted = waits.answer().ok(201);
        held = granted["lease"].as_str().unwrap().to_owned();
    }
    daemon.settle(&held, "commit").ok(200);
    assert_eq!(home.status("my/slots")["in_flight"], 0);
}

#[test]
fn the_place_of_a_holder_that_is_killed_goes_to_who_waits() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    let mut holder = home.hold_the_slot();
    let mut waits = daemon.begin(&wants_the_slot("next"));
    let status = until_waiting(&home, "my/slots", 1);
    assert_eq!(status["tickets"][0]["pid"], daemon.pid(), "it waits at the daemon: {status}");
    holder.child.kill().unwrap();
    holder.child.wait().unwrap();
    let id = lease(&waits.answer());
    daemon.settle(&id, "commit").ok(200);
    assert_eq!(daemon.until_event("reclaim")["why"], "owner_gone");
}

#[test]
fn order_is_by_arrival_whichever_way_they_came() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    let mut held = take_the_slot(&daemon);
    let pool = library(&home).pool("my/slots").unwrap();
    let script = "echo held; read -r line; exit 0";
    let (mut http, mut cli, mut threads) = (Vec::new(), Vec::new(), Vec::new());
    let mut order = Vec::new();
    for turn in 0..6_u64 {
        let name = format!("{}-{turn}", ["http", "cli", "lib"][usize::try_from(turn % 3).unwrap()]);
        match turn % 3 {
            0 => http.push(daemon.begin(&wants_the_slot(&name))),
            1 => {
                cli.push(home.start(["hold", "my/slots", "--as", &name, "--", "sh", "-c", script]))
            }
            _ => {
                let (pool, request) = (pool.clone(), Request::by(name.clone()));
                threads.push(std::thread::spawn(move || pool.reserve(request).blocking().unwrap()));
            }
        }
        order.push(name);
        assert_eq!(line_of(&until_waiting(&home, "my/slots", turn + 1)), order);
    }
    let (mut http, mut cli, mut threads) = (http.into_iter(), cli.into_iter(), threads.into_iter());
    let mut end: Box<dyn FnOnce()> = Box::new({
        let id = held.clone();
        let daemon = &daemon;
        move || drop(daemon.settle(&id, "commit").ok(200))
    });
    for (turn, name) in order.iter().enumerate() {
        end();
        end = match turn % 3 {
            0 => {
                held = lease(&http.next().unwrap().answer());
                let (id, daemon) = (held.clone(), &daemon);
                Box::new(move || drop(daemon.settle(&id, "commit").ok(200)))
            }
            1 => {
                let mut holder = cli.next().unwrap();
                assert_eq!(holder.line(), "held");
                Box::new(move || assert_eq!(holder.end().code, Some(0)))
            }
            _ => {
                let lease = threads.next().unwrap().join().unwrap();
                Box::new(move || lease.commit([]).blocking().unwrap())
            }
        };
        let status = until_in_flight(&home, "my/slots", 1);
        assert_eq!(status["leases"][0]["agent"], name.as_str(), "in order of arrival: {status}");
        assert_eq!(line_of(&status), order[turn + 1..]);
    }
    end();
    assert_eq!(home.status("my/slots")["in_flight"], 0);
}
