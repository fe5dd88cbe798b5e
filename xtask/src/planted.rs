//! Planted bugs: wrong expressions that a named test must notice.
//!
//! A test that cannot fail proves nothing. Each entry names a right expression of the sources, a
//! wrong one to put in its place, and the tests that must then fail. How they are built and run is
//! in `suites/planted.rs`.

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
pub(crate) const TABLE: &[Planted] = &[
    Planted {
        name: "off-by-one-in-the-window",
        file: "crates/standpipe-core/src/window.rs",
        before: "now < first.stamp + period",
        after: "now + Span(1) < first.stamp + period",
        caught_by: &[
            "standpipe-core::props::window_never_over",
            "standpipe-store::memory::golden_traces_are_told_the_same",
        ],
    },
    Planted {
        name: "slice-stamped-with-its-start",
        file: "crates/standpipe-core/src/window.rs",
        before: "Instant(now.0.div_ceil(width).saturating_mul(width))",
        after: "Instant((now.0 / width).saturating_mul(width))",
        caught_by: &[
            "standpipe-core::lib::window::tests::joined_entries_are_late_never_early_and_bounded",
            "standpipe-store::memory::golden_traces_are_told_the_same",
        ],
    },
    Planted {
        name: "refund-of-what-has-aged-out",
        file: "crates/standpipe-core/src/window.rs",
        before: "self.entries.binary_search_by(|entry| entry.stamp.cmp(&stamp))",
        after: "self.entries.front().map(|_| 0).ok_or(0_usize)",
        caught_by: &[
            "standpipe-core::faults::refund::b18_no_credit_from_a_charge_that_has_aged",
            "standpipe-store::memory::golden_traces_are_told_the_same",
        ],
    },
    Planted {
        name: "refund-twice",
        file: "crates/standpipe-core/src/lease.rs",
        before: "tally.refund(now, self.mark, self.charged - total, spec)",
        after: "tally.refund(now, self.mark, 2 * (self.charged - total), spec)",
        caught_by: &[
            "standpipe-core::props::all_or_nothing",
            "standpipe-store::memory::golden_traces_are_told_the_same",
        ],
    },
    Planted {
        name: "newcomer-barges",
        file: "crates/standpipe-core/src/judge.rs",
        before: "Standing::of(*first) < standing",
        after: "Standing::of(*first) > standing",
        caught_by: &[
            "standpipe-core::order::order_holds",
            "standpipe-store::memory::golden_traces_are_told_the_same",
        ],
    },
    Planted {
        name: "held-ticket-blocks",
        file: "crates/standpipe-core/src/serve.rs",
        before: "self.not_yet(&asker, now)",
        after: "self.not_yet(&asker, now).filter(|_| false)",
        caught_by: &["standpipe-store::memory::golden_traces_are_told_the_same"],
    },
    Planted {
        name: "large-call-is-starved",
        file: "crates/standpipe-core/src/serve.rs",
        before: "self.is_too_late(head, now)",
        after: "true",
        caught_by: &[
            "standpipe-core::order::large_call_is_not_starved",
            "standpipe-store::memory::golden_traces_are_told_the_same",
        ],
    },
    Planted {
        name: "all-or-nothing-broken",
        file: "crates/standpipe-core/src/judge.rs",
        before: "(0..self.index.plan.lanes.len()).filter(lacks)",
        after: "(0..1).filter(lacks)",
        caught_by: &[
            "standpipe-core::props::all_or_nothing",
            "standpipe-store::memory::golden_traces_are_told_the_same",
        ],
    },
    Planted {
        name: "lapse-loses-what-was-set-aside",
        file: "crates/standpipe-core/src/serve.rs",
        before: "lanes_of(aside)",
        after: "lanes_of(aside & (aside >> 31))",
        caught_by: &["standpipe-store::memory::golden_traces_are_told_the_same"],
    },
    Planted {
        name: "set-aside-withheld-from-a-higher-tier",
        file: "crates/standpipe-core/src/judge.rs",
        before: "aside.by_tier[..tier].iter().sum()",
        after: "aside.by_tier.iter().sum()",
        caught_by: &[
            "standpipe-core::order::critical_first",
            "standpipe-store::memory::golden_traces_are_told_the_same",
        ],
    },
    Planted {
        name: "small-calls-pass-beside-a-floor",
        file: "crates/standpipe-core/src/serve.rs",
        before: "instant.is_none_or(|at| at > ticket.deadline)",
        after: "matches!(ticket.phase, Phase::Line(lane)
            if self.ticket_lack(place, usize::from(lane), now)
                .is_some_and(|lack| lack.reason == Reason::Floor))",
        caught_by: &["standpipe-store::memory::golden_traces_are_told_the_same"],
    },
    Planted {
        name: "progress-added-not-replaced",
        file: "crates/standpipe-core/src/settle.rs",
        before: "charge.progress(tally, spec, total, now)",
        after: "charge.progress(tally, spec, total + charge.charged, now)",
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
        file: "crates/standpipe-core/src/serve.rs",
        before: "self.take_back_behind(head, lane, now)",
        after: "()",
        caught_by: &[
            "standpipe-core::order::critical_first",
            "standpipe-store::memory::golden_traces_are_told_the_same",
        ],
    },
    Planted {
        name: "refill-rounded-in-favour",
        file: "crates/standpipe-core/src/bucket.rs",
        before: "over.saturating_sub(self.credit).div_ceil(u128::from(refill.amount.max(1)))",
        after: "(over.saturating_sub(self.credit) / u128::from(refill.amount.max(1)))",
        caught_by: &[
            "standpipe-core::props::until_is_exact",
            "standpipe-store::memory::golden_traces_are_told_the_same",
        ],
    },
    Planted {
        name: "pause-shortened-by-a-shorter-one",
        file: "crates/standpipe-core/src/throttle.rs",
        before: "self.facts.pause.is_some_and(|before| before >= until)",
        after: "self.facts.pause.is_some_and(|before| before == until)",
        caught_by: &[
            "standpipe-core::faults::lost::b40_a_pause_only_grows_and_always_ends",
            "standpipe-store::memory::golden_traces_are_told_the_same",
        ],
    },
    Planted {
        name: "dead-session-keeps-its-slots",
        file: "crates/standpipe-core/src/sessions.rs",
        before: "holder == Holder::Session(session)",
        after: "holder == Holder::Session(session + 1)",
        caught_by: &["standpipe-store::memory::golden_traces_are_told_the_same"],
    },
    Planted {
        name: "stragglers-raise-the-streak",
        file: "crates/standpipe-core/src/throttle.rs",
        before: "started > began",
        after: "started <= began || started > began",
        caught_by: &["standpipe-store::memory::golden_traces_are_told_the_same"],
    },
    Planted {
        name: "a-success-from-before-the-pause-resets-the-streak",
        file: "crates/standpipe-core/src/answered.rs",
        before: "trouble.began.is_none_or(|began| started > began)",
        after: "trouble.began.is_none_or(|began| started > began || started <= began)",
        caught_by: &["standpipe-store::memory::golden_traces_are_told_the_same"],
    },
    Planted {
        name: "no-probe-after-a-pause",
        file: "crates/standpipe-core/src/comeback.rs",
        before: "self.facts.trouble.probe = Probe::Wanted",
        after: "self.facts.trouble.probe = Probe::Over",
        caught_by: &["standpipe-store::memory::golden_traces_are_told_the_same"],
    },
    Planted {
        name: "a-probe-that-was-never-sent-keeps-its-role",
        file: "crates/standpipe-core/src/gate.rs",
        before: "if was_sent { Probe::Over } else { Probe::Wanted }",
        after: "if was_sent { Probe::Over } else { trouble.probe }",
        caught_by: &["standpipe-store::memory::golden_traces_are_told_the_same"],
    },
    Planted {
        name: "everybody-comes-back-at-the-windows-start",
        file: "crates/standpipe-core/src/comeback.rs",
        before: "width * share / ((n.max(1) as u128) << 32)",
        after: "width * share / ((n.max(1) as u128) << 120)",
        caught_by: &["standpipe-core::policies::nobody_comes_back_together"],
    },
    Planted {
        name: "one-at-a-time-ends-at-once",
        file: "crates/standpipe-core/src/gate.rs",
        before: "trouble.sequential.is_some_and(|sequential| sequential.ends <= now)",
        after: "trouble.sequential.is_some_and(|sequential| sequential.began <= now)",
        caught_by: &["standpipe-store::memory::golden_traces_are_told_the_same"],
    },
    Planted {
        name: "one-retry-too-many",
        file: "crates/standpipe-core/src/retries.rs",
        before: "trouble.retries.used_at(at, MINUTE) < share.max(u64::from(budget.least))",
        after: "trouble.retries.used_at(at, MINUTE) <= share.max(u64::from(budget.least))",
        caught_by: &["standpipe-store::memory::golden_traces_are_told_the_same"],
    },
    Planted {
        name: "an-overload-raises-the-streak",
        file: "crates/standpipe-core/src/throttle.rs",
        before: "self.facts.trouble.overloads = self.facts.trouble.overloads.saturating_add(1)",
        after: "self.facts.trouble.streak = self.facts.trouble.overloads.saturating_add(1)",
        caught_by: &["standpipe-store::memory::golden_traces_are_told_the_same"],
    },
    Planted {
        name: "all-at-once-when-the-gate-opens",
        file: "crates/standpipe-core/src/comeback.rs",
        before: "last.map_or(now, |last| last + gap)",
        after: "last.unwrap_or(now)",
        caught_by: &[
            "standpipe-sim::stories::after::herd::b39_behind_a_slow_first_call_nobody_bunches_up",
            "standpipe-sim::stories::after::herd::b39_after_single_file_nobody_bunches_up",
        ],
    },
    Planted {
        name: "the-light-protects-nobody",
        file: "crates/standpipe-core/src/zone.rs",
        before: "!self.superiors_active(asker.tier(), now)",
        after: "asker.tier() == Priority::Critical",
        caught_by: &["standpipe-core::foresight::b38_a_lone_agent_of_any_tier_uses_everything"],
    },
    Planted {
        name: "background-does-not-give-way",
        file: "crates/standpipe-core/src/yields.rs",
        before: "self.left(Lit::Rates, now) < LITTLE",
        after: "self.left(Lit::Rates, now) < LITTLE / 300",
        caught_by: &["standpipe-store::memory::golden_traces_are_told_the_same"],
    },
    Planted {
        name: "pauses-count-towards-promotion",
        file: "crates/standpipe-core/src/promote.rs",
        before: "self.facts.outlook.paused = self.facts.outlook.paused + end.since(began)",
        after: "self.facts.outlook.paused = self.facts.outlook.paused + began.since(end)",
        caught_by: &["standpipe-store::memory::golden_traces_are_told_the_same"],
    },
    Planted {
        name: "headroom-does-not-rest",
        file: "crates/standpipe-core/src/headroom.rs",
        before: "now >= warmth.since + period && now >= warmth.rests",
        after: "now >= warmth.since + period && now >= warmth.since",
        caught_by: &["standpipe-core::foresight::headroom_falls_to_half_and_rests_for_ten_periods"],
    },
    Planted {
        name: "outside-is-believed-at-once",
        file: "crates/standpipe-core/src/reconcile.rs",
        before: "known.gap == 0 && !caught",
        after: "known.gap > stated && !caught",
        caught_by: &["standpipe-core::foresight::the_providers_count_only_ever_lowers_the_view"],
    },
    Planted {
        name: "an-agents-sizes-are-everybodys",
        file: "crates/standpipe-core/src/estimate.rs",
        before: "agent.and_then(|agent| p90(Some(agent))).or_else(|| p90(None))",
        after: "agent.and_then(|_| p90(None)).or_else(|| p90(None))",
        caught_by: &[
            "standpipe-core::foresight::what_is_not_said_is_estimated_by_agent_then_by_pool",
        ],
    },
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::references;

    #[test]
    fn every_bug_has_a_name_of_its_own_and_somebody_who_catches_it() {
        let names: BTreeSet<&str> = TABLE.iter().map(|bug| bug.name).collect();
        assert_eq!(names.len(), TABLE.len(), "two bugs have the same name");
        for bug in TABLE {
            assert!(!bug.caught_by.is_empty(), "nobody catches {}", bug.name);
            assert!(bug.caught_by.iter().all(|test| references::parts(test).is_some()));
            assert_ne!(bug.before, bug.after, "{} is no bug", bug.name);
        }
    }
}
