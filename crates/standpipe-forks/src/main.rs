//! A program that uses Standpipe and forks, run by `tests/forks.rs`.
//!
//! Usage: `forks DIRECTORY [blocked|inside|exec]`. The pool has two slots. Parent and child print
//! what they see, and each waits for the end of standard input.
//!
//! - no argument: the parent holds a lease and forks;
//! - `blocked`: other processes hold both slots, and a thread of the parent waits for one while the
//!   process forks;
//! - `inside`: a thread of the parent holds the lock of the pool's file when the process forks, and
//!   never releases it;
//! - `exec`: the process takes both slots, executes itself again (`again`) and takes one.

use std::io::{BufRead, Write};
use std::path::Path;
use std::time::Duration;

use standpipe::{Error, Limit, Pool, Request, Rule, Settings, Standpipe};

fn main() -> Result<(), Error> {
    let directory = std::env::args().nth(1).unwrap_or_default();
    let standpipe =
        Standpipe::builder().settings(Settings::default()).home(Path::new(&directory)).open()?;
    let pool = standpipe.pool("test/slots")?;
    pool.limit(vec![Limit::new(Rule::Parallel { amount: 2 })]).blocking()?;
    match std::env::args().nth(2).as_deref() {
        Some("blocked") => return blocked(&pool),
        Some("inside") => return inside(&pool, Path::new(&directory)),
        Some("exec") => return exec(&pool, &directory),
        Some("again") => return again(&pool),
        _ => {}
    }
    let lease = pool.reserve(Request::by("parent")).blocking()?;
    // SAFETY: the child uses only what this library supports after a fork; no other thread of this
    // process holds a lock of ours that the child needs.
    let forked = unsafe { libc::fork() };
    if forked == 0 {
        return child(&pool, lease);
    }
    print(&format!("parent {} child {forked}", std::process::id()));
    wait();
    lease.commit([]).blocking()?;
    print("parent settled");
    // SAFETY: waits for the child that was just made.
    unsafe { libc::waitpid(forked, std::ptr::null_mut(), 0) };
    Ok(())
}

fn child(pool: &Pool, lease: standpipe::Lease) -> Result<(), Error> {
    drop(lease);
    print(&format!("child sees {} in flight", pool.status().blocking()?.leases.len()));
    let own = pool.reserve(Request::by("child")).blocking()?;
    print(&format!("child holds, {} in flight", pool.status().blocking()?.leases.len()));
    let third = pool.reserve(Request::by("child").timeout(Duration::ZERO)).blocking();
    print(if third.is_err() { "child is refused a third" } else { "child got a third" });
    wait();
    drop(own);
    print(&format!("child gave back, {} in flight", pool.status().blocking()?.leases.len()));
    Ok(())
}

/// Forks while a thread of the parent blocks in a reserve and waits for wake-ups of the store.
fn blocked(pool: &Pool) -> Result<(), Error> {
    let waits = pool.clone();
    let waiter = std::thread::spawn(move || waits.reserve(Request::by("parent")).blocking());
    while pool.status().blocking()?.tickets.is_empty() {
        std::thread::yield_now();
    }
    // Give it time to block.
    std::thread::sleep(Duration::from_millis(50));
    // SAFETY: as above; the blocked thread sleeps and holds no lock.
    let forked = unsafe { libc::fork() };
    let (who, lease) = match forked {
        0 => ("child", pool.reserve(Request::by("child")).blocking()?),
        _ => match waiter.join() {
            Ok(lease) => ("parent", lease?),
            Err(panic) => std::panic::resume_unwind(panic),
        },
    };
    print(&format!("{who} holds"));
    wait();
    drop(lease);
    print(&format!("{who} gave back"));
    if forked != 0 {
        // SAFETY: waits for the child that was just made.
        unsafe { libc::waitpid(forked, std::ptr::null_mut(), 0) };
    }
    Ok(())
}

/// Forks while another thread holds the lock of the pool's file. That thread never releases it; the
/// child, which does not have that thread, uses the pool.
fn inside(pool: &Pool, directory: &Path) -> Result<(), Error> {
    drop(pool.reserve(Request::by("parent")).blocking()?);
    let mut log = standpipe_store_file::FileStore::open(directory)?.pool_log(pool.name());
    let (enters, entered) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        log.while_locked(|| {
            let _ = enters.send(());
            loop {
                std::thread::park();
            }
        })
    });
    let _ = entered.recv();
    // SAFETY: as above; the lock of the pool's file is what is under test.
    let forked = unsafe { libc::fork() };
    if forked != 0 {
        print(&format!("parent inside, child {forked}"));
        wait();
        return Ok(());
    }
    print("child out");
    // This waits while the parent holds the lock, and continues when the parent is killed.
    let patient = Request::by("child").timeout(Duration::from_secs(20));
    let lease = pool.reserve(patient).blocking();
    print(if lease.is_ok() { "child holds" } else { "child is locked out" });
    wait();
    Ok(())
}

/// The new program has the pid and the start time of the old one, but not its leases.
fn exec(pool: &Pool, directory: &str) -> Result<(), Error> {
    use std::os::unix::process::CommandExt;
    let leases = [(); 2].map(|()| pool.reserve(Request::by("before")).blocking());
    std::mem::forget(leases);
    let program = std::env::args_os().next().unwrap_or_default();
    let failed = std::process::Command::new(program).args([directory, "again"]).exec();
    print(&format!("cannot execute itself: {failed}"));
    Ok(())
}

fn again(pool: &Pool) -> Result<(), Error> {
    let lease = pool.reserve(Request::by("after").timeout(Duration::ZERO)).blocking();
    print(if lease.is_ok() { "after holds" } else { "after is refused a slot" });
    wait();
    Ok(())
}

fn print(what: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{what}");
    let _ = out.flush();
}

/// Waits for the end of standard input. Both processes share it, so a line would reach only one.
fn wait() {
    let mut rest = String::new();
    while std::io::stdin().lock().read_line(&mut rest).is_ok_and(|read| read > 0) {}
}
