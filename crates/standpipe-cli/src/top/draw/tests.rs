//! Golden tests of the rendered screen. `STANDPIPE_BLESS=1` rewrites the files in `golden/`.

use std::path::Path;
use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::Color;

use super::*;
use crate::top::fixture::view_data;
use standpipe::observe::journal::{Event, EventData};

const PLAIN: Style = Style { colour: false, unicode: true, width: 80 };

fn state_after(keys: &str) -> State {
    let place = "ledger file:/var/lib/standpipe".to_owned();
    let mut state = State::new(place, Duration::from_secs(1));
    state.on_fetched(Ok(view_data()));
    for c in keys.chars() {
        state.update(KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE));
    }
    state
}

fn screen(state: &mut State, style: Style, wide: u16, high: u16) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(wide, high)).unwrap();
    terminal.draw(|frame| draw(frame, style, state)).unwrap();
    terminal.backend().buffer().clone()
}

fn text(buffer: &Buffer) -> String {
    let wide = usize::from(buffer.area.width);
    let lines = buffer.content.chunks(wide).map(|cells| {
        let line: String = cells.iter().map(ratatui::buffer::Cell::symbol).collect();
        line.trim_end().to_owned() + "\n"
    });
    lines.collect()
}

#[track_caller]
fn golden(name: &str, state: &mut State, style: Style, wide: u16, high: u16) {
    let drawn = text(&screen(state, style, wide, high));
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/top/draw/golden");
    let file = directory.join(format!("{name}.txt"));
    if std::env::var_os("STANDPIPE_BLESS").is_some() {
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(&file, &drawn).unwrap();
    }
    let wanted = std::fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(drawn, wanted, "{name}:\n{drawn}");
}

#[test]
fn the_filter_is_shown_at_80_columns() {
    for (keys, shown) in [
        ("/github/core", "6 proxied  only `github/core`\n"),
        ("/anthropic/sonnet", "6 proxied  only `anthropic/son…\n"),
    ] {
        let mut state = state_after(keys);
        state.update(KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE));
        let drawn = text(&screen(&mut state, PLAIN, 80, 24));
        assert!(drawn.contains(shown), "{drawn}");
    }
}

#[test]
fn a_small_screen_is_told_the_size_it_needs() {
    let mut state = state_after("");
    let narrow = text(&screen(&mut state, PLAIN, 30, 24));
    assert!(narrow.contains("lines"), "{narrow}");
}

#[test]
fn every_pane_at_80_by_24() {
    for (at, pane) in Pane::ALL.into_iter().enumerate() {
        let mut state = state_after(&format!("{}", at + 1));
        golden(&format!("{}-80x24", pane.name()), &mut state, PLAIN, 80, 24);
    }
    golden("bound-80x24", &mut state_after("3j"), PLAIN, 80, 24);
}

#[test]
fn pools_and_calls_together_at_120_by_40() {
    let style = Style { width: 120, ..PLAIN };
    golden("pools-120x40", &mut state_after(""), style, 120, 40);
    golden("queue-120x40", &mut state_after("3j"), style, 120, 40);
    golden("agents-120x40", &mut state_after("4"), style, 120, 40);
}

#[test]
fn help_and_questions_at_80_by_24() {
    golden("help-80x24", &mut state_after("?"), PLAIN, 80, 24);
    golden("pause-80x24", &mut state_after("p"), PLAIN, 80, 24);
    golden("settle-80x24", &mut state_after("2x"), PLAIN, 80, 24);
    golden("filter-80x24", &mut state_after("2/unknown"), PLAIN, 80, 24);
}

#[test]
fn a_terminal_without_utf8_gets_ascii_only() {
    for keys in ["1", "2", "3j", "4", "5", "?", "p", "/x", "2x"] {
        let style = Style { unicode: false, ..PLAIN };
        for (wide, high) in [(80, 24), (120, 40)] {
            let drawn = text(&screen(&mut state_after(keys), style, wide, high));
            assert!(drawn.is_ascii(), "{keys}: {drawn}");
        }
    }
}

#[test]
fn without_colour_there_is_none_and_with_it_zones_have_theirs() {
    let plain = screen(&mut state_after("5"), PLAIN, 80, 24);
    assert!(plain.content.iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset));
    let style = Style { colour: true, ..PLAIN };
    let drawn = screen(&mut state_after(""), style, 80, 24);
    let colours = |colour| drawn.content.iter().any(|cell| cell.fg == colour);
    assert!(colours(Color::Yellow) && colours(Color::Red) && colours(Color::Green));
}

#[test]
fn data_of_an_unavailable_source_is_grey() {
    let mut state = state_after("");
    state.on_fetched(Err("the daemon at http://127.0.0.1:8377 does not answer".to_owned()));
    let drawn = screen(&mut state, Style { colour: true, ..PLAIN }, 80, 24);
    assert!(text(&drawn).contains("unavailable, retrying: the daemon at"));
    let grey = |row: u16| (0..80).all(|column| drawn[(column, row)].fg == Color::DarkGray);
    assert!(grey(5) && grey(10));
    state.on_fetched(Ok(view_data()));
    let drawn = screen(&mut state, Style { colour: true, ..PLAIN }, 80, 24);
    assert!(!text(&drawn).contains("unavailable"));
}

#[test]
fn text_from_outside_cannot_move_the_cursor() {
    for keys in ["1", "2j", "5j"] {
        let drawn = screen(&mut state_after(keys), PLAIN, 120, 40);
        let odd = |cell: &ratatui::buffer::Cell| cell.symbol().chars().any(char::is_control);
        assert!(!drawn.content.iter().any(odd), "{keys}");
    }
}

#[test]
fn any_size_can_be_drawn() {
    for (wide, high) in [(1, 1), (10, 3), (40, 10), (41, 11), (60, 14), (79, 27), (300, 100)] {
        for keys in ["1G", "2G", "3", "4", "5", "?", "/", "p"] {
            let mut state = state_after(keys);
            let drawn = text(&screen(&mut state, PLAIN, wide, high));
            assert!(wide < 40 || drawn.contains("standpipe top"), "{drawn}");
        }
    }
    let drawn = text(&screen(&mut state_after(""), PLAIN, 60, 5));
    assert!(drawn.contains("too small"));
}

#[test]
fn a_long_list_scrolls_to_the_selected_row() {
    let mut state = state_after("");
    let mut many = view_data();
    let lease = many.snapshot.pools[0].leases[0].clone();
    for number in 0..300 {
        let mut next = lease.clone();
        next.agent = format!("agent-{number:03}");
        next.age_ms = 1_000_000 - number;
        many.snapshot.pools[0].leases.push(next);
    }
    state.on_fetched(Ok(many));
    state.update(KeyEvent::new(KeyCode::Char('2'), KeyModifiers::NONE));
    let drawn = text(&screen(&mut state, PLAIN, 80, 24));
    assert!(drawn.contains("> agent-000"), "{drawn}");
    for _ in 0..3 {
        state.update(KeyEvent::new(KeyCode::PageDown, KeyModifiers::NONE));
        screen(&mut state, PLAIN, 80, 24);
    }
    let drawn = text(&screen(&mut state, PLAIN, 80, 24));
    assert!(drawn.contains("> agent-03") && !drawn.contains("agent-000"), "{drawn}");
}

#[test]
fn a_rejected_configuration_is_a_line() {
    let mut data = view_data();
    data.snapshot.config_rejected = serde_json::from_value(serde_json::json!({
        "at": "2026-01-31T12:00:00.000Z", "file": "standpipe.toml", "errors": ["line 3"],
    }))
    .unwrap();
    let mut state = state_after("");
    state.on_fetched(Ok(data));
    let drawn = text(&screen(&mut state, PLAIN, 80, 24));
    assert!(drawn.contains("the daemon rejected a configuration at "), "{drawn}");
}

#[test]
fn a_narrow_screen_names_the_keys_of_help_and_quit() {
    for wide in [40, 60, 79, 80] {
        let drawn = text(&screen(&mut state_after(""), PLAIN, wide, 24));
        assert!(drawn.trim_end().ends_with("? help  q quit"), "{wide}: {drawn}");
    }
}

#[test]
fn many_pools_are_a_line_each_but_the_selected_one() {
    let mut state = state_after("");
    let mut many = view_data();
    let pool = many.snapshot.pools[1].clone();
    for number in 0..40 {
        let mut next = pool.clone();
        next.pool = format!("web/site-{number:02}").parse().unwrap();
        many.snapshot.pools.push(next);
    }
    state.on_fetched(Ok(many));
    for _ in 0..20 {
        state.update(KeyEvent::new(KeyCode::Down, KeyModifiers::NONE));
    }
    golden("many-80x24", &mut state, PLAIN, 80, 24);
}

#[test]
fn before_the_first_pool_there_is_help() {
    let mut state = State::new("ledger here".to_owned(), Duration::from_secs(1));
    assert!(text(&screen(&mut state, PLAIN, 80, 24)).contains("loading …"));
    let mut none = view_data();
    none.snapshot.pools.clear();
    none.snapshot.unreadable.clear();
    state.on_fetched(Ok(none));
    assert!(text(&screen(&mut state, PLAIN, 80, 24)).contains("standpipe hold my/slots"));
}

#[test]
fn a_stopped_holder_is_marked_with_what_to_do() {
    let mut data = view_data();
    let lease = data.snapshot.pools.iter_mut().flat_map(|pool| &mut pool.leases).next().unwrap();
    (lease.pid, lease.stopped) = (Some(8_803), true);
    let mut state = state_after("2");
    state.on_fetched(Ok(data));
    state.update(KeyEvent::new(KeyCode::Down, KeyModifiers::NONE));
    let drawn = text(&screen(&mut state, PLAIN, 80, 24));
    assert!(drawn.contains("12 s      stopped,…"), "{drawn}");
    let words = drawn.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("stopped, pid 8803"), "{drawn}");
    assert!(words.contains("kill -CONT 8803 resumes it, kill -9 8803 ends it"), "{drawn}");
}

#[test]
fn p12_the_queue_names_who_is_in_the_way_first() {
    let mut data = view_data();
    let pool = &mut data.snapshot.pools[0];
    pool.leases[0].pid = Some(3_694);
    let holder = pool.leases[0].agent.clone();
    let ticket = &mut pool.tickets[0];
    (ticket.limit, ticket.in_use_by) = (Some("parallel".to_owned()), vec![holder.clone()]);
    let mut state = state_after("3");
    state.on_fetched(Ok(data));
    let drawn = text(&screen(&mut state, PLAIN, 80, 24));
    assert!(drawn.contains(&format!("{holder} (pid 3694): p")), "{drawn}");
}

#[test]
fn p13_configurations_do_not_push_out_a_stop() {
    let mut data = view_data();
    let stop = data.events[0].clone();
    let config = || EventData::Config { result: "applied".to_owned(), source: "code".to_owned() };
    for _ in 0..5 {
        data.events.insert(0, Event { what: config(), ..stop.clone() });
    }
    data.events.insert(5, Event { what: EventData::Stop { until: None }, ..stop });
    let mut state = state_after("");
    state.on_fetched(Ok(data));
    let drawn = text(&screen(&mut state, PLAIN, 80, 24));
    assert!(drawn.contains("stopped by the provider"), "{drawn}");
    assert!(!drawn.contains("limits from code"), "{drawn}");
}

#[test]
fn p15_a_single_pool_shows_who_holds_its_slots_if_there_is_room() {
    let mut data = view_data();
    data.snapshot.pools.drain(..1);
    data.snapshot.pools.truncate(1);
    data.snapshot.pools[0].leases[0].pid = Some(3_694);
    let mut state = state_after("");
    state.on_fetched(Ok(data));
    let drawn = text(&screen(&mut state, PLAIN, 80, 24));
    assert!(drawn.contains("holds  poller  pid 3694"), "{drawn}");
    let low = text(&screen(&mut state, PLAIN, 80, 12));
    assert!(!low.contains("pid 3694") && low.contains("used by"), "{low}");
}
