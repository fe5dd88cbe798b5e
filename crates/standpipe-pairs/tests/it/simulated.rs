//! All pairs in virtual time.

use standpipe_pairs::simulated::{all, run};

#[test]
fn every_pair_in_virtual_time() {
    let faults = all();
    let mut broken = Vec::new();
    let mut granted = 0;
    for (a, first) in &faults {
        for (b, second) in &faults {
            let verdict = run(*first, *second, 1);
            granted += verdict.granted;
            let replay = format!("pairs --virtual --seed 1 --only {a}+{b}");
            broken.extend(verdict.broken.iter().map(|text| format!("{text}\n  {replay}")));
        }
    }
    assert!(broken.is_empty(), "{} broken:\n{}", broken.len(), broken.join("\n"));
    assert!(granted > 10 * faults.len() * faults.len(), "hardly anything was granted: {granted}");
}
