//! Which of two configurations counts. Two processes never alternate, and the loser is told.

use alloc::boxed::Box;

use crate::bounds;
use crate::config::{Limit, PoolConfig, Rule};
use crate::event::{Configure, Source};
use crate::facts::Provenance;
use crate::state::State;
use crate::time::{Instant, Span};

/// What a configuration comes to beside the one in force.
pub(crate) enum Weight {
    /// It is in force already.
    Same,
    /// The other one counts.
    Kept,
    /// This comes into force.
    Applies(Box<PoolConfig>, Provenance),
}

impl State {
    /// Files beat code, a version beats none, then the higher version, then the later file; between
    /// code the stricter wins limit by limit; an explicit change is newer than what is there.
    pub(crate) fn weigh(&self, configure: &Configure, now: Instant) -> Weight {
        let Configure { source, config } = configure;
        let before = self.facts.provenance;
        let Some(current) = &self.facts.config else {
            return Weight::Applies(Box::new(config.clone()), first_provenance(*source));
        };
        match *source {
            Source::File { version, written } => {
                let offered = Provenance { file: true, version, written, changes: 0 };
                if offered > before {
                    Weight::Applies(Box::new(config.clone()), offered)
                } else if offered == before && config == current {
                    Weight::Same
                } else {
                    Weight::Kept
                }
            }
            Source::Change if config == current => Weight::Same,
            Source::Change => {
                let changes = before.changes.saturating_add(1);
                Weight::Applies(Box::new(config.clone()), Provenance { changes, ..before })
            }
            Source::Code if config == current => Weight::Same,
            Source::Code if before.file => Weight::Kept,
            Source::Code if self.is_silent(current, now) => {
                Weight::Applies(Box::new(config.clone()), Provenance::default())
            }
            Source::Code if before.changes > 0 => Weight::Kept,
            Source::Code => match stricter(current, config) {
                Some(merged) if merged != *current => Weight::Applies(Box::new(merged), before),
                _ => Weight::Kept,
            },
        }
    }

    /// Nobody has used the pool for its longest period: everything has aged.
    fn is_silent(&self, current: &PoolConfig, now: Instant) -> bool {
        let long = current.longest_period().max(Span::secs(60)) + current.slack;
        let nothing_under_way = self.facts.leases.is_empty() && self.facts.tickets.is_empty();
        nothing_under_way && now >= self.facts.used + long
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

/// Limit by limit the stricter of two; a limit that only one has counts.
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
    merged.check().is_ok().then_some(merged)
}

fn tighten(known: &mut Limit, other: &Limit) {
    known.pace = known.pace.max(other.pace);
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
