//! `status --check`: the pools on which a call would not be admitted now, the worst first.
//!
//! It makes no ledger: a pool whose ledger is gone is not asked.

use standpipe::observe::LostLedger;
use standpipe::{Error, Pool, Reason, Refused, Request, Standpipe};

use crate::commands::admission::holders;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::show::when;

/// The most agents ahead of the call that are named.
const MAX_AHEAD: usize = 3;

/// A pool on which a call would not be admitted now.
pub(super) struct Blocked {
    severity: Severity,
    text: String,
}

/// How bad that is, the worst first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Severity {
    /// No wait helps: the provider stopped the pool, or the call never fits.
    Refused,
    /// The ledger is gone.
    Lost,
    /// Every call waits, whatever room there is.
    Paused,
    /// A limit has no room.
    NoRoom,
    /// Something else delays the call.
    Waits,
}

impl Blocked {
    /// Returns the exit code of the command for this pool.
    pub(super) const fn exit(&self) -> Exit {
        match self.severity {
            Severity::Refused => Exit::Stopped,
            _ => Exit::NotInTime,
        }
    }

    fn lost(lost: &LostLedger) -> Self {
        let (pool, what, remedy) = (&lost.pool, lost.what(), lost.remedy());
        let text = format!("`{pool}`: {what}; a call would wait; {remedy}");
        Self { severity: Severity::Lost, text }
    }

    fn refused(refused: &Refused, tap: &Standpipe) -> Self {
        let severity = severity(refused.reason);
        let prefix = match severity {
            Severity::Refused => "refused",
            Severity::NoRoom => "no room",
            _ => "would wait",
        };
        let whom = whom(refused, tap).map(|whom| format!("; {whom}")).unwrap_or_default();
        Self { severity, text: format!("{prefix}: {}{whom}", when::refused(refused)) }
    }
}

const fn severity(reason: Reason) -> Severity {
    match reason {
        Reason::Terminal | Reason::Never => Severity::Refused,
        Reason::Pause | Reason::ReturnWindow | Reason::Probe | Reason::Sequential => {
            Severity::Paused
        }
        Reason::Limit
        | Reason::Floor
        | Reason::Cap
        | Reason::Ramp
        | Reason::Learning
        | Reason::QueueFull => Severity::NoRoom,
        _ => Severity::Waits,
    }
}

/// Names whose calls are ahead of the call, or hold the slots that it needs.
fn whom(refused: &Refused, tap: &Standpipe) -> Option<String> {
    let status = || tap.existing_pool(&refused.pool).status().blocking().ok();
    if refused.waits_for_a_slot() {
        return holders(&status()?);
    }
    let status = status().filter(|_| refused.reason == Reason::Order)?;
    let named = status.tickets.iter().take(MAX_AHEAD).map(|ticket| match ticket.pid {
        Some(pid) => format!("{} (pid {pid})", ticket.agent),
        None => ticket.agent.clone(),
    });
    let named: Vec<String> = named.collect();
    let more = match status.waiting.saturating_sub(named.len()) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(format!("behind {}{more}", named.join(", "))).filter(|_| !named.is_empty())
}

/// Returns the pools on which a call would not be admitted now, the worst first. Pools that cannot
/// be read are reported otherwise.
pub(super) fn blocked(
    tap: &Standpipe,
    pools: &[Pool],
    lost: &[LostLedger],
    context: &Context,
) -> Result<Vec<Blocked>, Failure> {
    let call = Request::by(context.agent(None)?.as_str());
    let mut blocked: Vec<Blocked> = lost.iter().map(Blocked::lost).collect();
    let is_lost = |pool: &&Pool| lost.iter().any(|lost| lost.pool == *pool.name());
    for pool in pools.iter().filter(|pool| !is_lost(pool)) {
        match pool.peek(&call).blocking() {
            Ok(verdict) if !verdict.is_admitted() => {
                blocked.extend(verdict.why().map(|refused| Blocked::refused(refused, tap)));
            }
            Ok(_) | Err(Error::Store(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    blocked.sort_by_key(|blocked| blocked.severity);
    Ok(blocked)
}

/// Returns the line for people: the worst, and how many more there are. None if all have room.
pub(super) fn line(blocked: &[Blocked]) -> Option<String> {
    let worst = &blocked.first()?.text;
    Some(match blocked.len() - 1 {
        0 => worst.clone(),
        1 => format!("{worst} (and 1 more pool)"),
        more => format!("{worst} (and {more} more pools)"),
    })
}
