//! The journal's files in invented time.

use super::*;
use crate::journal::{EventData, Journal, Usage};
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory of its own, gone at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("standpipe-journal-{}-{number}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    fn place(&self) -> JournalDirectory {
        JournalDirectory::new(self.0.clone())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const DAY: u64 = 86_400_000;

fn throttle(day: u64) -> Event {
    let (agent, lease, retry_after_ms) = (None, None, None);
    let what =
        EventData::Throttle { agent, lease, about: "quota".to_owned(), retry_after_ms, said: None };
    Event { at: Timestamp { millis: day * DAY }, pool: "a/b".to_owned(), what }
}

fn long(number: u64) -> Event {
    let limit = "x".repeat(100_000);
    let at = Timestamp { millis: number };
    Event { at, pool: "a/b".to_owned(), what: EventData::WindowReset { limit } }
}

#[test]
fn refusals_are_kept_for_eight_days_and_not_for_ever() {
    let scratch = Scratch::new();
    let place = scratch.place();
    for day in 100..150 {
        place.add(&[throttle(day)], Timestamp { millis: day * DAY }).unwrap();
        let kept = Journal::new(Some(place.clone())).events(None, None);
        let days: Vec<u64> = kept.map(|event| event.at.millis / DAY).collect();
        let all_of_eight_days = (100..=day).filter(|old| old + 8 >= day);
        for old in all_of_eight_days {
            assert!(days.contains(&old), "day {old} is gone on day {day}");
        }
        assert!(days.len() <= 20, "{} are kept on day {day}", days.len());
    }
}

#[test]
fn other_events_go_round_in_files_of_bounded_size() {
    let scratch = Scratch::new();
    let place = scratch.place();
    for number in 0..400 {
        place.add(&[long(number)], Timestamp { millis: number }).unwrap();
    }
    let files = place.all_files(None);
    let sizes = files.iter().filter_map(|path| fs::metadata(path).ok()).map(|file| file.len());
    assert!(sizes.clone().all(|size| size <= LARGEST));
    assert_eq!(sizes.count(), 4);
    let kept = Journal::new(Some(place)).events(None, None);
    let numbers: Vec<u64> = kept.map(|event| event.at.millis).collect();
    assert!(numbers.is_sorted(), "oldest first");
    assert_eq!(numbers.last(), Some(&399));
    assert!(numbers.len() > 100, "only {} are kept", numbers.len());
}

#[test]
fn a_line_cut_short_spoils_no_other() {
    let scratch = Scratch::new();
    let place = scratch.place();
    place.add(&[throttle(1)], Timestamp { millis: DAY }).unwrap();
    let mut file =
        OpenOptions::new().append(true).open(&place.rotated_files(None)[1].1[0]).unwrap();
    file.write_all(b"{\"at\":\"2020-01-0").unwrap();
    place.add(&[throttle(2)], Timestamp { millis: 2 * DAY }).unwrap();
    assert_eq!(Journal::new(Some(place)).events(None, None).count(), 2);
}

#[test]
fn only_what_is_wanted_is_read() {
    let scratch = Scratch::new();
    let place = scratch.place();
    place.add(&[throttle(1), long(7), throttle(3)], Timestamp { millis: 3 * DAY }).unwrap();
    let journal = Journal::new(Some(place));
    assert_eq!(journal.events(None, Some(EventKind::Throttle)).count(), 2);
    let since = Timestamp { millis: 2 * DAY }.system();
    assert_eq!(journal.events(Some(since), None).count(), 1);
    assert_eq!(Journal::new(None).events(None, None).count(), 0);
}

#[test]
fn who_follows_sees_each_event_once_also_when_files_go_round() {
    let scratch = Scratch::new();
    let place = scratch.place();
    place.add(&[long(0)], Timestamp { millis: 0 }).unwrap();
    let journal = Journal::new(Some(place.clone()));
    let mut all = journal.follow(Some(Timestamp { millis: 0 }.system()), None);
    let mut new = journal.follow(None, None);
    let numbers =
        |events: Vec<Event>| events.into_iter().map(|event| event.at.millis).collect::<Vec<u64>>();
    assert_eq!(numbers(all.more()), [0]);
    assert_eq!(numbers(new.more()), [0; 0]);
    for number in 1..150 {
        place.add(&[long(number)], Timestamp { millis: number }).unwrap();
        assert_eq!(numbers(all.more()), [number]);
        assert_eq!(numbers(new.more()), [number]);
    }
    assert_eq!(numbers(all.more()), [0; 0]);
}

#[test]
fn from_every_mark_the_rest_is_read_once_and_in_the_same_order() {
    let scratch = Scratch::new();
    let place = scratch.place();
    let journal = Journal::new(Some(place.clone()));
    let mut live = journal.follow(None, None);
    let beginning = live.mark();
    let mut seen = Vec::new();
    for number in 0..90 {
        // Written late: its time is not the order of the lines.
        let late = long(if number % 7 == 3 { number - 3 } else { number });
        let events = if number % 5 == 0 { vec![late, throttle(number)] } else { vec![late] };
        place.add(&events, Timestamp { millis: number }).unwrap();
        if number % 4 == 0 {
            seen.extend(
                std::iter::from_fn(|| Some(live.some()).filter(|s| !s.is_empty())).flatten(),
            );
        }
    }
    seen.extend(std::iter::from_fn(|| Some(live.some()).filter(|s| !s.is_empty())).flatten());
    assert_eq!(seen.len(), 90 + 18);
    let marks = seen.iter().map(|(_, mark)| mark.to_string()).collect::<Vec<_>>();
    for (number, mark) in std::iter::once(beginning.to_string()).chain(marks).enumerate() {
        let mark = mark.parse().unwrap();
        let mut rest = journal.follow_from(&mark, None);
        let rest = rest.more();
        // The two files are read beside each other; each is read in its own order.
        for kind in [EventKind::Throttle, EventKind::WindowReset] {
            let of = |event: &&Event| event.what.kind() == kind;
            let expected: Vec<&Event> = seen[number..].iter().map(|(event, _)| event).collect();
            let mut expected: Vec<&Event> = expected.into_iter().filter(of).collect();
            expected.sort_by_key(|event| event.at);
            assert_eq!(rest.iter().filter(of).collect::<Vec<_>>(), expected, "from {mark}");
        }
    }
}

fn used(number: u64) -> Event {
    let agent = "x".repeat(100_000);
    let usage = Usage { agent, from: Timestamp { millis: 0 }, ..Usage::default() };
    Event {
        at: Timestamp { millis: number },
        pool: "a/b".to_owned(),
        what: EventData::Usage(usage),
    }
}

#[test]
fn what_was_used_pushes_nothing_else_out_and_is_read_when_it_is_asked_for() {
    let scratch = Scratch::new();
    let place = scratch.place();
    place.add(&[long(0), throttle(0)], Timestamp { millis: 0 }).unwrap();
    let journal = Journal::new(Some(place.clone()));
    let mut all = journal.follow(None, None);
    let mut usage = journal.follow(None, Some(EventKind::Usage));
    for number in 1..600 {
        place.add(&[used(number)], Timestamp { millis: number }).unwrap();
        assert_eq!((all.more().len(), usage.more().len()), (0, 1));
    }
    assert_eq!(journal.events(None, None).count(), 2);
    let kept: Vec<u64> =
        journal.events(None, Some(EventKind::Usage)).map(|u| u.at.millis).collect();
    assert!(kept.is_sorted() && kept.last() == Some(&599), "{kept:?}");
    assert!((200..400).contains(&kept.len()), "bounded: {}", kept.len());
}
