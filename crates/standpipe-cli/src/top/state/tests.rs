//! Keys, one after another, and what comes of them.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::*;
use crate::top::fixture::{LEASES, view_data};

fn looking() -> State {
    let mut state = State::new("ledger here".to_owned(), Duration::from_secs(1));
    state.on_fetched(Ok(view_data()));
    state
}

fn press(state: &mut State, key: KeyCode) -> Effect {
    state.update(KeyEvent::new(key, KeyModifiers::NONE))
}

/// Presses each character; answers what the last one does.
fn keys(state: &mut State, text: &str) -> Effect {
    let mut last = Effect::Nothing;
    for c in text.chars() {
        last = press(state, KeyCode::Char(c));
    }
    last
}

fn control(c: char) -> KeyEvent {
    KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL)
}

fn selected(state: &State) -> String {
    state.selected_row().unwrap().key()
}

fn agents(state: &State, pane: Pane) -> Vec<String> {
    let named = state.rows(pane).into_iter().map(|row| match row {
        Row::Lease(_, lease) => lease.agent.clone(),
        Row::Ticket(_, ticket) => ticket.agent.clone(),
        Row::Agent(_, agent) => agent.name.clone(),
        Row::Pool(pool) => pool.pool.to_string(),
        Row::Proxied(call) => call.agent.clone(),
        Row::Event(event) => event.what.kind().as_str().to_owned(),
    });
    named.collect()
}

#[test]
fn it_quits_stops_and_draws_anew() {
    let mut state = looking();
    assert_eq!(keys(&mut state, "q"), Effect::Quit);
    assert_eq!(state.update(control('c')), Effect::Quit);
    assert_eq!(state.update(control('z')), Effect::Suspend);
    assert_eq!(state.update(control('l')), Effect::Redraw);
    keys(&mut state, "/");
    assert_eq!(state.update(control('c')), Effect::Quit, "also while something is typed");
}

#[test]
fn rows_are_chosen_and_panes_changed() {
    let mut state = looking();
    assert_eq!(selected(&state), "openai/images", "the worst state is first");
    keys(&mut state, "jj");
    assert_eq!(selected(&state), "github/core");
    keys(&mut state, "j");
    assert_eq!(selected(&state), "github/core", "the last is the last");
    press(&mut state, KeyCode::Up);
    assert_eq!(selected(&state), "anthropic/sonnet");
    press(&mut state, KeyCode::Home);
    assert_eq!(selected(&state), "openai/images");
    press(&mut state, KeyCode::End);
    press(&mut state, KeyCode::PageUp);
    assert_eq!(selected(&state), "openai/images");
    press(&mut state, KeyCode::Tab);
    assert_eq!((state.pane, state.lower), (Pane::Leases, Pane::Leases));
    press(&mut state, KeyCode::BackTab);
    press(&mut state, KeyCode::BackTab);
    assert_eq!(state.pane, Pane::Proxied);
    press(&mut state, KeyCode::Tab);
    assert_eq!((state.pane, state.lower), (Pane::Pools, Pane::Proxied));
    for (key, pane) in "123456".chars().zip(Pane::ALL) {
        press(&mut state, KeyCode::Char(key));
        assert_eq!(state.pane, pane);
    }
}

#[test]
fn what_is_chosen_stays_chosen_when_rows_come_and_go() {
    let mut state = looking();
    keys(&mut state, "2j");
    assert_eq!(selected(&state), LEASES[0], "the oldest is of github");
    let mut next = view_data();
    next.snapshot.pools[1].leases.clear();
    state.on_fetched(Ok(next));
    assert_eq!(selected(&state), LEASES[0], "the one before it is gone");
    let mut next = view_data();
    next.snapshot.pools[0].leases.clear();
    state.on_fetched(Ok(next));
    assert_eq!(selected(&state), LEASES[2], "it is gone itself");
}

#[test]
fn sorting_goes_round() {
    let mut state = looking();
    keys(&mut state, "2");
    assert_eq!(agents(&state, Pane::Leases), ["poller", "blog", "crawler"]);
    keys(&mut state, "s");
    assert_eq!(agents(&state, Pane::Leases), ["crawler", "blog", "poller"]);
    keys(&mut state, "s");
    assert_eq!(agents(&state, Pane::Leases), ["blog", "crawler", "poller"]);
    assert_eq!(state.message.as_ref().unwrap().text, "leases: by agent");
    keys(&mut state, "ss");
    assert_eq!(agents(&state, Pane::Leases), ["poller", "blog", "crawler"]);
    keys(&mut state, "1s");
    let most = ["anthropic/sonnet", "github/core", "openai/images"];
    assert_eq!(agents(&state, Pane::Pools), most);
    keys(&mut state, "3s");
    assert_eq!(agents(&state, Pane::Queue), ["crawler", "deploy"], "longest wait first");
    keys(&mut state, "4");
    assert_eq!(agents(&state, Pane::Agents)[0], "deploy", "the last active");
    keys(&mut state, "5");
    assert_eq!(agents(&state, Pane::Events), ["pause", "throttle", "zone", "stop"]);
}

#[test]
fn a_filter_looks_at_pool_agent_model_and_task() {
    let mut state = looking();
    keys(&mut state, "/CRAWL");
    assert_eq!(state.mode, Mode::Filter);
    assert_eq!(agents(&state, Pane::Leases), ["crawler"]);
    assert_eq!(agents(&state, Pane::Pools), ["anthropic/sonnet"]);
    press(&mut state, KeyCode::Enter);
    assert_eq!((&state.mode, state.filter.as_str()), (&Mode::Browse, "CRAWL"));
    press(&mut state, KeyCode::Esc);
    assert_eq!(agents(&state, Pane::Leases).len(), 3);
    for (text, pane, count) in [
        ("github", Pane::Leases, 1),
        ("sonnet-4", Pane::Leases, 3),
        ("Größe", Pane::Queue, 2),
        ("extract", Pane::Leases, 1),
        ("blog", Pane::Events, 1),
        ("throttle", Pane::Events, 1),
        ("unknown", Pane::Pools, 0),
    ] {
        keys(&mut state, &format!("/{text}"));
        assert_eq!(state.rows(pane).len(), count, "{text}");
        press(&mut state, KeyCode::Esc);
        assert!(state.filter.is_empty());
    }
    keys(&mut state, "/abc");
    press(&mut state, KeyCode::Backspace);
    assert_eq!(state.filter, "ab");
    state.update(control('u'));
    assert!(state.filter.is_empty() && state.mode == Mode::Filter);
    keys(&mut state, &"x".repeat(500));
    assert_eq!(state.filter.len(), MAX_INPUT, "what is typed is bounded");
}

#[test]
fn a_pause_asks_for_how_long() {
    let mut state = looking();
    keys(&mut state, "jjp");
    let pool = "github/core".to_owned();
    assert_eq!(
        state.mode,
        Mode::Pause { pool: pool.clone(), text: "1min".to_owned(), is_suggested: true }
    );
    let effect = press(&mut state, KeyCode::Enter);
    assert_eq!(effect, Effect::Perform(Action::Pause { pool: pool.clone(), ms: 60_000 }));
    state.on_action_done(Ok(Done(Action::Pause { pool: pool.clone(), ms: 60_000 })));
    assert_eq!(state.message.as_ref().unwrap().text, "`github/core` admits no calls for 1 min");

    keys(&mut state, "p");
    state.update(control('u'));
    for wrong in ["", "soon", "0s", "5m"] {
        keys(&mut state, wrong);
        assert_eq!(press(&mut state, KeyCode::Enter), Effect::Nothing, "{wrong}");
        assert!(state.message.as_ref().unwrap().is_error, "{wrong}");
        state.update(control('u'));
    }
    keys(&mut state, "30s");
    let effect = press(&mut state, KeyCode::Enter);
    assert_eq!(effect, Effect::Perform(Action::Pause { pool, ms: 30_000 }));

    keys(&mut state, "p");
    assert_eq!(press(&mut state, KeyCode::Esc), Effect::Nothing);
    assert_eq!(state.mode, Mode::Browse);
}

#[test]
fn a_pause_that_shortens_nothing_says_so() {
    let mut state = looking();
    state
        .on_action_done(Ok(Done(Action::Pause { pool: "anthropic/sonnet".to_owned(), ms: 1_000 })));
    assert!(state.message.unwrap().text.contains("stays paused for 42 s"));
}

#[test]
fn resume_is_for_what_is_held_up() {
    let mut state = looking();
    let act = |pool: &str| Effect::Perform(Action::Resume { pool: pool.to_owned() });
    assert_eq!(keys(&mut state, "r"), Effect::Nothing, "a stop by the provider asks first");
    assert_eq!(keys(&mut state, "n"), Effect::Nothing);
    assert_eq!(keys(&mut state, "ry"), act("openai/images"), "the provider's stop is lifted");
    assert_eq!(keys(&mut state, "jry"), act("anthropic/sonnet"));
    assert_eq!(keys(&mut state, "jr"), Effect::Nothing);
    assert!(state.message.as_ref().unwrap().text.contains("not paused"));
    assert_eq!(keys(&mut state, "3ry"), act("anthropic/sonnet"), "the pool of the row");
}

#[test]
fn settling_asks_first() {
    let mut state = looking();
    assert_eq!(keys(&mut state, "x"), Effect::Nothing);
    assert!(state.message.as_ref().unwrap().text.contains("press 2"), "not from the pools");
    keys(&mut state, "2jx");
    assert!(matches!(&state.mode, Mode::Settle { about, .. } if about.contains("blog on anth")));
    assert_eq!(keys(&mut state, "?"), Effect::Nothing, "neither yes nor no");
    assert_eq!(keys(&mut state, "n"), Effect::Nothing);
    assert_eq!(state.message.as_ref().unwrap().text, "nothing was settled");
    keys(&mut state, "x");
    let lease = LEASES[0].parse().unwrap();
    let effect = keys(&mut state, "y");
    assert_eq!(effect, Effect::Perform(Action::Settle { lease, agent: "blog".to_owned() }));
    state.on_action_done(Err("it has ended; look again".to_owned()));
    assert_eq!(
        state.message,
        Some(StatusMessage { text: "it has ended; look again".to_owned(), is_error: true })
    );
}

#[test]
fn a_frozen_picture_stays_until_it_is_thawed() {
    let mut state = looking();
    keys(&mut state, " ");
    assert!(state.is_frozen());
    let mut next = view_data();
    next.snapshot.pools.truncate(1);
    state.on_fetched(Ok(next));
    assert_eq!(state.rows(Pane::Pools).len(), 3);
    keys(&mut state, " ");
    assert_eq!((state.is_frozen(), state.rows(Pane::Pools).len()), (false, 1));
}

#[test]
fn one_that_is_away_leaves_its_picture_and_comes_back() {
    let mut state = looking();
    state.on_fetched(Err("the daemon does not answer".to_owned()));
    assert_eq!(state.rows(Pane::Pools).len(), 3);
    assert!(state.unavailable.is_some());
    state.on_fetched(Ok(view_data()));
    assert!(state.unavailable.is_none());
}

#[test]
fn without_a_picture_keys_do_no_harm() {
    let mut state = State::new(String::new(), Duration::from_secs(1));
    let all = "jkgGs/p\u{7f}rx12345 ?yn";
    for c in all.chars() {
        assert_eq!(press(&mut state, KeyCode::Char(c)), Effect::Nothing, "{c}");
        press(&mut state, KeyCode::Esc);
    }
}

#[test]
fn no_key_is_swallowed() {
    let mut state = looking();
    assert_eq!(keys(&mut state, "?q"), Effect::Quit, "help does not eat a key");
    let mut state = looking();
    keys(&mut state, "?6");
    assert_eq!((state.pane, &state.mode), (Pane::Proxied, &Mode::Browse));
    keys(&mut state, "?");
    press(&mut state, KeyCode::Esc);
    assert_eq!(state.mode, Mode::Browse);
    keys(&mut state, "z");
    assert!(state.message.as_ref().is_some_and(|message| message.text.contains("`z`")));
}

#[test]
fn proxied_calls_are_sorted_and_filtered() {
    let mut state = looking();
    keys(&mut state, "6");
    assert_eq!(agents(&state, Pane::Proxied), ["blog", "crawler", "poller"]);
    keys(&mut state, "s");
    assert_eq!(agents(&state, Pane::Proxied)[0], "blog", "the only one with a price");
    keys(&mut state, "/nightly");
    assert_eq!(agents(&state, Pane::Proxied), ["blog"], "by session");
}

#[test]
fn p14_the_first_key_replaces_the_suggested_length_of_a_pause() {
    let mut state = looking();
    keys(&mut state, "jjp5s");
    let pool = "github/core".to_owned();
    let effect = press(&mut state, KeyCode::Enter);
    assert_eq!(effect, Effect::Perform(Action::Pause { pool, ms: 5_000 }));
}
