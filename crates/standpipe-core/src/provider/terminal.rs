//! Starts and ends a terminal stop: the provider refuses everything until an end it named or not.
//!
//! The rule that refuses calls meanwhile is in `rules/terminal.rs`.

use crate::event::Key;
use crate::facts::Terminal;
use crate::outcome::{Notice, Reason};
use crate::provider::throttle::Incident;
use crate::state::State;
use crate::time::{Instant, Span};

impl State {
    pub(crate) fn stop_until(&mut self, after: Option<Span>, incident: Incident, now: Instant) {
        // An end that has passed is unknown: the provider refuses all the same.
        let until = after.filter(|after| *after > Span::ZERO).map(|after| now + after);
        let next_probe = self.terminal_probe(now);
        self.facts.terminal = Some(Terminal { until, next_probe, probe: None });
        self.facts.throttling.incident = Some(incident);
        self.effects.notices.push(Notice::Stopped { until });
        self.end_tickets(Reason::Terminal, now, |_| true);
    }

    fn terminal_probe(&self, now: Instant) -> Option<Instant> {
        let policy = &self.facts.config.as_ref()?.policy;
        policy.terminal_probe.map(|every| now + every)
    }

    /// Makes a call that was admitted during the stop its probe.
    pub(crate) fn start_terminal_probe(&mut self, lease: Key, now: Instant) {
        let next_probe = self.terminal_probe(now);
        let Some(terminal) = &mut self.facts.terminal else { return };
        (terminal.next_probe, terminal.probe) = (next_probe, Some(lease));
        self.end_tickets(Reason::Terminal, now, |_| true);
    }

    /// The probe was never sent: the next call is the probe.
    pub(crate) fn probe_cancelled(&mut self, lease: Key, now: Instant) {
        if let Some(terminal) = &mut self.facts.terminal
            && terminal.probe == Some(lease)
        {
            (terminal.next_probe, terminal.probe) = (Some(now), None);
        }
    }

    /// Ends the stop when the provider answered the probe otherwise.
    pub(crate) fn terminal_disproved(&mut self, lease: Option<Key>, now: Instant) {
        let looked = self.facts.terminal.is_some_and(|terminal| terminal.probe == lease);
        if lease.is_some() && looked {
            self.facts.terminal = None;
            self.effects.notices.push(Notice::Resumed { at: now, by: None });
        }
    }
}
