//! Providers with odd ways: a wrong clock, no word on when to come back, headers that cannot be.

use standpipe_core::{Notice, Policy, PoolConfig};
use standpipe_sim::{Options, Pattern, Provider, Report, RetryAfter, Rule, Shape};

use super::scene::{Tale, declared, play, usual};
use super::table::{Table, seconds};
use crate::stories::scene::{HOUR, MILLI, MINUTE, SECOND, calls, requests};

/// Five agents, beside others who use nearly all there is for a minute.
fn odd(shape: Shape, change: impl Fn(&mut Options)) -> (Report, Tale) {
    // Who looked at what is left would be refused less.
    let policy = Policy { reconciles: false, ..Policy::usual() };
    let config = PoolConfig { policy, ..usual(vec![declared(100, MINUTE)]) };
    let tale = Tale::new(shape, config);
    let mut options = Options { refused_count: false, ..Options::of(shape) };
    change(&mut options);
    let others = Rule::Foreign { per_second: 7, input: 0, output: 0, from: 0, until: MINUTE };
    let upstream = Provider::new(shape, vec![requests(100, MINUTE), others], 1).with(options);
    let work = || calls(30, 300 * MILLI, Pattern::Every(4_300 * MILLI));
    let agents = (0..5).map(|n| tale.agent(&format!("agent {n}"), work()));
    (play(upstream, agents.collect()).0, tale)
}

/// Lengths come out right however wrong the clock is, because all moments are by the same one.
#[test]
fn a_clock_that_is_off_by_an_hour_makes_no_difference() {
    for shape in [Shape::Anthropic, Shape::OpenAi, Shape::GitHub] {
        let (right, _) = odd(shape, |_| {});
        assert!(right.refused > 0, "{right}");
        for error in [-(HOUR as i64), HOUR as i64] {
            let (wrong, _) = odd(shape, |options| options.clock_error = error);
            assert_eq!(wrong, right, "{shape:?}, {error}: {wrong}, not {right}");
        }
    }
}

fn withheld() -> (Report, Tale) {
    odd(Shape::OpenAi, |options| options.retry_after = RetryAfter::Withheld)
}

#[test]
fn without_a_word_on_when_to_come_back_the_pool_has_its_own() {
    let (told, _) = odd(Shape::OpenAi, |_| {});
    let (story, tale) = withheld();
    let lengths: Vec<_> = tale.pauses().iter().map(|(at, until)| (until - at) / SECOND).collect();
    assert_eq!(
        told.to_string(),
        "wanted 150: done 150, given up 0, lost 0; \
         made 155: refused 5, wasted 5, at most 15 a second; \
         130.57 s, waves of refusals: 1"
    );
    assert_eq!(
        story.to_string(),
        "wanted 150: done 150, given up 0, lost 0; \
         made 157: refused 7, wasted 7, at most 15 a second; \
         156.53 s, waves of refusals: 3"
    );
    assert_eq!(lengths, [10, 20, 40]);
}

/// What no provider should send.
const ABSURD: [&[(&str, &str)]; 9] = [
    &[("retry-after", "-5"), ("retry-after-ms", "-5000")],
    &[("retry-after", "99999999999999999999999"), ("retry-after-ms", "1e400")],
    &[("retry-after", "soon"), ("retry-after-ms", "NaN")],
    &[("retry-after", "Wed, 21 Oct 2099 07:28:00 GMT")],
    &[("retry-after", ""), ("date", "yesterday")],
    &[("x-ratelimit-limit-requests", "0"), ("x-ratelimit-remaining-requests", "0")],
    &[("x-ratelimit-limit-requests", "18446744073709551616")],
    &[("x-ratelimit-limit-requests", "-100"), ("x-ratelimit-remaining-requests", "-1")],
    &[("x-ratelimit-remaining-requests", "5000"), ("x-ratelimit-reset-requests", "-6m0s")],
];

fn forged(headers: &[(&str, &str)]) -> (Report, Tale) {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    odd(Shape::OpenAi, |options| {
        options.retry_after = RetryAfter::Withheld;
        options.forged = headers.iter().map(owned).collect();
    })
}

/// Whatever the headers say, no pause is longer than a period, no limit is lost, and the work is
/// done.
#[test]
fn absurd_headers_are_not_obeyed() {
    let plain = withheld().0;
    for headers in ABSURD {
        let (story, tale) = forged(headers);
        let longest = tale.pauses().iter().map(|(at, until)| until - at).max();
        assert!(longest <= Some(MINUTE), "{headers:?}: {longest:?}");
        let lost = tale.looks().into_iter().find(|look| look.effective.len() != 1);
        assert_eq!(lost, None, "{headers:?}");
        assert_eq!(story.done, plain.done, "{headers:?}: {story}");
        assert!(story.refused <= 2 * plain.refused, "{headers:?}: {story}, not {plain}");
    }
}

/// An answer that Standpipe itself wrote, on its way through another one, teaches nothing.
#[test]
fn b42_our_own_refusals_teach_nothing() {
    let (story, tale) = forged(&[("x-standpipe-origin", "ledger")]);
    assert!(story.refused > 0, "{story}");
    let taught = |notice: &Notice| {
        matches!(notice, Notice::Throttled { .. } | Notice::Paused { .. } | Notice::Learned { .. })
    };
    let taught = tale.notices().into_iter().find(|(_, notice)| taught(notice));
    assert_eq!(taught, None, "{story}");
}

pub(super) fn table() -> Table {
    let row = |table: Table, what: &str, (story, tale): (Report, Tale)| {
        let longest = tale.pauses().iter().map(|(at, until)| until - at).max().unwrap_or(0);
        table.row(what, story.refused, seconds(longest))
    };
    let table = Table::empty("odd", "refused, of 150 wanted", "longest pause");
    let table = row(table, "`Retry-After` is right", odd(Shape::OpenAi, |_| {}));
    let off = |options: &mut Options| options.clock_error = HOUR as i64;
    let table = row(table, "its clock is an hour ahead", odd(Shape::OpenAi, off));
    let table = row(table, "no `Retry-After`", withheld());
    let table = row(table, "`retry-after: -5`", forged(ABSURD[0]));
    row(table, "`retry-after: 99999999999999999999999`", forged(ABSURD[1]))
}
