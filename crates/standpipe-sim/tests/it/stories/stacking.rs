//! Retry stacking: layers that do not know of each other multiply.

use standpipe_sim::{Agent, Options, Pattern, Provider, Retries, Rule, Shape, Uncoordinated};

use super::scene::{HOUR, SECOND, STEADY, calls, provider, requests, run};

const DOWN: Rule = Rule::Overload { from: 0, until: HOUR, share: 1_000, hint: None };

fn agents(count: usize, sdk: Retries, attempts: u32) -> Vec<Agent> {
    let strategy = Uncoordinated::new(sdk.exactly(), Retries::by_hand(attempts - 1), 1);
    let work = calls(1, SECOND, Pattern::AtOnce);
    (0..count).map(|n| Agent::new(format!("agent {n}"), strategy.clone(), work.clone())).collect()
}

/// Four tries of the application, each of them three of the library: twelve calls, all in vain.
#[test]
fn four_times_three_is_twelve_calls_for_one() {
    let story = run(provider(Shape::Anthropic, &[DOWN]), STEADY, agents(10, Retries::SDK, 4));
    assert_eq!(story.made_per_wanted(), 12_000);
    assert_eq!(
        story.to_string(),
        "wanted 10: done 0, given up 10, lost 0; \
         made 120: refused 120, wasted 120, at most 20 a second; \
         10.7 s, waves of refusals: 7"
    );
}

/// With the library's retries switched off, a third of it.
#[test]
fn one_layer_makes_a_third_of_the_calls() {
    let story = run(provider(Shape::Anthropic, &[DOWN]), STEADY, agents(10, Retries::NONE, 4));
    assert_eq!(story.made_per_wanted(), 4_000);
    assert_eq!(
        story.to_string(),
        "wanted 10: done 0, given up 10, lost 0; \
         made 40: refused 40, wasted 40, at most 20 a second; \
         3.9 s, waves of refusals: 3"
    );
}

/// Where a refused call counts, too, stacked retries keep the limit from coming back, until half of
/// the agents have given up.
#[test]
fn where_refused_calls_count_retries_feed_on_themselves() {
    let limit = requests(10, 10 * SECOND);
    let play = |refused_count| {
        let options = Options { refused_count, ..Options::of(Shape::OpenAi) };
        let provider = Provider::new(Shape::OpenAi, vec![limit], 1).with(options);
        let blind = Retries { obeys: 0, ..Retries::SDK };
        run(provider, STEADY, agents(20, blind, 6)).to_string()
    };
    assert_eq!(
        play(false),
        "wanted 20: done 20, given up 0, lost 0; \
         made 130: refused 110, wasted 110, at most 30 a second; \
         11.7 s, waves of refusals: 6"
    );
    assert_eq!(
        play(true),
        "wanted 20: done 10, given up 10, lost 0; \
         made 190: refused 180, wasted 180, at most 30 a second; \
         26.3 s, waves of refusals: 11"
    );
}

/// A cap on spending is a 429 that no retry can help. The library retries it all the same.
#[test]
fn a_cap_on_spending_is_retried_in_vain() {
    let cap = Rule::SpendCap { amount: 0, resets: HOUR, cap: standpipe_sim::Cap::Enforced };
    let story = run(provider(Shape::Anthropic, &[cap]), STEADY, agents(3, Retries::SDK, 4));
    assert_eq!(
        story.to_string(),
        "wanted 3: done 0, given up 3, lost 0; \
         made 36: refused 36, wasted 36, at most 6 a second; \
         10.7 s, waves of refusals: 7"
    );
}
