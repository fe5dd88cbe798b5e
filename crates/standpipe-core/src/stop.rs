//! The provider said stop for good: a spend cap, a daily quota. Nobody is admitted until the end it
//! named; but once in a while one call is let through, because people pay their bills.

use crate::event::Key;
use crate::facts::Terminal;
use crate::outcome::{Notice, Reason, Refusal};
use crate::state::State;
use crate::time::{Instant, Span};
use crate::trouble::Incident;

impl State {
    pub(crate) fn stop(&mut self, after: Option<Span>, incident: Incident, now: Instant) {
        // An end that has passed already is no end: the provider says stop all the same.
        let until = after.filter(|after| *after > Span::ZERO).map(|after| now + after);
        let look = self.second_look(now);
        self.facts.terminal = Some(Terminal { until, look, probe: None });
        self.facts.trouble.incident = Some(incident);
        self.news.notices.push(Notice::Stopped { until });
        self.end_tickets(Reason::Terminal, now, |_| true);
    }

    fn second_look(&self, now: Instant) -> Option<Instant> {
        let policy = &self.facts.config.as_ref()?.policy;
        policy.second_look.map(|every| now + every)
    }

    /// Step 1 of the rule: the provider said stop, and it is not time for another look.
    pub(crate) fn terminated(&self, now: Instant) -> Option<Refusal> {
        let terminal = self.facts.terminal?;
        if terminal.look.is_some_and(|look| look <= now) {
            return None;
        }
        let ends = terminal.until.into_iter().chain(terminal.look);
        let until = ends.min().map(|until| until.max(now));
        Some(Refusal { reason: Reason::Terminal, limit: None, short_by: 0, until })
    }

    /// A call was admitted although the provider had said stop: it is the look.
    pub(crate) fn looks_again(&mut self, lease: Key, now: Instant) {
        let look = self.second_look(now);
        let Some(terminal) = &mut self.facts.terminal else { return };
        (terminal.look, terminal.probe) = (look, Some(lease));
        self.end_tickets(Reason::Terminal, now, |_| true);
    }

    /// The look was never sent: the next call is it.
    pub(crate) fn look_called_off(&mut self, lease: Key, now: Instant) {
        if let Some(terminal) = &mut self.facts.terminal
            && terminal.probe == Some(lease)
        {
            (terminal.look, terminal.probe) = (Some(now), None);
        }
    }

    /// The provider answered the look with something else than stop.
    pub(crate) fn heard_otherwise(&mut self, lease: Option<Key>) {
        let looked = self.facts.terminal.is_some_and(|terminal| terminal.probe == lease);
        if lease.is_some() && looked {
            self.facts.terminal = None;
            self.news.notices.push(Notice::Resumed);
        }
    }
}
