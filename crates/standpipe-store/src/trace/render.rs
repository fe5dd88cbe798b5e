//! Outcomes as JSON: what a line of a trace can state, and what its digest covers.
//!
//! Every text here enters the digests, so a change of one changes golden traces.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use standpipe_core::{
    Answer, Configured, Decision, Grant, Instant, Key, LeaseAnswer, Notice, Outcome, Queued,
    Reclaim, Refusal,
};

use super::values::{show_instant, show_limit, show_span};

/// The names that a trace gives its sessions, tickets and leases.
#[derive(Clone, Debug, Default)]
pub(super) struct Labels {
    pub(super) labels: BTreeMap<Key, String>,
    pub(super) sessions: BTreeMap<u64, String>,
}

impl Labels {
    /// Renders all parts of an outcome.
    pub(super) fn outcome(&self, outcome: &Outcome) -> Map<String, Value> {
        let mut fields = self.answer(&outcome.answer);
        let notices = outcome.notices.iter().map(|notice| self.notice(notice).into());
        fields.insert("notices".into(), notices.collect::<Vec<Value>>().into());
        let wake = outcome.wake.iter().map(|ticket| self.key(*ticket).into());
        fields.insert("wake".into(), wake.collect::<Vec<Value>>().into());
        fields.insert("next".into(), until(outcome.next));
        fields
    }

    pub(super) fn decision(&self, decision: &Decision) -> Map<String, Value> {
        let (key, fields) = match decision {
            Decision::Admit(grant) => ("admit", self.grant(grant)),
            Decision::Wait(queued) => ("wait", self.queued(queued)),
            Decision::Refuse(refused) => ("refuse", refusal(refused)),
        };
        Map::from_iter([(key.to_owned(), fields.into())])
    }

    fn answer(&self, answer: &Answer) -> Map<String, Value> {
        let text = match answer {
            Answer::Decided(decision) => return self.decision(decision),
            Answer::Lease(LeaseAnswer::Lives(until)) => {
                format!("lives until {}", show_instant(*until))
            }
            Answer::Lease(LeaseAnswer::Ended) => "ended".to_owned(),
            Answer::Lease(LeaseAnswer::Gone) => "gone".to_owned(),
            Answer::Configured(Configured::Applied) => "applied".to_owned(),
            Answer::Configured(Configured::Same) => "same".to_owned(),
            Answer::Configured(Configured::Kept) => "kept".to_owned(),
            Answer::Configured(Configured::Invalid(why)) => format!("invalid: {why}"),
            Answer::Done => "done".to_owned(),
            Answer::Duplicate => "copy".to_owned(),
            Answer::SessionEnded => "session ended".to_owned(),
        };
        Map::from_iter([("answer".to_owned(), text.into())])
    }

    fn grant(&self, grant: &Grant) -> Map<String, Value> {
        let mut fields = Map::new();
        fields.insert("lease".into(), self.key(grant.lease).into());
        fields.insert("expires".into(), until(Some(grant.expires_at)));
        fields.insert("settled".into(), grant.settled.into());
        fields.insert("instead_of".into(), grant.instead_of.as_ref().map(refusal).into());
        fields
    }

    fn queued(&self, queued: &Queued) -> Map<String, Value> {
        let mut fields = refusal(&queued.refusal);
        fields.insert("ticket".into(), self.key(queued.ticket).into());
        fields.insert("position".into(), queued.position.into());
        fields
    }

    fn notice(&self, notice: &Notice) -> String {
        match notice {
            Notice::Reclaimed { lease, why: Reclaim::Expired, .. } => {
                format!("reclaimed {}: expired", self.key(*lease))
            }
            Notice::Reclaimed { lease, why: Reclaim::OwnerGone, .. } => {
                format!("reclaimed {}: owner gone", self.key(*lease))
            }
            Notice::TicketEnded { ticket, why, waited, .. } => format!(
                "ticket {} ended after {}: {}",
                self.key(*ticket),
                show_span(*waited),
                why.as_str()
            ),
            Notice::Waited { ticket, waited, .. } => {
                format!("{} waited {}", self.key(*ticket), show_span(*waited))
            }
            Notice::SessionEnded { session } => format!("session {} ended", self.session(*session)),
            Notice::Throttled { agent, kind, new, streak } => {
                let who = agent.as_ref().map_or("nobody", |agent| agent.as_str());
                let suffix = if *new { "" } else { ", known" };
                format!("{who} throttled: {}, streak {streak}{suffix}", kind.as_str())
            }
            Notice::Unbelieved { .. } => "retry-after not believed".to_owned(),
            Notice::ReadingIgnored { limit, remaining, .. } => {
                format!("ignored {remaining} remaining of {}", show_limit(limit))
            }
            Notice::Sequential { on: true } => "one at a time".to_owned(),
            Notice::Sequential { on: false } => "no longer one at a time".to_owned(),
            Notice::Learned { limit, amount } => {
                format!("learned {}: {amount}", show_limit(limit))
            }
            Notice::Zone { zone } => format!("zone {}", zone.as_str()),
            Notice::Promoted { agent } => format!("{agent} promoted"),
            Notice::Margin { limit, per_mille } => {
                format!("margin of {}: {per_mille}", show_limit(limit))
            }
            Notice::Outside { limit, units, total } => {
                format!("outside used {units} of {}, {total} in all", show_limit(limit))
            }
            Notice::Breaker { on: true } => "calls will have to wait".to_owned(),
            Notice::Breaker { on: false } => "calls need not wait".to_owned(),
            Notice::Paused { until, by } => {
                let by = by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
                format!("paused until {}{by}", show_instant(*until))
            }
            Notice::Resumed { by, .. } => {
                let by = by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
                format!("resumed{by}")
            }
            Notice::Stopped { until: Some(until) } => {
                format!("stopped until {}", show_instant(*until))
            }
            Notice::Stopped { until: None } => "stopped".to_owned(),
            Notice::WindowReset { limit } => format!("window reset {}", show_limit(limit)),
        }
    }

    fn key(&self, key: Key) -> String {
        if key == Key::default() {
            return "none".to_owned();
        }
        let label = self.labels.get(&key).cloned();
        label.unwrap_or_else(|| format!("{}#{}", self.session(key.session), key.number))
    }

    fn session(&self, session: u64) -> String {
        self.sessions.get(&session).cloned().unwrap_or_else(|| session.to_string())
    }
}

fn refusal(refusal: &Refusal) -> Map<String, Value> {
    let mut fields = Map::new();
    fields.insert("reason".into(), refusal.reason.as_str().into());
    fields.insert("limit".into(), refusal.limit.as_ref().map(show_limit).into());
    fields.insert("short_by".into(), json!(refusal.short_by));
    fields.insert("until".into(), until(refusal.until));
    fields
}

fn until(instant: Option<Instant>) -> Value {
    instant.map_or_else(|| "never".into(), |instant| show_instant(instant).into())
}
