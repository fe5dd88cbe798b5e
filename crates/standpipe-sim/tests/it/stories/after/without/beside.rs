//! What single file (`cascade`) brings beside the return windows, and in their place.

use standpipe_core::Policy;
use standpipe_sim::{Report, RetryAfter};

use super::super::once::Once;
use super::super::table::{Table, seconds};
use super::refused::crowded_by;
use crate::stories::scene::SECOND;

/// What is different from scene to scene.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Scene {
    windows: bool,
    hinted: bool,
    late: bool,
    cascade: bool,
}

fn run(scene: Scene) -> Report {
    static RUNS: Once<Scene, Report> = Once::new();
    RUNS.of(scene, |scene| {
        let mut policy = Policy::usual();
        if !scene.windows {
            policy.comeback = None;
        }
        if !scene.cascade {
            policy.cascade = None;
        }
        let retry_after = if scene.hinted { RetryAfter::Real } else { RetryAfter::Withheld };
        crowded_by(if scene.late { 3 * SECOND } else { 0 }, retry_after, policy)
    })
}

/// Each scene with a name, as it is with single file.
fn scenes() -> Vec<(String, Scene)> {
    let mut all = Vec::new();
    for windows in [true, false] {
        for hinted in [true, false] {
            for late in [false, true] {
                let what = [
                    if windows { "return windows" } else { "no return windows" },
                    if hinted { "`Retry-After`" } else { "no `Retry-After`" },
                    if late { "responses after 3 s" } else { "immediate responses" },
                ];
                all.push((what.join(", "), Scene { windows, hinted, late, cascade: true }));
            }
        }
    }
    all
}

pub(in super::super) fn table() -> Table {
    let heads =
        ["refused, `cascade` on", "refused, off", "finished after, on", "finished after, off"];
    scenes().into_iter().fold(Table::wide("cascade-beside", &heads), |table, (what, scene)| {
        let (with, without) = (run(scene), run(Scene { cascade: false, ..scene }));
        let ended = [seconds(with.ended), seconds(without.ended)];
        table.cells(&what, &[&with.refused, &without.refused, &ended[0], &ended[1]])
    })
}

/// Without return windows single file prevents a storm where answers come at once. Beside them it
/// brings at most four refusals less, and where answers are late it takes longer.
#[test]
fn single_file_takes_the_place_of_return_windows() {
    for (what, scene) in scenes() {
        let (with, without) = (run(scene), run(Scene { cascade: false, ..scene }));
        let fewer = without.refused as i64 - with.refused as i64;
        let is_only_net = !scene.windows && !scene.late;
        if is_only_net {
            assert!(fewer >= 36 && without.ended > 5 * with.ended, "{what}: {with}; {without}");
        } else {
            assert!((-2..=4).contains(&fewer), "{what}: {with}; {without}");
        }
    }
}
