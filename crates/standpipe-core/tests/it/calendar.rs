//! Limits per day that the provider resets at a time of day: processes announce what their wall
//! clocks say, clocks are wrong now and then, and no day of the provider gets a second quota.

use proptest::prelude::*;
use standpipe_core::{
    Action, Answer, CalendarReset, Configured, Decision, Instant, InvalidConfig, LeaseAnswer,
    Limit, LimitId, Notice, Policy, PoolConfig, Priority, Reason, Resets, Span, Text, Unit,
};

use crate::support::cases;
use crate::support::words::{HOUR, REQUESTS, at_end, pool, ranked, secs, window};
use crate::support::world::{World, is_admitted};

/// Long enough after the origin of the clock that the day before is on it.
const BEGINNING: Instant = Instant(40 * DAY.0);
const DAY: Span = Span::secs(86_400);
const HALF_HOUR: Span = Span::secs(1_800);
/// Units are released so long after the last announced instant.
const GUARD: Span = Span::secs(5);

fn start(config: PoolConfig) -> World {
    let mut world = World::new(config);
    world.at(BEGINNING);
    world
}

fn daily(amount: u64) -> Limit {
    let resets = Resets::Calendar(Text::new("00:00 America/Los_Angeles").unwrap());
    Limit { resets, ..window(REQUESTS, amount, DAY) }
}

/// A process says that the last reset was a day before the next one, which comes after `left`.
fn announce(world: &mut World, left: Span) {
    announce_days(world, Span(DAY.0 - left.0), left);
}

fn announce_days(world: &mut World, since: Span, left: Span) {
    let limit = LimitId::Window(Unit::Requests, DAY);
    let resets = vec![CalendarReset { limit, since, left }];
    let _ = world.send("clock", Action::Calendar { resets });
}

fn drain(world: &mut World) -> u64 {
    let mut count = 0;
    while let Decision::Admit(grant) = world.reserve("p", "a").send() {
        let _ = world.commit(grant.lease).send();
        count += 1;
    }
    count
}

#[test]
fn the_day_ends_at_the_reset_and_not_24_hours_after_the_first_call() {
    let mut world = start(pool([daily(3)]));
    announce(&mut world, HOUR);
    assert_eq!(drain(&mut world), 3);
    let reply = world.reserve("p", "a").refused();
    let reset = BEGINNING + HOUR;
    assert_eq!((reply.reason, reply.until), (Reason::Limit, Some(reset + GUARD)));
    assert!(reply.exact);
    world.at(reset + GUARD - Span(1));
    let _ = world.reserve("p", "a").refused();
    world.at(reset + GUARD);
    assert_eq!(drain(&mut world), 3);
    assert!(world.notices().any(|notice| matches!(notice, Notice::WindowReset { .. })));
}

/// Nobody announces anything: a rolling window that is longer than the longest day.
#[test]
fn without_an_announcement_it_is_a_rolling_window_of_26_hours() {
    let mut world = start(pool([daily(3)]));
    assert_eq!(drain(&mut world), 3);
    let reply = world.reserve("p", "a").refused();
    assert_eq!(reply.until, Some(BEGINNING + DAY + secs(7_200)));
}

/// The day after a change of daylight saving time has 23 or 25 hours.
#[test]
fn days_of_23_and_25_hours() {
    for hours in [23, 24, 25] {
        let mut world = start(pool([daily(3)]));
        announce(&mut world, HOUR);
        world.at(BEGINNING + HOUR + GUARD);
        let length = secs(hours * 3_600);
        announce_days(&mut world, GUARD, Span(length.0 - GUARD.0));
        assert_eq!(drain(&mut world), 3);
        let next = BEGINNING + HOUR + length + GUARD;
        assert_eq!(world.reserve("p", "a").refused().until, Some(next), "{hours} h");
        world.at(next - Span(1));
        let _ = world.reserve("p", "a").refused();
        world.at(next);
        assert_eq!(drain(&mut world), 3, "{hours} h");
    }
}

/// What was charged shortly before the reset may count in the provider's new day.
#[test]
fn calls_around_the_reset_count_on_both_sides() {
    let mut world = start(pool([daily(3)]));
    announce(&mut world, HOUR);
    world.at(BEGINNING + HOUR - secs(4));
    let _ = world.reserve("p", "a").admitted();
    world.at(BEGINNING + HOUR + secs(3));
    let _ = world.reserve("p", "a").admitted();
    world.at(BEGINNING + HOUR + GUARD);
    announce_days(&mut world, GUARD, Span(DAY.0 - GUARD.0));
    assert_eq!(drain(&mut world), 1);
}

/// A call in flight over the reset counts in the new day until it ends below its estimate.
#[test]
fn calls_in_flight_are_carried() {
    let mut world = start(pool([daily(3)]));
    announce(&mut world, HALF_HOUR);
    let lease = world.reserve("p", "a").requests(2).admitted();
    let reply = world.reserve("p", "a").requests(2).refused();
    let carried = BEGINNING + HALF_HOUR - GUARD + DAY + secs(7_200);
    assert_eq!(reply.until, Some(carried), "it is carried over the reset");
    world.live(HALF_HOUR + GUARD);
    assert_eq!(drain(&mut world), 1);
    let _ = world.commit(lease).used(&[(REQUESTS, 0)]).send();
    assert_eq!(drain(&mut world), 2);
}

#[test]
fn end_charged_units_count_in_the_day_in_which_they_end() {
    let mut world = start(pool([at_end(daily(3))]));
    announce(&mut world, HALF_HOUR);
    let lease = world.reserve("p", "a").requests(3).admitted();
    world.live(HALF_HOUR + GUARD);
    let _ = world.reserve("p", "a").refused();
    let _ = world.commit(lease).used(&[(REQUESTS, 1)]).send();
    let _ = world.reserve("p", "a").requests(3).refused();
    let _ = world.reserve("p", "a").requests(2).admitted();
}

/// Two processes disagree: units are released after the later instant, and charges count in the
/// new day from the earlier one on.
#[test]
fn whoever_is_right_there_is_no_second_quota() {
    let mut world = start(pool([daily(3)]));
    announce(&mut world, HOUR);
    announce(&mut world, secs(3_600 + 600));
    world.at(BEGINNING + HOUR + secs(60));
    let _ = world.reserve("p", "a").requests(2).admitted();
    world.at(BEGINNING + HOUR + secs(600) + GUARD);
    assert_eq!(drain(&mut world), 1, "the first two may be of the new day");
}

/// Some seconds are no disagreement, and nothing is sent for them.
#[test]
fn some_seconds_are_the_same_instant() {
    let mut world = start(pool([daily(3)]));
    announce(&mut world, HOUR);
    let limit = LimitId::Window(Unit::Requests, DAY);
    let said = |seconds: u64| {
        let left = secs(seconds);
        vec![CalendarReset { limit: limit.clone(), since: Span(DAY.0 - left.0), left }]
    };
    assert!(!world.state.would_announce(&said(3_598), world.now));
    assert!(!world.state.would_announce(&said(3_602), world.now));
    assert!(world.state.would_announce(&said(3_603), world.now));
    let other = vec![CalendarReset {
        limit: LimitId::Window(Unit::Tokens, DAY),
        since: HOUR,
        left: Span(DAY.0 - HOUR.0),
    }];
    assert!(!world.state.would_announce(&other, world.now), "no such limit");
    let impossible = vec![CalendarReset { limit, since: HOUR, left: HOUR }];
    assert!(!world.state.would_announce(&impossible, world.now), "no day has two hours");
}

/// A clock that jumps ahead cannot end the day early.
#[test]
fn after_a_reset_the_next_one_is_a_day_away() {
    let mut world = start(pool([daily(3)]));
    announce(&mut world, HOUR);
    world.at(BEGINNING + HOUR + GUARD);
    assert_eq!(drain(&mut world), 3);
    announce(&mut world, secs(60));
    world.after(secs(120));
    assert_eq!(drain(&mut world), 0);
    let known = world.state.facts().counters.iter().next().unwrap().calendar;
    assert_eq!(known.next, None, "nothing is believed less than a day after the last one");
}

/// An event that was stamped an hour late missed the reset it announces; the next one that is right
/// says when the last reset was.
#[test]
fn a_late_announcement_is_put_right() {
    let mut world = start(pool([daily(3)]));
    // The reset was at the beginning; the announcement says it comes in a minute.
    announce(&mut world, secs(60));
    let _ = world.reserve("p", "a").requests(2).admitted();
    announce_days(&mut world, Span(1), Span(DAY.0 - 1));
    world.after(secs(60) + GUARD);
    assert_eq!(drain(&mut world), 1, "two were charged after the true reset");
}

/// A pool that was unused over several resets knows nothing of the present day but is empty.
#[test]
fn a_pool_that_slept_over_resets_is_free() {
    let mut world = start(pool([daily(3)]));
    announce(&mut world, HOUR);
    assert_eq!(drain(&mut world), 3);
    world.after(secs(3 * 86_400));
    let _ = world.reserve("p", "a").admitted();
    announce(&mut world, secs(3 * 3_600));
    assert_eq!(drain(&mut world), 2);
    let reply = world.reserve("p", "a").refused();
    assert_eq!(reply.until, Some(world.now + secs(3 * 3_600) + GUARD));
}

/// Another time of day: what was released counts again until the new day is known.
#[test]
fn another_calendar_hands_nothing_out_again() {
    let mut world = start(pool([daily(3)]));
    announce(&mut world, HOUR);
    assert_eq!(drain(&mut world), 3);
    world.at(BEGINNING + HOUR + GUARD);
    let mut changed = pool([daily(3)]);
    changed.limits[0].resets = Resets::Calendar(Text::new("00:00 UTC").unwrap());
    assert_eq!(world.change(changed), Configured::Applied);
    assert_eq!(drain(&mut world), 0);
    let mut rolling = pool([daily(3)]);
    rolling.limits[0].resets = Resets::Rolling;
    assert_eq!(world.change(rolling), Configured::Applied);
    assert_eq!(world.reserve("p", "a").refused().until, Some(BEGINNING + DAY));
}

#[test]
fn only_a_window_of_a_day_has_a_calendar() {
    let mut hourly = daily(3);
    hourly.rule = window(REQUESTS, 3, HOUR).rule;
    let reply = pool([hourly]).check();
    assert_eq!(reply, Err(InvalidConfig::Calendar(LimitId::Window(Unit::Requests, HOUR))));
}

/// Background draws on a calendar day by the share of it that has elapsed.
#[test]
fn background_is_spread_over_the_day() {
    let policy = Policy { spreads: true, ..Policy::NONE };
    let agents = vec![ranked("picard", Priority::Critical), ranked("ralph", Priority::Background)];
    let mut world = start(PoolConfig { policy, agents, ..pool([daily(240)]) });
    announce(&mut world, secs(12 * 3_600));
    let _ = world.reserve("p", "picard").requests(120).admitted();
    assert!(is_admitted(&world.reserve("r", "ralph").send()), "half of the day has elapsed");
    let reply = world.reserve("r", "ralph").refused();
    let not_before = BEGINNING + secs(360);
    assert_eq!((reply.reason, reply.until), (Reason::Spread, Some(not_before)));
    world.at(not_before);
    assert!(is_admitted(&world.reserve("r", "ralph").send()));
}

/// On a day of 23 or 25 hours the pace is that of the whole day.
#[test]
fn background_is_spread_over_days_of_23_and_25_hours() {
    for hours in [23, 24, 25] {
        let policy = Policy { spreads: true, ..Policy::NONE };
        let agents =
            vec![ranked("picard", Priority::Critical), ranked("ralph", Priority::Background)];
        let mut world = start(PoolConfig { policy, agents, ..pool([daily(240)]) });
        announce(&mut world, HOUR);
        let begins = BEGINNING + HOUR;
        world.at(begins + GUARD);
        let length = secs(hours * 3_600);
        announce_days(&mut world, GUARD, Span(length.0 - GUARD.0));
        let _ = world.reserve("p", "picard").requests(120).admitted();
        let half = begins + Span(length.0 / 2);
        assert_eq!(world.reserve("r", "ralph").refused().until, Some(half), "{hours} h");
        world.at(half - Span(1));
        assert_eq!(world.reserve("r", "ralph").refused().reason, Reason::Spread, "{hours} h");
        world.at(half);
        assert!(is_admitted(&world.reserve("r", "ralph").send()), "{hours} h");
    }
}

/// A call that waits for another pool over a reset counts once in the new day, when it is dated.
#[test]
fn a_lease_dated_after_the_reset_counts_once() {
    let mut world = start(pool([daily(3)]));
    announce(&mut world, HALF_HOUR);
    let lease = world.reserve("p", "a").requests(2).admitted();
    world.live(HALF_HOUR + GUARD + secs(10));
    let dated = world.send("p", Action::Redate { lease });
    assert!(matches!(dated.answer, Answer::Lease(LeaseAnswer::Lives(_))), "{dated:?}");
    announce_days(&mut world, GUARD + secs(10), Span(DAY.0 - GUARD.0 - 10_000_000));
    assert_eq!(drain(&mut world), 1);
    let _ = world.send("p", Action::Cancel { lease });
    assert_eq!(drain(&mut world), 2, "all of it is returned to the new day");
}

/// One process on a machine whose clock is right or wrong by some minutes.
#[derive(Clone, Debug)]
enum Step {
    Pass(u64),
    Ask(u64),
    /// An announcement by a clock that is off by so many seconds.
    Announce(i64),
    /// The right announcement.
    Right,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (1_u64..20_000).prop_map(Step::Pass),
        5 => (1_u64..6).prop_map(Step::Ask),
        1 => (-30_000_i64..30_000).prop_map(Step::Announce),
        3 => Just(Step::Right),
    ];
    prop::collection::vec(step, 1..80)
}

/// When the provider's days begin, in seconds after the beginning: one of 23 and one of 25 hours.
fn days(first: u64) -> Vec<u64> {
    let lengths = [24, 23, 24, 25, 24, 24, 23, 25];
    let mut days = vec![first];
    for hours in lengths.iter().cycle().take(40) {
        days.push(days[days.len() - 1] + hours * 3_600);
    }
    days
}

proptest! {
    #![proptest_config(cases(100))]

    /// The provider counts by its own days. Clocks may be wrong whenever the right one has spoken
    /// before, in this day and before the reset: then no day has more than the limit.
    #[test]
    fn never_over_in_any_day_of_the_provider(first in 1_u64..86_400, steps in steps()) {
        let mut world = start(pool([daily(7)]));
        let days = days(first);
        let elapsed = |now: Instant| now.since(BEGINNING).0 / 1_000_000;
        let around = |now: u64| {
            let next = days.iter().position(|day| *day > now).expect("enough days");
            let last = next.checked_sub(1).map_or(days[0] as i64 - 86_400, |at| days[at] as i64);
            (next, now as i64 - last, days[next] - now)
        };
        let mut used = std::collections::BTreeMap::<usize, u64>::new();
        for step in &steps {
            let now = elapsed(world.now);
            let (day, since, left) = around(now);
            match step {
                Step::Pass(seconds) => { world.live(secs(*seconds)); }
                Step::Ask(count) => {
                    // Every process announces before it asks; see `client/calendar.rs`.
                    announce_days(&mut world, secs(since as u64), secs(left));
                    let asked = world.reserve("p", "a").requests(*count).send();
                    if let Decision::Admit(grant) = asked {
                        let _ = world.commit(grant.lease).send();
                        *used.entry(day).or_default() += count;
                    }
                }
                Step::Announce(off) => {
                    announce_days(&mut world, secs(since as u64), secs(left));
                    let off = (*off).clamp(-since, left as i64);
                    let (since, left) = (since + off, left as i64 - off);
                    announce_days(&mut world, secs(since as u64), secs(left as u64));
                }
                Step::Right => announce_days(&mut world, secs(since as u64), secs(left)),
            }
        }
        prop_assert!(used.values().all(|units| *units <= 7), "{used:?}");
    }
}
