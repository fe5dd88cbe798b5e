//! Whether the forecast of the ledger is worth a warning: calls would wait in the coming period.

use standpipe_core::{Breaker, LimitUsage, Span, State};

use crate::time::Now;

/// The interval over which the ledger measures the burn rate.
const MEASURED: Span = Span::secs(5);

/// Returns the state of the breaker. A forecast counts only if a call waits, or if the calls of the
/// last seconds would use a limit up before what is charged is free again.
pub(crate) fn breaker(state: &State, limits: &[LimitUsage], now: &Now) -> Breaker {
    let has_calls = !state.facts().tickets.is_empty();
    match state.breaker(now.store) {
        Breaker::PreEmptive if !has_calls && !limits.iter().any(|l| runs_out(l, now)) => {
            Breaker::Closed
        }
        breaker => breaker,
    }
}

/// Whether a limit runs out at the rate of the last seconds: in its period more is used than it
/// has, and what is left is used before time frees what is charged.
fn runs_out(limit: &LimitUsage, now: &Now) -> bool {
    let Some(period) = limit.limit.id().period() else { return false };
    let busy = limit.clear_at.map_or(Span(0), |at| at.since(now.store));
    let in_a =
        |length: Span| u128::from(limit.burnt) * u128::from(length.0) / u128::from(MEASURED.0);
    let whole = limit.refill.unwrap_or(limit.effective);
    in_a(period) > u128::from(whole) && in_a(busy) > u128::from(limit.left)
}
