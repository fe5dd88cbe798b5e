//! Fair order: while two agents wait on a pool without a break, each gets units in proportion to
//! its weight. What they got for their weight differs by at most two calls of each.
//!
//! Only for virtual time: there every process claims what is due to it at once, unless it is
//! stopped.

use super::{Call, Case, Era, Permitted};
use crate::setup::{FAIR, weight};

/// By how many calls of each agent two of them may differ: one because a call is not divided, and
/// one for the instant at which it is claimed.
const CALLS: i64 = 2;

/// Everything that was broken until an instant.
#[must_use]
pub fn judge(calls: &[Call], eras: &[Era], permitted: &Permitted, until: u64) -> Vec<String> {
    let of_pool: Vec<&Call> = calls.iter().filter(|call| call.pool == FAIR).collect();
    let case = Case::each(FAIR, calls, eras, permitted).next();
    // A process that does not claim keeps its place and blocks nobody.
    let forgets = case.is_none_or(|case| case.permitted.forgets() || case.permitted.hindered);
    if forgets || of_pool.is_empty() {
        return Vec::new();
    }
    let mut agents: Vec<&str> = of_pool.iter().map(|call| call.worker.as_str()).collect();
    agents.sort_unstable();
    agents.dedup();
    let mut broken = Vec::new();
    for (at, era) in eras.iter().enumerate() {
        let is_enforced = era.setup.pools.iter().all(|pool| pool.name != FAIR || pool.enforced);
        let has_shares = era.setup.has_floors() || era.setup.has_cap();
        if !era.setup.is_fair() || !is_enforced || has_shares {
            continue;
        }
        let to = eras.get(at + 1).map_or(until, |next| next.begins.min(until));
        for (number, one) in agents.iter().enumerate() {
            let rest = agents[number + 1..].iter();
            broken.extend(rest.filter_map(|other| unfair(&of_pool, [*one, *other], era.sure..to)));
        }
    }
    broken
}

/// What happens to one of two agents.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Asks,
    Gets,
    Leaves,
}

/// What is wrong between two agents while both wait.
fn unfair(calls: &[&Call], agents: [&str; 2], within: std::ops::Range<u64>) -> Option<String> {
    let mut events: Vec<(u64, What, usize)> = Vec::new();
    for call in calls {
        let Some(who) = agents.iter().position(|agent| *agent == call.worker) else { continue };
        let end = call.answered.unwrap_or(call.last);
        let what = if call.granted { What::Gets } else { What::Leaves };
        events.extend([(call.asked, What::Asks, who), (end, what, who)]);
    }
    events.sort_unstable();
    let weights = agents.map(|agent| i64::from(weight(agent)));
    let most = CALLS * (weights[0] + weights[1]);
    let (mut waiting, mut since) = ([0_u64; 2], within.start);
    let (mut ahead, mut least, mut greatest) = (0, 0, 0);
    for (at, what, who) in events.into_iter().filter(|(at, ..)| *at < within.end) {
        let counts = at >= within.start && waiting.iter().all(|many| *many > 0);
        if !counts {
            (ahead, least, greatest, since) = (0, 0, 0, at);
        }
        if what == What::Asks {
            waiting[who] += 1;
            continue;
        }
        waiting[who] = waiting[who].saturating_sub(1);
        if counts && what == What::Gets {
            ahead += if who == 0 { weights[1] } else { -weights[0] };
            (least, greatest) = (least.min(ahead), greatest.max(ahead));
        }
        if greatest - least > most {
            let [one, other] = agents;
            return Some(format!(
                "{one} (weight {}) and {other} (weight {}) differ by {} of {most} on {FAIR} from \
                 {since} to {at}",
                weights[0],
                weights[1],
                greatest - least
            ));
        }
    }
    None
}
