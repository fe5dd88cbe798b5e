//! An oracle for ramps: what each step of a ramp admitted, counted anew from the calls themselves.
//!
//! It learns from notices when a pause began and how long it lasts, and computes by itself how
//! often the shortest rates are halved.

use proptest::prelude::*;
use standpipe_core::{
    Action, Answer, Backoff, Charged, Decision, Event, Instant, Margin, Notice, Outcome,
    PoolConfig, ReturnWindows, Rule, Span, ThrottleKind,
};

use crate::support::cases;
use crate::support::player::Player;
use crate::support::scene::{WITH_POLICIES, scene};

/// The ramp as it follows from what was refused.
#[derive(Clone, Copy, Debug)]
struct Ramp {
    halvings: u8,
    since: Instant,
}

impl Ramp {
    /// The limits that a ramp applies to, and their period.
    fn limits(config: &PoolConfig) -> (Vec<usize>, Span) {
        let rates = config.limits.iter().enumerate();
        let rates = rates.filter(|(_, limit)| limit.charged == Charged::Start);
        let rates: Vec<_> = rates.filter_map(|(at, l)| Some((at, l.id().period()?))).collect();
        let shortest = rates.iter().map(|(_, period)| *period).min().unwrap_or_default();
        let its = rates.iter().filter(|(_, period)| *period == shortest);
        (its.map(|(at, _)| *at).collect(), shortest)
    }

    /// The steps that have passed by an instant.
    fn advance(&mut self, now: Instant, period: Span) {
        let steps = now.since(self.since).0 / period.0.max(1);
        let undone = u8::try_from(steps).unwrap_or(u8::MAX).min(self.halvings);
        self.halvings -= undone;
        self.since = self.since + Span(period.0 * u64::from(undone));
    }

    /// What an event and its outcome change.
    fn observe(&mut self, event: &Event, outcome: &Outcome, now: Instant) {
        for notice in &outcome.notices {
            match notice {
                // It begins at once if no pause follows.
                Notice::Throttled { new: true, kind: ThrottleKind::Quota, .. } => {
                    (self.halvings, self.since) = (self.halvings.max(1), self.since.max(now));
                }
                Notice::Throttled { new: true, kind: ThrottleKind::SlowDown, .. } => {
                    let halvings = (self.halvings + 1).min(6);
                    (self.halvings, self.since) = (halvings, self.since.max(now));
                }
                Notice::Paused { until, .. } => self.since = self.since.max(*until),
                _ => {}
            }
        }
        if matches!(event.action, Action::Resume { .. }) {
            self.halvings = 0;
        }
    }
}

proptest! {
    #![proptest_config(cases(2_000))]

    #[test]
    fn each_step_of_a_ramp_admits_its_share_or_one_call(scene in scene(WITH_POLICIES)) {
        let mut scene = scene;
        // Limits stay as they are declared, and everything but the ramp is usable.
        (scene.config.policy.learn, scene.config.policy.reconciles) = (false, false);
        scene.config.policy.comeback.get_or_insert(ReturnWindows::USUAL);
        // Without a pause a call whose turn had come before the refusal is admitted after it.
        scene.config.policy.backoff.get_or_insert(Backoff::USUAL);
        scene.config.margin = Margin::Fixed(0);
        let (limits, period) = Ramp::limits(&scene.config);
        let mut ramp = Ramp { halvings: 0, since: Instant(0) };
        let mut player = Player::new(&scene);
        for step in &scene.steps {
            let Some((event, outcome)) = player.step(step) else { continue };
            let now = player.world.now;
            ramp.advance(now, period);
            let admits = matches!(outcome.answer, Answer::Decided(Decision::Admit(_)));
            if ramp.halvings > 0 && admits && now >= ramp.since {
                for limit in &limits {
                    let usable = match player.book.config.limits[*limit].rule {
                        Rule::Window { amount, .. } | Rule::Bucket { amount, .. } => amount,
                        Rule::Parallel { .. } => continue,
                    };
                    let budget = (usable >> ramp.halvings).max(1);
                    let (units, calls) = player.book.reserved_since(*limit, ramp.since);
                    prop_assert!(
                        units <= budget || calls <= 1,
                        "{units} of {budget} by {calls} calls since {:?} on limit {limit}",
                        ramp.since
                    );
                }
            }
            ramp.observe(&event, &outcome, now);
        }
    }
}
