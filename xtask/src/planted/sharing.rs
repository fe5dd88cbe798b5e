//! Bugs in finer sharing: pools within pools, fair order, slots by weight.

use super::Planted;

pub(super) const SHARING: &[Planted] = &[
    Planted {
        name: "a-charge-that-has-aged-is-dated-to-now",
        file: "crates/standpipe-core/src/lease/redate.rs",
        before: "counts(limit.spec.period)",
        after: "stamp.is_some()",
        caught_by: &["standpipe-store::memory::golden_traces_are_told_the_same"],
    },
    Planted {
        name: "a-date-takes-what-was-refilled-for-others",
        file: "crates/standpipe-core/src/lease/redate.rs",
        before: "is_free && self.facts.tickets.is_empty()",
        after: "is_free",
        caught_by: &["standpipe-store::memory::golden_traces_are_told_the_same"],
    },
    Planted {
        name: "a-lease-is-dated-into-a-pause",
        file: "crates/standpipe-core/src/lease/redate.rs",
        before: "self.facts.pause.is_some() || began.is_some_and(|at| at >= lease.started)",
        after: "began.is_some_and(|at| at > now)",
        caught_by: &[
            "standpipe-core::props::pace_and_pause_are_kept",
            "standpipe-store::memory::golden_traces_are_told_the_same",
        ],
    },
    Planted {
        name: "a-withdrawn-call-keeps-its-id",
        file: "crates/standpipe-core/src/lease/redate.rs",
        before: "self.id_unused(id.as_deref(), key)",
        after: "self.id_unused(None, key)",
        caught_by: &["standpipe-store::memory::golden_traces_are_told_the_same"],
    },
    Planted {
        name: "a-parent-is-reserved-before-its-child",
        file: "crates/standpipe/src/wait/set_reserve.rs",
        before: "Reverse(depth)",
        after: "Reverse(0 * depth)",
        caught_by: &["standpipe::within::a_chain_of_three_is_taken_from_the_bottom_to_the_top"],
    },
    Planted {
        name: "earlier-charges-keep-their-date",
        file: "crates/standpipe/src/wait/set_reserve.rs",
        before: "lease.asked_at() < last.asked_at() && age > micros(lease.slack()) / 5",
        after: "lease.asked_at() < last.asked_at() && age.is_zero()",
        caught_by: &["standpipe::within::earlier_charges_are_dated_to_the_last_grant"],
    },
    Planted {
        name: "a-pool-is-held-while-an-earlier-one-is-waited-for",
        file: "crates/standpipe/src/wait/set_reserve.rs",
        before: "waits && !in_vain && self.holds_later(at)",
        after: "waits && in_vain && self.holds_later(at)",
        caught_by: &["standpipe::within::a_pool_whose_period_has_passed_is_asked_again"],
    },
    Planted {
        name: "newcomer-takes-before-a-smaller-tag",
        file: "crates/standpipe-core/src/lease/reserve.rs",
        before: "QueueKey { tier, tag: place.tag, arrival: u64::MAX }",
        after: "QueueKey { tier, tag: place.start, arrival: u64::MAX }",
        caught_by: &[
            "standpipe-core::order::fair_order_holds",
            "standpipe-store::memory::golden_traces_are_told_the_same",
        ],
    },
    Planted {
        name: "calls-without-a-ticket-do-not-count",
        file: "crates/standpipe-core/src/queue/fair.rs",
        before: "self.has_competitor(agent, tier, cost)",
        after: "self.has_competitor(agent, tier, cost) && place.tag < place.start",
        caught_by: &[
            "standpipe-core::fair::who_never_waits_gets_no_more_than_its_share",
            "standpipe-core::order::fair_order_holds",
            "standpipe-store::memory::golden_traces_are_told_the_same",
        ],
    },
    Planted {
        name: "weight-ignored",
        file: "crates/standpipe-core/src/queue/fair.rs",
        before: "self.largest_share(cost).div_ceil(u64::from(weight.max(1)))",
        after: "self.largest_share(cost).div_ceil(u64::from(weight.min(1)))",
        caught_by: &[
            "standpipe-core::fair::weights_are_kept_within_five_percent",
            "standpipe-store::memory::golden_traces_are_told_the_same",
        ],
    },
    Planted {
        name: "idle-agents-have-credit",
        file: "crates/standpipe-core/src/queue/fair.rs",
        before: "to.min(first).max(*now)",
        after: "to.min(first).min(*now)",
        caught_by: &[
            "standpipe-core::fair::idle_time_is_neither_credit_nor_debt",
            "standpipe-core::order::fair_order_holds",
        ],
    },
    Planted {
        name: "a-call-takes-one-slot-whatever-it-names",
        file: "crates/standpipe-core/src/config/compiled.rs",
        before: "cost.slots()",
        after: "cost.slots().min(1)",
        caught_by: &[
            "standpipe-core::props::parallel_never_over",
            "standpipe-store::memory::golden_traces_are_told_the_same",
        ],
    },
    Planted {
        name: "learned-parallel-turns-a-call-away-for-good",
        file: "crates/standpipe-core/src/config/compiled.rs",
        before: "declared.map_or(bounds::AMOUNT, Limit::stated)",
        after: "declared.map_or(bounds::AMOUNT, |_| limit.stated())",
        caught_by: &["standpipe-store::memory::golden_traces_are_told_the_same"],
    },
];
