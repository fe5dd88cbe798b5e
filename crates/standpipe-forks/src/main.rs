//! A process that opens the tap, takes a slot of two, and forks, as programs with workers do.
//!
//! Usage: `forks DIRECTORY [blocked]`. Parent and child say on standard output what they see, and
//! then each waits for a line on standard input, or for its end. With `blocked` the slots are held
//! elsewhere, and a thread of the parent waits for one while the process forks.

use std::io::{BufRead, Write};
use std::path::Path;
use std::time::Duration;

use standpipe::{Error, Limit, Pool, Request, Rule, Settings, Standpipe};

fn main() -> Result<(), Error> {
    let directory = std::env::args().nth(1).unwrap_or_default();
    let tap =
        Standpipe::builder().settings(Settings::default()).home(Path::new(&directory)).open()?;
    let pool = tap.pool("test/slots")?;
    pool.limit(vec![Limit::new(Rule::Parallel { amount: 2 })])?;
    if std::env::args().nth(2).is_some_and(|word| word == "blocked") {
        return blocked(&pool);
    }
    let lease = pool.reserve(Request::by("parent")).blocking()?;
    // SAFETY: the child goes on as a program that uses only what this library promises to work
    // after a fork; no other thread of this process holds a lock of ours that the child needs.
    let forked = unsafe { libc::fork() };
    if forked == 0 {
        return child(&pool, lease);
    }
    say(&format!("parent {} child {forked}", std::process::id()));
    wait();
    lease.commit([])?;
    say("parent settled");
    // SAFETY: waits for the child that was just made.
    unsafe { libc::waitpid(forked, std::ptr::null_mut(), 0) };
    Ok(())
}

fn child(pool: &Pool, lease: standpipe::Lease) -> Result<(), Error> {
    drop(lease);
    say(&format!("child sees {} in flight", pool.status()?.leases.len()));
    let own = pool.reserve(Request::by("child")).blocking()?;
    say(&format!("child holds, {} in flight", pool.status()?.leases.len()));
    let third = pool.reserve(Request::by("child").timeout(Duration::ZERO)).blocking();
    say(if third.is_err() { "child is refused a third" } else { "child got a third" });
    wait();
    drop(own);
    say(&format!("child gave back, {} in flight", pool.status()?.leases.len()));
    Ok(())
}

/// A thread of the parent blocks in a reserve, and listens at the store, when the process forks.
fn blocked(pool: &Pool) -> Result<(), Error> {
    let waits = pool.clone();
    let waiter = std::thread::spawn(move || waits.reserve(Request::by("parent")).blocking());
    while pool.status()?.tickets.is_empty() {
        std::thread::yield_now();
    }
    // It gets the time to fall asleep.
    std::thread::sleep(Duration::from_millis(50));
    // SAFETY: as above; the thread that blocks sleeps and holds no lock.
    let forked = unsafe { libc::fork() };
    let (who, lease) = match forked {
        0 => ("child", pool.reserve(Request::by("child")).blocking()?),
        _ => match waiter.join() {
            Ok(lease) => ("parent", lease?),
            Err(panic) => std::panic::resume_unwind(panic),
        },
    };
    say(&format!("{who} holds"));
    wait();
    drop(lease);
    say(&format!("{who} gave back"));
    if forked != 0 {
        // SAFETY: waits for the child that was just made.
        unsafe { libc::waitpid(forked, std::ptr::null_mut(), 0) };
    }
    Ok(())
}

fn say(what: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{what}");
    let _ = out.flush();
}

/// Standard input is shared with the other process: only its end tells both.
fn wait() {
    let mut rest = String::new();
    while std::io::stdin().lock().read_line(&mut rest).is_ok_and(|read| read > 0) {}
}
