//! The same ledger on SQLite: rows, one transaction per step, as its documentation has it for many
//! processes on one file: write-ahead log, `synchronous = NORMAL`, `BEGIN IMMEDIATE`.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, Result, Transaction, TransactionBehavior, params};

use super::{TOKENS, USED};

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS charge (
        id INTEGER PRIMARY KEY, at INTEGER NOT NULL, agent TEXT NOT NULL, tokens INTEGER NOT NULL
    );
    CREATE INDEX IF NOT EXISTS charge_at ON charge (at);
    CREATE TABLE IF NOT EXISTS lease (id INTEGER PRIMARY KEY, expires INTEGER NOT NULL);
    CREATE TABLE IF NOT EXISTS total (
        one INTEGER PRIMARY KEY CHECK (one = 1), requests INTEGER, tokens INTEGER, flying INTEGER
    );
    INSERT OR IGNORE INTO total VALUES (1, 0, 0, 0);
";
const AGED: &str = "SELECT count(*), coalesce(sum(tokens), 0) FROM charge WHERE at <= ?";
const FORGET: &str = "DELETE FROM charge WHERE at <= ?";
const TOTAL: &str = "SELECT requests, tokens, flying FROM total WHERE one = 1";
const CHARGE: &str = "INSERT INTO charge (at, agent, tokens) VALUES (?, ?, ?)";
const LEASE: &str = "INSERT INTO lease (id, expires) VALUES (?, ?)";
const KEEP: &str = "UPDATE total SET requests = ?, tokens = ?, flying = ? WHERE one = 1";
const END: &str = "DELETE FROM lease WHERE id = ?";
const SETTLE: &str = "UPDATE charge SET tokens = ? WHERE id = ?";
const REFUND: &str = "UPDATE total SET tokens = tokens - ?, flying = flying - 1 WHERE one = 1";
const MINUTE: i64 = 60_000_000;
const REQUESTS: i64 = 1_000_000_000;
const PARALLEL: i64 = 1_000;

pub(super) fn pairs(directory: &Path) -> std::result::Result<impl FnMut(), String> {
    let wrong = |error: rusqlite::Error| format!("SQLite: {error}");
    let mut connection = open(&directory.join("ledger.sqlite")).map_err(wrong)?;
    Ok(move || {
        let lease = reserve(&mut connection);
        let settled = lease.and_then(|lease| commit(&mut connection, lease));
        assert!(settled.is_ok(), "SQLite: {settled:?}");
    })
}

fn open(path: &Path) -> Result<Connection> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(Duration::from_secs(10))?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.execute_batch(TABLES)?;
    Ok(connection)
}

fn reserve(connection: &mut Connection) -> Result<i64> {
    let step = Transaction::new(connection, TransactionBehavior::Immediate)?;
    let now = micros();
    let aged: (i64, i64) = step
        .prepare_cached(AGED)?
        .query_row([now - MINUTE], |row| Ok((row.get(0)?, row.get(1)?)))?;
    if aged.0 > 0 {
        step.prepare_cached(FORGET)?.execute([now - MINUTE])?;
    }
    let (requests, tokens, flying): (i64, i64, i64) = step
        .prepare_cached(TOTAL)?
        .query_row([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let (requests, tokens) = (requests - aged.0, tokens - aged.1);
    assert!(requests < REQUESTS && flying < PARALLEL, "the limits are never reached here");
    let cost = TOKENS.cast_signed();
    step.prepare_cached(CHARGE)?.execute(params![now, "bench", cost])?;
    let lease = step.last_insert_rowid();
    step.prepare_cached(LEASE)?.execute([lease, now + MINUTE])?;
    step.prepare_cached(KEEP)?.execute([requests + 1, tokens + cost, flying + 1])?;
    step.commit()?;
    Ok(lease)
}

fn commit(connection: &mut Connection, lease: i64) -> Result<()> {
    let step = Transaction::new(connection, TransactionBehavior::Immediate)?;
    if step.prepare_cached(END)?.execute([lease])? == 1 {
        let used = USED.cast_signed();
        step.prepare_cached(SETTLE)?.execute([used, lease])?;
        step.prepare_cached(REFUND)?.execute([TOKENS.cast_signed() - used])?;
    }
    step.commit()
}

fn micros() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}
