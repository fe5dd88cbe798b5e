//! What an entry of another process costs a replica, in processor time.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use standpipe_core::Action;
use standpipe_store::{Log, LogRead, Participant, Position, StoreError};
use standpipe_store_redis::RedisLog;

use super::Place;
use super::fill::{commit, configured, leases, name, store};
use super::work::TOKENS;
use crate::pool::call;
use crate::table::aim;

const ROUNDS: usize = 7;
const READS: usize = 100;
const WRITERS: usize = 8;
/// Foreign entries in one read: a pair of each writer, twice.
const TOGETHER: usize = 4 * WRITERS;

const POOL: &str = "bench/foreign";

/// Processor time of one round, per read.
#[derive(Clone, Copy, Default)]
struct Round {
    /// A participant reads, verifies and applies.
    applied: Duration,
    /// The log alone reads what the participant read.
    read: Duration,
    /// A participant reads nothing new.
    nothing: Duration,
}

pub(super) fn run(place: &Place) -> Result<(), String> {
    println!("### A foreign entry\n");
    println!(
        "Processor time of the reader alone (thread clock). {WRITERS} others append reserves and \
         commits one by one, then one process reads {TOGETHER} entries at once; {READS} reads in a \
         round, the best of {ROUNDS} rounds. A process reads them with a call that it makes \
         anyway, so the call without entries is subtracted.\n"
    );
    let url = place.server.url();
    let mut writers = Vec::new();
    for _ in 0..WRITERS {
        writers.push(configured(&store(&url)?, POOL)?);
    }
    let mut reader = configured(&store(&url)?, POOL)?;
    let mut log = store(&url)?.pool_log(&name(POOL)?);
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        rounds.push(round(&mut writers, &mut reader, &mut log).map_err(|e| e.to_string())?);
    }
    let best = |part: fn(&Round) -> Duration| {
        let least = rounds.iter().map(part).min().unwrap_or_default();
        least.as_secs_f64() * 1e6 / READS as f64
    };
    let (applied, read, nothing) = (best(|r| r.applied), best(|r| r.read), best(|r| r.nothing));
    let each = |micros: f64| micros / TOGETHER as f64;
    let marginal = each(applied - nothing);
    println!("| processor time | µs a foreign entry |\n|---|---:|");
    println!("| read, verified and applied | {marginal:.2} |");
    println!("| of that the Redis log: received, checked, framed | {:.2} |", each(read - nothing));
    println!("| with the call itself ({nothing:.0} µs) | {:.2} |", each(applied));
    println!("\n| aim | reached | |\n|---|---:|---|");
    let text = "a foreign entry costs a replica at most 2 µs";
    aim(text, Some(format!("{marginal:.2} µs")), Some(marginal <= 2.0));
    println!();
    Ok(())
}

fn round(
    writers: &mut [Participant<RedisLog>],
    reader: &mut Participant<RedisLog>,
    log: &mut RedisLog,
) -> Result<Round, StoreError> {
    let mut round = Round::default();
    reader.refresh()?;
    let mut at = head(log, Position::START)?;
    for _ in 0..READS {
        for _ in 0..TOGETHER / WRITERS / 2 {
            append_pairs(writers)?;
        }
        let begun = processor_time();
        reader.refresh()?;
        let applied = processor_time();
        at = head(log, at)?;
        let read = processor_time();
        reader.refresh()?;
        round.applied += applied - begun;
        round.read += read - applied;
        round.nothing += processor_time() - read;
    }
    Ok(round)
}

/// Every writer appends a reserve, then every writer a commit.
fn append_pairs(writers: &mut [Participant<RedisLog>]) -> Result<(), StoreError> {
    let mut held = Vec::new();
    for writer in &mut *writers {
        let outcomes = writer.submit(vec![Action::from(call("bench", TOKENS))])?;
        held.extend(leases(&outcomes));
    }
    for (writer, lease) in writers.iter_mut().zip(held) {
        writer.submit(vec![commit(lease)])?;
    }
    Ok(())
}

/// Reads the log and applies nothing.
fn head(log: &mut RedisLog, from: Position) -> Result<Position, StoreError> {
    match log.read(from)? {
        LogRead::Tail(tail) => Ok(tail.head),
        LogRead::Forked => Err(StoreError::unusable("the pool forked while it was measured")),
    }
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default())
}
