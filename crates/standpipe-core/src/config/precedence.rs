//! Precedence: decides which of two configurations is in force.
//!
//! A file replaces another only by a greater [`Provenance`], and configurations from code only
//! tighten each other. So two processes with different configurations never alternate; the one
//! that loses gets [`crate::Configured::Kept`]. `change.rs` puts the winner into force.

use alloc::boxed::Box;

use crate::bounds;
use crate::config::{Limit, PoolConfig, Resets, Rule};
use crate::event::{Configure, Source};
use crate::facts::Provenance;
use crate::state::State;
use crate::time::{Instant, Span};

/// The result of comparing an offered configuration with the one in force.
pub(crate) enum Precedence {
    /// The offered configuration is already in force.
    Same,
    /// The one in force wins.
    Kept,
    /// This one, possibly merged, comes into force.
    Applies(Box<PoolConfig>, Provenance),
}

impl State {
    /// Compares an offered configuration with the one in force.
    ///
    /// A file beats code. Between files a version beats none, then the higher version wins, then
    /// the later modification time. Between configurations from code the stricter one wins, limit
    /// by limit. An explicit change is newer than what is in force.
    pub(crate) fn resolve(&self, configure: &Configure, now: Instant) -> Precedence {
        let Configure { source, config } = configure;
        let before = self.facts.provenance;
        let Some(current) = &self.facts.config else {
            return Precedence::Applies(Box::new(config.clone()), first_provenance(*source));
        };
        match *source {
            Source::File { version, written } => {
                let offered = Provenance { file: true, version, written, changes: 0 };
                if offered > before {
                    Precedence::Applies(Box::new(config.clone()), offered)
                } else if offered == before && config == current {
                    Precedence::Same
                } else {
                    Precedence::Kept
                }
            }
            Source::Change if config == current => Precedence::Same,
            Source::Change => {
                let changes = before.changes.saturating_add(1);
                Precedence::Applies(Box::new(config.clone()), Provenance { changes, ..before })
            }
            Source::Code if config == current => Precedence::Same,
            Source::Code if before.file => Precedence::Kept,
            // After a silence all usage has expired, so a looser limit cannot hand out a unit
            // twice.
            Source::Code if self.is_silent(current, now) => {
                Precedence::Applies(Box::new(config.clone()), Provenance::default())
            }
            // A process that starts with its built-in limits must not undo an explicit change.
            Source::Code if before.changes > 0 => Precedence::Kept,
            Source::Code => match stricter(current, config) {
                Some(merged) if merged != *current => Precedence::Applies(Box::new(merged), before),
                Some(_) if config.limits == current.limits => Precedence::Same,
                _ => Precedence::Kept,
            },
        }
    }

    /// Whether the pool was unused for its longest period, so that all usage has expired.
    fn is_silent(&self, current: &PoolConfig, now: Instant) -> bool {
        let silence = current.longest_period().max(Span::secs(60)) + current.slack;
        let nothing_in_flight = self.facts.leases.is_empty() && self.facts.tickets.is_empty();
        nothing_in_flight && now >= self.facts.used + silence
    }
}

const fn first_provenance(source: Source) -> Provenance {
    match source {
        Source::File { version, written } => {
            Provenance { file: true, version, written, changes: 0 }
        }
        Source::Code => Provenance { file: false, version: None, written: 0, changes: 0 },
        Source::Change => Provenance { file: false, version: None, written: 0, changes: 1 },
    }
}

/// Merges two configurations into the stricter one; a limit or an agent's rule that only one has is
/// kept.
fn stricter(current: &PoolConfig, offered: &PoolConfig) -> Option<PoolConfig> {
    let mut merged = current.clone();
    merged.slack = merged.slack.max(offered.slack);
    for limit in &offered.limits {
        match merged.limits.iter().position(|known| known.id() == limit.id()) {
            Some(at) => tighten(&mut merged.limits[at], limit),
            None if merged.limits.len() == bounds::LIMITS => return None,
            None => merged.limits.push(limit.clone()),
        }
    }
    for rule in &offered.agents {
        let is_known = merged.agents.iter().any(|known| known.name == rule.name);
        if !is_known && merged.agents.len() < bounds::AGENT_RULES {
            merged.agents.push(rule.clone());
        }
    }
    merged.check().is_ok().then_some(merged)
}

fn tighten(known: &mut Limit, other: &Limit) {
    known.pace = known.pace.max(other.pace);
    if known.resets != other.resets && (known.resets.is_calendar() || other.resets.is_calendar()) {
        // A rolling window admits least, whichever day is right.
        known.resets = Resets::Rolling;
    }
    match (&mut known.rule, &other.rule) {
        (Rule::Window { amount, .. }, Rule::Window { amount: least, .. })
        | (Rule::Parallel { amount }, Rule::Parallel { amount: least }) => {
            *amount = (*amount).min(*least);
        }
        (
            Rule::Bucket { amount, burst, .. },
            Rule::Bucket { amount: least, burst: shallow, .. },
        ) => {
            *amount = (*amount).min(*least);
            *burst = (*burst).min(*shallow);
        }
        _ => {}
    }
}
