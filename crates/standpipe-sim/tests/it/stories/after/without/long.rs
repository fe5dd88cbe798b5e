//! What each policy is good for on quotas per hour and per day, with an agent that calls every five
//! minutes.

use standpipe_core::{Margin, Policy, Priority, Zones};
use standpipe_sim::WaitMode;

use super::slow::{Came, DAY, Scene, Slow};
use super::{ALL, About, Figure};
use crate::stories::scene::{HOUR, SECOND};

/// The longest wait of the slow agent.
fn longest(came: &Came) -> Figure {
    Figure::Time(came.story.agents[0].longest_wait())
}

fn used(came: &Came) -> Figure {
    Figure::Share(came.used)
}

fn refused(came: &Came) -> Figure {
    Figure::Few(came.story.refused)
}

/// A scene with everything, and with one thing off.
fn both(scene: &Scene, off: impl Fn(&mut Policy)) -> (Came, Came) {
    let mut without = scene.clone();
    off(&mut without.policy);
    (scene.run(), without.run())
}

/// An agent that wants everything, beside a critical one without a floor.
fn hammered(amount: u64, period: u64, tier: Priority) -> Scene {
    Scene::new(amount, period).beside(tier, WaitMode::Sleep)
}

/// A slow agent of a tier that waits 10 s, beside three standard agents that want everything.
fn crowded(amount: u64, period: u64, slow: Slow) -> Scene {
    let scene = Scene { slow, ..Scene::new(amount, period) };
    (0..3).fold(scene, |scene, _| scene.beside(Priority::Standard, WaitMode::Queue))
}

/// A standard agent that wants a fifth more than there is, evenly, on a key that others use too.
fn shared(amount: u64, period: u64, others: u64) -> Scene {
    let scene = hammered(amount, period, Priority::Standard);
    Scene { others, every: period * 5 / 6 / amount, ..scene }
}

fn zones() -> About {
    let dark = |policy: &mut Policy| policy.zones = Zones::Off;
    let scene = Scene { periods: 4, ..hammered(5_000, HOUR, Priority::Standard) };
    let (with, without) = both(&scene, dark);
    let about = About::new("`zones`")
        .brings(
            "5,000 per hour: longest wait of a critical call",
            longest(&with),
            longest(&without),
        )
        .costs("quota used", used(&with), used(&without));
    let (with, without) = both(&hammered(80, HOUR, Priority::Standard), dark);
    let about = about.changes_nothing(
        "80 per hour: longest wait of a critical call",
        longest(&with),
        longest(&without),
    );
    let (with, without) = both(&hammered(80, HOUR, Priority::Background), dark);
    about.changes_nothing("80 per hour, next to background", longest(&with), longest(&without))
}

fn spread() -> About {
    let at_once = |policy: &mut Policy| policy.spreads = false;
    let (with, without) = both(&hammered(80, HOUR, Priority::Background), at_once);
    let about = About::new("`spread`")
        .brings("80 per hour, instead of `yield`: quota used", used(&with), used(&without))
        .changes_nothing("longest wait of a critical call", longest(&with), longest(&without));
    let (with, without) = both(&hammered(1_000, DAY, Priority::Background), at_once);
    about.brings(
        "1,000 per day, instead of `yield`: longest wait of a critical call",
        longest(&with),
        longest(&without),
    )
}

/// With spread, yield does nothing on the same limit.
fn yields() -> About {
    let greedy = |policy: &mut Policy| policy.yields = false;
    let paced = |mut scene: Scene| {
        scene.policy.spreads = false;
        scene
    };
    let (with, without) = both(&paced(hammered(80, HOUR, Priority::Background)), greedy);
    let about = About::new("`yield`, `spread = false`")
        .brings("80 per hour: longest wait of a critical call", longest(&with), longest(&without))
        .costs("quota used", used(&with), used(&without));
    let (with, without) = both(&paced(hammered(1_000, DAY, Priority::Background)), greedy);
    about
        .brings("1,000 per day: longest wait of a critical call", longest(&with), longest(&without))
        .costs("quota used", used(&with), used(&without))
}

fn floor() -> About {
    let slow = |floor| Slow { tier: Priority::Standard, burst: 0, floor, patience: 10 * SECOND };
    let calls = |came: &Came| Figure::Many(came.story.agents[0].done);
    let run = |amount, period, floor| crowded(amount, period, slow(floor)).run();
    let (with, without) = (run(80, HOUR, 20), run(80, HOUR, 0));
    let about = About::new("`floor`")
        .brings("80 per hour: calls of a slow standard agent", calls(&with), calls(&without))
        .costs("quota used", used(&with), used(&without));
    let (with, without) = (run(1_000, DAY, 400), run(1_000, DAY, 0));
    about
        .brings("1,000 per day: calls of a slow standard agent", calls(&with), calls(&without))
        .costs("quota used", used(&with), used(&without))
}

fn promotion() -> About {
    let never = |policy: &mut Policy| policy.promotes = false;
    let slow = Slow { tier: Priority::Background, burst: 0, floor: 0, patience: 10 * SECOND };
    let calls = |came: &Came| Figure::Many(came.story.agents[0].done);
    let (with, without) = both(&crowded(80, HOUR, slow), never);
    let about = About::new("`promotion`")
        .brings("80 per hour: calls of a slow background agent", calls(&with), calls(&without))
        .costs(
            "calls of three standard agents",
            Figure::Many(with.busy),
            Figure::Many(without.busy),
        );
    let (with, without) = both(&hammered(1_000, DAY, Priority::Background), never);
    about.changes_nothing(
        "1,000 per day: longest wait of a critical call",
        longest(&with),
        longest(&without),
    )
}

fn margin() -> About {
    let run = |amount, period, others, silent| {
        let scene = shared(amount, period, others);
        let of = |margin| Scene { margin, silent, ..scene.clone() }.run();
        (of(Margin::Auto), of(ALL))
    };
    let (with, without) = run(600, HOUR, 60, true);
    let about = About::new("`margin`")
        .brings("600 per hour, others unseen: refused", refused(&with), refused(&without))
        .brings("quota used", used(&with), used(&without));
    let (with, without) = run(2_000, DAY, 200, true);
    let about = about
        .brings("2,000 per day, others unseen: refused", refused(&with), refused(&without))
        .brings("quota used", used(&with), used(&without));
    let (with, without) = run(600, HOUR, 0, true);
    let about = about.costs("600 per hour, no others: quota used", used(&with), used(&without));
    let (with, without) = run(600, HOUR, 0, false);
    about.costs("as above, if responses show what is left", used(&with), used(&without))
}

fn reconcile() -> About {
    let blind = |policy: &mut Policy| policy.reconciles = false;
    let (with, without) = both(&shared(600, HOUR, 120), blind);
    let about = About::new("`reconcile`")
        .brings("600 per hour, a fifth for others: refused", refused(&with), refused(&without))
        .changes_nothing("quota used", used(&with), used(&without));
    let (with, without) = both(&shared(2_000, DAY, 400), blind);
    about
        .brings("2,000 per day, a fifth for others: refused", refused(&with), refused(&without))
        .brings("quota used", used(&with), used(&without))
}

pub(super) fn all() -> Vec<About> {
    vec![zones(), spread(), yields(), floor(), promotion(), margin(), reconcile()]
}
