//! Planted bugs: wrong expressions that a named test must notice.
//!
//! A test that cannot fail proves nothing. Each entry names a right expression of the sources, a
//! wrong one to put in its place, and the tests that must then fail. How they are built and run is
//! in `suites/planted.rs`.

mod sharing;

use self::sharing::SHARING;

/// A bug, and who catches it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Planted {
    /// What the bug is, in words joined by `-`.
    pub(crate) name: &'static str,
    /// The source file, from the project's root: in `crates/standpipe-core/src`, or in the `src` of
    /// a crate that depends on the core.
    pub(crate) file: &'static str,
    /// An expression that occurs exactly once in that file. It must not be in a `const fn`.
    pub(crate) before: &'static str,
    /// The wrong expression, of the same type.
    pub(crate) after: &'static str,
    /// The tests that must fail, each as `package::target::path`.
    pub(crate) caught_by: &'static [&'static str],
}

/// All of them. The position in this table is the number that switches a bug on.
pub(crate) fn table() -> Vec<Planted> {
    [LEDGER, SHARING].concat()
}

/// Bugs in the ledger and its policies.
const LEDGER: &[Planted] = &[
    Planted {
        name: "each-ticket-of-a-dead-session-has-the-whole-time",
        file: "crates/standpipe-core/src/lease/sessions.rs",
        before: "known.missed.saturating_mul(3)",
        after: "known.missed.saturating_mul(0)",
        caught_by: &["standpipe-store::memory::golden_traces_are_told_the_same"],
    },
    Planted {
        name: "no-share-of-a-learned-limit",
        file: "crates/standpipe-core/src/config/compiled.rs",
        before: "in_force.iter().skip(config.limits.len())",
        after: "in_force.iter().skip(in_force.len())",
        caught_by: &["standpipe-core::floors::shares_count_on_a_learned_limit"],
    },
    Planted {
        name: "rules-of-agents-replaced-by-a-second-process",
        file: "crates/standpipe-core/src/config/precedence.rs",
        before: "!is_known && merged.agents.len() < bounds::AGENT_RULES",
        after: "is_known && merged.agents.len() < bounds::AGENT_RULES",
        caught_by: &["standpipe-core::reconfigure::rules_of_agents_from_code_are_merged"],
    },
    Planted {
        name: "a-paced-ticket-looked-at-every-microsecond",
        file: "crates/standpipe-core/src/rules/spread.rs",
        before: "from + RECHECK",
        after: "from",
        caught_by: &[
            "standpipe-core::spread::a_ticket_behind_a_due_one_is_not_looked_at_every_microsecond",
        ],
    },
    Planted {
        name: "off-by-one-in-the-window",
        file: "crates/standpipe-core/src/usage/view.rs",
        before: "stamp + period <= now || stamp < from",
        after: "stamp + period <= Instant(now.0 + 1) || stamp < from",
        caught_by: &[
            "standpipe-core::props::window_never_over",
            "standpipe-store::memory::golden_traces_are_told_the_same",
        ],
    },
    Planted {
        name: "slice-stamped-with-its-start",
        file: "crates/standpipe-core/src/usage/history.rs",
        before: "Instant(now.0.div_ceil(width).saturating_mul(width))",
        after: "Instant((now.0 / width).saturating_mul(width))",
        caught_by: &[
            "standpipe-core::lib::usage::history::tests::each_period_is_at_most_one_slice_late",
            "standpipe-store::memory::golden_traces_are_told_the_same",
        ],
    },
    Planted {
        name: "refund-of-what-has-aged-out",
        file: "crates/standpipe-core/src/usage/history.rs",
        before: "(mark > self.expired && at < self.samples.len()).then_some(at)",
        after: "(at < self.samples.len()).then_some(at)",
        caught_by: &[
            "standpipe-core::faults::refund::b18_no_credit_from_a_charge_that_has_aged",
            "standpipe-store::memory::golden_traces_are_told_the_same",
        ],
    },
    Planted {
        name: "refund-twice",
        file: "crates/standpipe-core/src/lease.rs",
        before: "self.refund_unit(charge, agent, charge.charged - total, now)",
        after: "self.refund_unit(charge, agent, 2 * (charge.charged - total), now)",
        caught_by: &[
            "standpipe-core::props::all_or_nothing",
            "standpipe-store::memory::golden_traces_are_told_the_same",
        ],
    },
    Planted {
        name: "newcomer-barges",
        file: "crates/standpipe-core/src/rules/order.rs",
        before: "Rank::of(*first) < rank",
        after: "Rank::of(*first) > rank",
        caught_by: &[
            "standpipe-core::order::order_holds",
            "standpipe-store::memory::golden_traces_are_told_the_same",
        ],
    },
    Planted {
        name: "held-ticket-blocks",
        file: "crates/standpipe-core/src/queue/serve.rs",
        before: "self.held_back(&candidate, now)",
        after: "self.held_back(&candidate, now).filter(|_| false)",
        caught_by: &["standpipe-store::memory::golden_traces_are_told_the_same"],
    },
    Planted {
        name: "large-call-is-starved",
        file: "crates/standpipe-core/src/queue/serve.rs",
        before: "self.is_too_late(head, now)",
        after: "true",
        caught_by: &[
            "standpipe-core::order::large_call_is_not_starved",
            "standpipe-store::memory::golden_traces_are_told_the_same",
        ],
    },
    Planted {
        name: "all-or-nothing-broken",
        file: "crates/standpipe-core/src/lease/admission.rs",
        before: "!earmarked.contains(*constraint) && self.refuses(candidate, *constraint, now)",
        after: "constraint.0 == 0 && self.refuses(candidate, *constraint, now)",
        caught_by: &[
            "standpipe-core::props::all_or_nothing",
            "standpipe-store::memory::golden_traces_are_told_the_same",
        ],
    },
    Planted {
        name: "lapse-loses-what-was-set-aside",
        file: "crates/standpipe-core/src/queue/serve.rs",
        before: "earmarked.iter()",
        after: "ConstraintSet::default().iter()",
        caught_by: &["standpipe-store::memory::golden_traces_are_told_the_same"],
    },
    Planted {
        name: "set-aside-withheld-from-a-higher-tier",
        file: "crates/standpipe-core/src/rules/order.rs",
        before: "earmarked.by_tier[..tier].iter().sum()",
        after: "earmarked.by_tier.iter().sum()",
        caught_by: &[
            "standpipe-core::order::critical_first",
            "standpipe-store::memory::golden_traces_are_told_the_same",
        ],
    },
    Planted {
        name: "small-calls-pass-beside-a-floor",
        file: "crates/standpipe-core/src/queue/serve.rs",
        before: "instant.is_some_and(|at| at > ticket.deadline)",
        after: "matches!(ticket.phase, Phase::Line(constraint)
            if self.shortfall(&self.candidate_of(queue_key, ticket), constraint, now)
                .is_some_and(|shortfall| shortfall.reason == Reason::Floor))",
        caught_by: &["standpipe-store::memory::golden_traces_are_told_the_same"],
    },
    Planted {
        name: "progress-added-not-replaced",
        file: "crates/standpipe-core/src/lease/settlement.rs",
        before: "self.progress_charge(charge, agent, total, now)",
        after: "self.progress_charge(charge, agent, total + charge.charged, now)",
        caught_by: &[
            "standpipe-core::props::progress_totals_replace",
            "standpipe-store::memory::golden_traces_are_told_the_same",
        ],
    },
    Planted {
        name: "numbering-ignored",
        file: "crates/standpipe-core/src/apply.rs",
        before: "number <= known.last",
        after: "number == 0",
        caught_by: &[
            "standpipe-core::props::copies_change_nothing",
            "standpipe-store::memory::golden_traces_are_told_the_same",
        ],
    },
    Planted {
        name: "due-lower-tier-before-a-higher-one",
        file: "crates/standpipe-core/src/queue/serve.rs",
        before: "self.release_behind(head, constraint, now)",
        after: "()",
        caught_by: &[
            "standpipe-core::order::critical_first",
            "standpipe-store::memory::golden_traces_are_told_the_same",
        ],
    },
    Planted {
        name: "refill-rounded-in-favour",
        file: "crates/standpipe-core/src/usage/bucket.rs",
        before: "over.div_ceil(u128::from(refill.amount.max(1)))",
        after: "(over / u128::from(refill.amount.max(1)))",
        caught_by: &[
            "standpipe-core::props::until_is_exact",
            "standpipe-store::memory::golden_traces_are_told_the_same",
        ],
    },
    Planted {
        name: "pause-shortened-by-a-shorter-one",
        file: "crates/standpipe-core/src/provider/throttle.rs",
        before: "self.facts.pause.is_some_and(|before| before >= until)",
        after: "self.facts.pause.is_some_and(|before| before == until)",
        caught_by: &[
            "standpipe-core::faults::lost::b40_a_pause_only_grows_and_always_ends",
            "standpipe-store::memory::golden_traces_are_told_the_same",
        ],
    },
    Planted {
        name: "a-refusal-keeps-the-name-of-a-pause",
        file: "crates/standpipe-core/src/provider/throttle.rs",
        before: "self.order = None",
        after: "self.order = self.order.take()",
        caught_by: &["standpipe-core::pauses::a_refusal_that_lengthens_a_pause_replaces_its_order"],
    },
    Planted {
        name: "dead-session-keeps-its-slots",
        file: "crates/standpipe-core/src/lease/sessions.rs",
        before: "holder == LeaseOwner::Session(session)",
        after: "holder == LeaseOwner::Session(session + 1)",
        caught_by: &["standpipe-store::memory::golden_traces_are_told_the_same"],
    },
    Planted {
        name: "stragglers-raise-the-streak",
        file: "crates/standpipe-core/src/provider/throttle.rs",
        before: "started > began",
        after: "started <= began || started > began",
        caught_by: &["standpipe-store::memory::golden_traces_are_told_the_same"],
    },
    Planted {
        name: "a-success-from-before-the-pause-resets-the-streak",
        file: "crates/standpipe-core/src/provider/answered.rs",
        before: "self.facts.throttling.pause_began.is_none_or(|began| started > began)",
        after: "self.facts.throttling.pause_began
            .is_none_or(|began| started > began || started <= began)",
        caught_by: &["standpipe-store::memory::golden_traces_are_told_the_same"],
    },
    Planted {
        name: "no-probe-after-a-pause",
        file: "crates/standpipe-core/src/provider/return_windows.rs",
        before: "self.facts.returning.probe = Probe::Wanted",
        after: "self.facts.returning.probe = Probe::Over",
        caught_by: &["standpipe-store::memory::golden_traces_are_told_the_same"],
    },
    Planted {
        name: "a-probe-that-was-never-sent-keeps-its-role",
        file: "crates/standpipe-core/src/rules/gate.rs",
        before: "if was_sent { Probe::Over } else { Probe::Wanted }",
        after: "if was_sent { Probe::Over } else { self.facts.returning.probe }",
        caught_by: &["standpipe-store::memory::golden_traces_are_told_the_same"],
    },
    Planted {
        name: "everybody-comes-back-at-the-windows-start",
        file: "crates/standpipe-core/src/provider/return_windows.rs",
        before: "width * share / ((n.max(1) as u128) << 32)",
        after: "width * share / ((n.max(1) as u128) << 120)",
        caught_by: &["standpipe-core::policies::nobody_comes_back_together"],
    },
    Planted {
        name: "one-at-a-time-ends-at-once",
        file: "crates/standpipe-core/src/rules/gate.rs",
        before: "self.facts.cascade.sequential.is_some_and(|sequential| sequential.ends <= now)",
        after: "self.facts.cascade.sequential.is_some_and(|sequential| sequential.began <= now)",
        caught_by: &["standpipe-store::memory::golden_traces_are_told_the_same"],
    },
    Planted {
        name: "one-retry-too-many",
        file: "crates/standpipe-core/src/rules/retry_budget.rs",
        before: "used < share.max(u64::from(budget.least))",
        after: "used <= share.max(u64::from(budget.least))",
        caught_by: &["standpipe-store::memory::golden_traces_are_told_the_same"],
    },
    Planted {
        name: "an-overload-raises-the-streak",
        file: "crates/standpipe-core/src/provider/throttle.rs",
        before: "throttling.overloads = throttling.overloads.saturating_add(1)",
        after: "throttling.streak = throttling.overloads.saturating_add(1)",
        caught_by: &["standpipe-store::memory::golden_traces_are_told_the_same"],
    },
    Planted {
        name: "all-at-once-when-the-gate-opens",
        file: "crates/standpipe-core/src/provider/return_windows.rs",
        before: "last.map_or(now, |last| last + gap)",
        after: "last.unwrap_or(now)",
        caught_by: &[
            "standpipe-sim::stories::after::herd::b39_behind_a_slow_first_call_nobody_bunches_up",
            "standpipe-sim::stories::after::herd::b39_after_single_file_nobody_bunches_up",
        ],
    },
    Planted {
        name: "the-light-protects-nobody",
        file: "crates/standpipe-core/src/agents/activity.rs",
        before: "self.has_leases || self.has_tickets || recently",
        after: "self.has_leases || self.has_tickets || recently || now > Instant(0)",
        caught_by: &["standpipe-core::foresight::b38_a_lone_agent_of_any_tier_uses_everything"],
    },
    Planted {
        name: "background-does-not-give-way",
        file: "crates/standpipe-core/src/rules/background_yield.rs",
        before: "self.left_reaches(at, SCARCE, from)",
        after: "self.left_reaches(at, SCARCE / 300, from)",
        caught_by: &["standpipe-store::memory::golden_traces_are_told_the_same"],
    },
    Planted {
        name: "background-is-paced-for-nobody",
        file: "crates/standpipe-core/src/rules/spread.rs",
        before: "!superiors.are_active(from)",
        after: "superiors.are_active(from)",
        caught_by: &[
            "standpipe-core::spread::background_is_paced_as_the_book_says",
            "standpipe-store::memory::golden_traces_are_told_the_same",
        ],
    },
    Planted {
        name: "the-pace-leaves-nothing-to-higher-tiers",
        file: "crates/standpipe-core/src/rules/spread.rs",
        before: "(spec.usable_per_period() - burst(spec)).max(1)",
        after: "spec.usable_per_period().max(1)",
        caught_by: &[
            "standpipe-core::spread::background_is_paced_as_the_book_says",
            "standpipe-store::memory::golden_traces_are_told_the_same",
        ],
    },
    Planted {
        name: "a-day-ends-at-the-earliest-announcement",
        file: "crates/standpipe-core/src/usage/calendar.rs",
        before: "self.latest + GUARD + spec.slack",
        after: "self.earliest + GUARD + spec.slack",
        caught_by: &[
            "standpipe-core::calendar::never_over_in_any_day_of_the_provider",
            "standpipe-store::memory::golden_traces_are_told_the_same",
        ],
    },
    Planted {
        name: "a-day-begins-at-the-latest-announcement",
        file: "crates/standpipe-core/src/usage/calendar.rs",
        before: "self.earliest - GUARD",
        after: "self.latest - GUARD",
        caught_by: &["standpipe-core::calendar::never_over_in_any_day_of_the_provider"],
    },
    Planted {
        name: "a-clock-that-jumps-ahead-ends-the-day",
        file: "crates/standpipe-core/src/usage/calendar.rs",
        before: "next_at + STRETCH >= last.earliest + day",
        after: "next_at + STRETCH >= last.earliest",
        caught_by: &[
            "standpipe-core::calendar::after_a_reset_the_next_one_is_a_day_away",
            "standpipe-store::memory::golden_traces_are_told_the_same",
        ],
    },
    Planted {
        name: "pauses-count-towards-promotion",
        file: "crates/standpipe-core/src/queue/promotion.rs",
        before: "self.facts.paused_total = self.facts.paused_total + end.since(began)",
        after: "self.facts.paused_total = self.facts.paused_total + began.since(end)",
        caught_by: &["standpipe-store::memory::golden_traces_are_told_the_same"],
    },
    Planted {
        name: "margin-does-not-rest",
        file: "crates/standpipe-core/src/provider/auto_margin.rs",
        before: "now >= margin.since + period && now >= margin.rests",
        after: "now >= margin.since + period && now >= margin.since",
        caught_by: &["standpipe-core::foresight::margin_rises_to_half_and_rests_for_ten_periods"],
    },
    Planted {
        name: "outside-is-believed-at-once",
        file: "crates/standpipe-core/src/provider/reconcile.rs",
        before: "known.gap == 0 && !caught",
        after: "known.gap > stated && !caught",
        caught_by: &["standpipe-core::foresight::the_providers_count_only_ever_lowers_the_view"],
    },
    Planted {
        name: "an-agents-sizes-are-everybodys",
        file: "crates/standpipe-core/src/usage/estimate.rs",
        before: "agent.and_then(|agent| p90(Some(agent))).or_else(|| p90(None))",
        after: "agent.and_then(|_| p90(None)).or_else(|| p90(None))",
        caught_by: &[
            "standpipe-core::foresight::what_is_not_said_is_estimated_by_agent_then_by_pool",
        ],
    },
    Planted {
        name: "a-changed-limit-forgets-what-was-used",
        file: "crates/standpipe-core/src/config/change.rs",
        before: "bucket.charge(at, charge.units, refill)",
        after: "bucket.charge(at, charge.units - charge.units, refill)",
        caught_by: &["standpipe-core::reconfigure::nothing_is_handed_out_twice"],
    },
    Planted {
        name: "every-commit-wakes-everybody",
        file: "crates/standpipe-core/src/lease/settlement.rs",
        before: "less && scarce",
        after: "less || scarce",
        caught_by: &["standpipe-core::waking::b62_a_commit_that_gives_nothing_back_wakes_nobody"],
    },
    Planted {
        name: "activity-ignores-the-period",
        file: "crates/standpipe-core/src/agents/activity.rs",
        before: "bounds::IDLE.max(Span(period.0 / share))",
        after: "bounds::IDLE.min(Span(period.0 / share))",
        caught_by: &["standpipe-store::memory::golden_traces_are_told_the_same"],
    },
    Planted {
        name: "zone-ignores-the-providers-count",
        file: "crates/standpipe-core/src/rules/left.rs",
        before: "own.min(per_mille(share.left, share.of))",
        after: "own.max(per_mille(share.left, share.of))",
        caught_by: &["standpipe-store::memory::golden_traces_are_told_the_same"],
    },
    Planted {
        name: "red-applies-beside-floors",
        file: "crates/standpipe-core/src/agents/activity.rs",
        before: "who == Who::Everybody || !floored",
        after: "who == Who::Everybody || floored",
        caught_by: &["standpipe-store::memory::golden_traces_are_told_the_same"],
    },
    Planted {
        name: "ramp-counts-what-was-used-before",
        file: "crates/standpipe-core/src/rules/ramp.rs",
        before: "used.saturating_add(part.need)",
        after: "part.usage.charged_at(at).max(used).saturating_add(part.need)",
        caught_by: &["standpipe-store::memory::golden_traces_are_told_the_same"],
    },
    Planted {
        name: "retry-after-is-never-enough",
        file: "crates/standpipe-core/src/provider/throttle.rs",
        before: "new && self.facts.throttling.streak > 1",
        after: "new && self.facts.throttling.streak > 0",
        caught_by: &["standpipe-store::memory::golden_traces_are_told_the_same"],
    },
    Planted {
        name: "the-answer-of-the-probe-wakes-no-one",
        file: "crates/standpipe-core/src/rules/gate.rs",
        before: "room > core::mem::replace(&mut self.index.gate_room, room)",
        after: "room < core::mem::replace(&mut self.index.gate_room, room)",
        caught_by: &["standpipe-store::memory::golden_traces_are_told_the_same"],
    },
    Planted {
        name: "refill-is-taken-for-a-window",
        file: "crates/standpipe-core/src/provider/learn.rs",
        before: "full_in.0 <= refill.saturating_add(refill / 4).saturating_add(ROUNDING.0)",
        after: "full_in.0 <= refill / 4",
        caught_by: &["standpipe-store::memory::golden_traces_are_told_the_same"],
    },
    Planted {
        name: "the-margin-is-taken-of-the-whole-limit",
        file: "crates/standpipe-core/src/config/compiled.rs",
        before: "used_of(beside_others)",
        after: "used_of(amount).saturating_sub(amount - beside_others).max(1)",
        caught_by: &[
            "standpipe-core::outside::usable_is_what_others_leave_less_the_margin",
            "standpipe-store::memory::golden_traces_are_told_the_same",
        ],
    },
    Planted {
        name: "a-ramp-admits-twice-its-share",
        file: "crates/standpipe-core/src/rules/ramp.rs",
        before: "self.ramp_want(part, step, at) <= step.budget",
        after: "self.ramp_want(part, step, at) <= 2 * step.budget",
        caught_by: &["standpipe-store::memory::golden_traces_are_told_the_same"],
    },
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_bug_has_a_name_of_its_own_and_somebody_who_catches_it() {
        let table = table();
        let names: BTreeSet<&str> = table.iter().map(|bug| bug.name).collect();
        assert_eq!(names.len(), table.len(), "two bugs have the same name");
        for bug in table {
            assert!(!bug.caught_by.is_empty(), "nobody catches {}", bug.name);
            assert!(bug.caught_by.iter().all(|test| test.contains("::")));
            assert_ne!(bug.before, bug.after, "{} is no bug", bug.name);
        }
    }
}
