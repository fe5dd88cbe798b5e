//! Sixty pairs with real processes, drawn by a fixed seed.

use std::path::Path;

use standpipe_pairs::drive::{self, Pair};
use standpipe_pairs::fault::Place;
use standpipe_pairs::lanes;

#[test]
fn thirty_five_pairs_of_the_file_store() {
    no_guarantee_is_broken(&drive::draw(Place::File, "closed", 15, 35));
}

#[test]
fn ten_pairs_of_the_daemon() {
    no_guarantee_is_broken(&drive::draw(Place::Daemon, "closed", 15, 10));
}

#[test]
fn fifteen_pairs_of_redis() {
    let settings = [("closed", 15, 5), ("share", 16, 5), ("open", 17, 5)];
    let drawn = settings
        .map(|(on_failure, seed, count)| drive::draw(Place::Redis, on_failure, seed, count));
    no_guarantee_is_broken(&drawn.concat());
}

fn no_guarantee_is_broken(pairs: &[Pair]) {
    let program = Path::new(env!("CARGO_BIN_EXE_pairs"));
    let verdicts = lanes::run(pairs, 4, program, &|_, _, _| ());
    let broken: Vec<String> = verdicts
        .iter()
        .flat_map(|(pair, verdict)| {
            verdict.broken.iter().map(move |text| format!("{text}\n  {pair}"))
        })
        .collect();
    assert!(broken.is_empty(), "{} broken:\n{}", broken.len(), broken.join("\n"));
    let complete = verdicts.iter().filter(|(_, verdict)| verdict.trouble.is_none()).count();
    let count = pairs.len();
    assert!(complete * 10 >= count * 8, "only {complete} of {count} pairs were complete");
}
