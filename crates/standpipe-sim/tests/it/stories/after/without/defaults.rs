//! Which of zones, yield and spread are on by default: every combination of them on quotas per
//! minute, hour and day, with a critical agent beside background agents that want everything.

use standpipe_core::{Policy, Priority, Zones};
use standpipe_sim::Waits;

use super::slow::{Came, DAY, Scene, Slow};
use crate::stories::scene::{HOUR, MINUTE, SECOND};

#[test]
fn explore() {
    for (name, amount, period, interval) in [
        ("60/min", 60, MINUTE, 10 * SECOND),
        ("600/min", 600, MINUTE, 10 * SECOND),
        ("600/min, 2s", 600, MINUTE, 2 * SECOND),
        ("600/5min", 600, 5 * MINUTE, 10 * SECOND),
    ] {
        for burst in [0, 10] {
            for bits in 0..8 {
                let policy = Policy {
                    zones: if bits & 1 != 0 { Zones::All } else { Zones::Off },
                    yields: bits & 2 != 0,
                    spreads: bits & 4 != 0,
                    ..Policy::usual()
                };
                let slow = Slow { tier: Priority::Critical, burst, floor: 0, patience: period };
                let scene =
                    Scene { policy, periods: 30, interval, slow, ..Scene::new(amount, period) };
                let scene = (0..4).fold(scene, |s, _| s.beside(Priority::Background, Waits::Sleep));
                let came: Came = scene.run();
                println!(
                    "{name} promotes burst {burst}: zones {} yield {} spread {}: critical {:.1}s used {} bg {}",
                    bits & 1,
                    bits >> 1 & 1,
                    bits >> 2,
                    came.story.agents[0].longest_wait() as f64 / 1e6,
                    came.used,
                    came.busy
                );
            }
        }
    }
}
