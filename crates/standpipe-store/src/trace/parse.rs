//! The parser of traces: turns lines of JSON into events with keys and expected outcomes.
//!
//! It resolves labels and session names, so that the runner needs no names.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use standpipe_core::{
    Action, AgentName, Amounts, CalendarReset, Commit, Event, Hit, Instant, Key, LimitId, Observed,
    Owner, PoolRef, Reading, Recovered, Reserve, Span, Text, ThrottleKind, Throttled, Unit,
};

use super::TraceError;
use super::config::{self, Defaults, amount, object, time};
use super::render::Labels;
use super::values::{instant, rate};

/// A golden trace.
#[derive(Clone, Debug)]
pub struct Trace {
    /// The file name.
    pub name: String,
    /// One sentence about what happens.
    pub story: String,
    /// The guarantee that the trace protects.
    pub why: String,
    pub(super) steps: Vec<Step>,
    pub(super) labels: Labels,
}

/// One step of a trace.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) line: usize,
    pub(super) at: Instant,
    pub(super) operation: Operation,
    /// The fields of the outcome that the line states.
    pub(super) expected: Map<String, Value>,
}

/// What a step does.
#[derive(Clone, Debug)]
pub(super) enum Operation {
    /// Applies an event.
    Apply(Event),
    /// Peeks, which changes nothing.
    Peek(Reserve),
    /// Writes a snapshot and reads it back.
    Snapshot,
}

/// The keys of a line that describe the event.
const ABOUT: [&str; 6] = ["at", "session", "label", "repeat", "every", "note"];

/// The keys of a line that state the outcome.
const OUTCOME: [&str; 7] = ["admit", "wait", "refuse", "answer", "wake", "notices", "next"];

impl Trace {
    /// Parses a trace.
    ///
    /// # Errors
    /// The first line that cannot be parsed.
    pub fn parse(name: &str, text: &str) -> Result<Self, TraceError> {
        let fail = |line: usize, message: String| TraceError {
            file: name.to_owned(),
            line: line + 1,
            message,
        };
        let parse = |line: usize, text: &str| match serde_json::from_str(text) {
            Ok(Value::Object(fields)) => Ok(fields),
            Ok(_) => Err(fail(line, "not an object".to_owned())),
            Err(error) => Err(fail(line, format!("not JSON: {error}"))),
        };
        let mut lines = text.lines().enumerate().filter(|(_, text)| !text.trim().is_empty());
        let Some((at, first)) = lines.next() else {
            return Err(fail(
                0,
                "the file is empty; the first line must describe the trace".to_owned(),
            ));
        };
        let head = parse(at, first)?;
        let mut parser = Parser::new(&head).map_err(|message| fail(at, message))?;
        let key = |key: &str| match head.get(key).and_then(Value::as_str) {
            Some(text) => Ok(text.to_owned()),
            None => Err(fail(at, format!("the first line must have `{key}`"))),
        };
        let (story, why) = (key("story")?, key("why")?);
        let mut steps = Vec::new();
        for (line, text) in lines {
            let fields = parse(line, text)?;
            steps.extend(parser.line(line + 1, &fields).map_err(|message| fail(line, message))?);
        }
        Ok(Self { name: name.to_owned(), story, why, steps, labels: parser.names })
    }
}

/// The names and the last events parsed so far.
struct Parser {
    defaults: Defaults,
    clock: Instant,
    sessions: BTreeMap<String, u64>,
    numbers: BTreeMap<u64, u64>,
    labels: BTreeMap<String, Labelled>,
    /// The last event of each session, which `again` repeats.
    last: BTreeMap<u64, Event>,
    names: Labels,
}

#[derive(Clone)]
struct Labelled {
    key: Key,
    reserve: Option<Reserve>,
}

impl Parser {
    fn new(head: &Map<String, Value>) -> Result<Self, String> {
        let or = |key: &str, default| head.get(key).map_or(Ok(default), time);
        let defaults = Defaults { slack: or("slack", Span::ZERO)?, claim: or("claim", CLAIM)? };
        if let Some(odd) = head.keys().find(|key| !HEAD.contains(&key.as_str())) {
            return Err(format!("unknown key `{odd}` in the first line"));
        }
        Ok(Self {
            defaults,
            clock: Instant(0),
            sessions: BTreeMap::new(),
            numbers: BTreeMap::new(),
            labels: BTreeMap::new(),
            last: BTreeMap::new(),
            names: Labels::default(),
        })
    }

    fn line(&mut self, line: usize, fields: &Map<String, Value>) -> Result<Vec<Step>, String> {
        let is = |words: &[&str], key: &String| words.contains(&key.as_str());
        let mut happens = fields.iter().filter(|(key, _)| !is(&ABOUT, key) && !is(&OUTCOME, key));
        let (Some((key, value)), None) = (happens.next(), happens.next()) else {
            return Err("a line must have exactly one action, such as `reserve`".to_owned());
        };
        let expected = fields.iter().filter(|(key, _)| is(&OUTCOME, key));
        let expected: Map<_, _> =
            expected.map(|(key, value)| (key.clone(), value.clone())).collect();
        let mut at = instant(fields.get("at").and_then(Value::as_str).unwrap_or_default())?;
        let every = fields.get("every").map_or(Ok(Span::ZERO), time)?;
        let times = fields.get("repeat").map_or(Ok(1), amount)?;
        let label = fields.get("label").and_then(Value::as_str);
        let session = self.session(fields.get("session").and_then(Value::as_str).unwrap_or("one"));
        let mut steps = Vec::new();
        for time in 1..=times {
            if at < self.clock {
                return Err("time goes back; lines must be in the order of time".to_owned());
            }
            self.clock = at;
            let label = label.map(|label| match times {
                1 => label.to_owned(),
                _ => format!("{label}{time}"),
            });
            let operation = self.operation(session, key, value, label)?;
            steps.push(Step { line, at, operation, expected: expected.clone() });
            at = at + every;
        }
        Ok(steps)
    }

    fn operation(
        &mut self,
        session: u64,
        key: &str,
        value: &Value,
        label: Option<String>,
    ) -> Result<Operation, String> {
        match key {
            "peek" => return Ok(Operation::Peek(self.reserve(object(value)?)?)),
            "snapshot" => return Ok(Operation::Snapshot),
            "again" => {
                let last = self.last.get(&session).cloned();
                return last.map(Operation::Apply).ok_or("nothing to send again".to_owned());
            }
            _ => {}
        }
        let action = self.action(session, key, value)?;
        let event = Event { key: self.next_key(session), action };
        if let Some(label) = label {
            let reserve = match &event.action {
                Action::Reserve(reserve) => Some((**reserve).clone()),
                _ => None,
            };
            self.name(label, event.key, reserve);
        }
        self.last.insert(session, event.clone());
        Ok(Operation::Apply(event))
    }

    fn action(&mut self, session: u64, key: &str, value: &Value) -> Result<Action, String> {
        Ok(match key {
            "reserve" => Action::Reserve(Box::new(self.reserve(object(value)?)?)),
            "claim" => {
                let fields = Map::from_iter([("ticket".to_owned(), value.clone())]);
                Action::Reserve(Box::new(self.reserve(&fields)?))
            }
            "commit" => Action::Commit(self.commit(object(value)?)?),
            "cancel" => Action::Cancel { lease: self.key(value)? },
            "redate" => Action::Redate { lease: self.key(value)? },
            "withdraw" => Action::Withdraw { lease: self.key(value)? },
            "leave" => Action::Leave { ticket: self.key(value)? },
            "throttled" => Action::Throttled(self.throttled(object(value)?)?),
            "observed" => Action::Observed(self.observed(object(value)?)?),
            "heartbeat" => Action::Heartbeat {
                lease: value.get("lease").map(|lease| self.key(lease)).transpose()?,
                ttl: value.get("ttl").map(time).transpose()?,
            },
            "session_ended" => {
                let name = value.as_str().ok_or("`session_ended` must name a session")?;
                Action::SessionEnded { session: self.session(name) }
            }
            "owner_ended" => Action::OwnerEnded { lease: self.key(value)? },
            "configure" => {
                Action::Configure(Box::new(config::configure(object(value)?, self.defaults)?))
            }
            "pause" => pause(value)?,
            "resume" => Action::Resume { by: value.get("as").map(agent).transpose()? },
            "calendar" => Action::Calendar { resets: calendar(object(value)?)? },
            "recovered" => Action::Recovered(self.recovered(session, object(value)?)?),
            "forgotten" => Action::Forgotten,
            _ => return Err(format!("unknown action `{key}`")),
        })
    }

    /// Parses a reserve. With a ticket, missing fields default to those of the ticket's reserve.
    fn reserve(&self, fields: &Map<String, Value>) -> Result<Reserve, String> {
        let ticket = fields.get("ticket").map(|ticket| self.labelled(ticket)).transpose()?;
        let ticketed = ticket.and_then(|labelled| labelled.reserve.clone());
        let mut reserve = match (ticketed, fields.get("as")) {
            (Some(reserve), None) => reserve,
            (_, Some(name)) => {
                let mut reserve = Reserve::new(agent(name)?, Amounts::default());
                reserve.patience = PATIENCE;
                reserve
            }
            (None, None) => return Err("a reserve must name its agent: `as`".to_owned()),
        };
        reserve.ticket = ticket.map(|labelled| labelled.key);
        let mut cost = Vec::new();
        for (key, value) in fields {
            match key.as_str() {
                "as" | "ticket" => {}
                "priority" => reserve.priority = Some(config::priority(value)?),
                "timeout" => reserve.patience = time(value)?,
                "ttl" => reserve.ttl = Some(time(value)?),
                "id" => reserve.id = Some(text(value)?),
                "model" => reserve.model = Some(text(value)?),
                "task" => reserve.task = Some(text(value)?),
                "owner" => {
                    let pid =
                        u32::try_from(amount(value)?).map_err(|_| "the process id is too large")?;
                    reserve.owner = Some(Owner { pid, started: 0 });
                }
                "retry_of" => reserve.retry_of = Some(self.key(value)?),
                "hold" => reserve.hold = Some(time(value)?),
                "bytes" => reserve.bytes = Some(amount(value)?),
                "part_of" => reserve.part_of = PoolRef::new(value.as_str().unwrap_or_default()),
                "at_most" => reserve.at_most = amounts(value)?,
                unit => cost.push((named_unit(unit)?, amount(value)?)),
            }
        }
        if !cost.is_empty() || reserve.cost == Amounts::default() {
            reserve.cost = Amounts::cost(cost).map_err(|error| error.to_string())?;
        }
        Ok(reserve)
    }

    fn commit(&self, fields: &Map<String, Value>) -> Result<Commit, String> {
        let lease = self.key(fields.get("lease").ok_or("a commit must name its `lease`")?)?;
        let (mut progress, mut refused, mut used) = (false, false, Vec::new());
        for (key, value) in fields {
            match key.as_str() {
                "lease" => {}
                "progress" => progress = value == true,
                "refused" => refused = value == true,
                unit => used.push((named_unit(unit)?, amount(value)?)),
            }
        }
        let used = Amounts::new(used).map_err(|error| error.to_string())?;
        Ok(Commit { lease, used, progress, refused })
    }

    fn throttled(&self, fields: &Map<String, Value>) -> Result<Throttled, String> {
        let kind = match fields.get("kind").and_then(Value::as_str) {
            Some("quota") | None => ThrottleKind::Quota,
            Some("concurrency") => ThrottleKind::Concurrency,
            Some("slow_down") => ThrottleKind::SlowDown,
            Some("overload") => ThrottleKind::Overload,
            Some("terminal") => ThrottleKind::Terminal,
            Some(odd) => return Err(format!("unknown kind of throttle `{odd}`")),
        };
        Ok(Throttled {
            lease: fields.get("lease").map(|lease| self.key(lease)).transpose()?,
            agent: fields.get("as").map(agent).transpose()?,
            kind,
            retry_after: fields.get("retry_after").map(time).transpose()?,
            hit: fields.get("hit").map(hit).transpose()?,
        })
    }

    fn observed(&self, fields: &Map<String, Value>) -> Result<Observed, String> {
        let lease = fields.get("lease").map(|lease| self.key(lease)).transpose()?;
        let mut readings = Vec::new();
        for (key, value) in fields.iter().filter(|(key, _)| *key != "lease") {
            let figure = |key: &str| value.get(key).map(amount).transpose();
            let length = |key: &str| value.get(key).map(time).transpose();
            readings.push(Reading {
                unit: named_unit(key)?,
                period: length("period")?,
                limit: figure("limit")?,
                remaining: figure("remaining")?,
                coarse: figure("rounded")?.unwrap_or(1),
                reset_in: length("reset_in")?,
                full_in: length("full_in")?,
            });
        }
        Ok(Observed { lease, readings })
    }

    fn recovered(
        &mut self,
        session: u64,
        fields: &Map<String, Value>,
    ) -> Result<Recovered, String> {
        if let Some(commit) = fields.get("commit") {
            return Ok(Recovered::Commit { lease: self.key(commit)? });
        }
        if let Some(throttled) = fields.get("throttled") {
            return Ok(Recovered::Throttled(self.throttled(object(throttled)?)?));
        }
        let reserve = fields
            .get("reserve")
            .ok_or("`recovered` must have a reserve, a commit or a throttled")?;
        let reserve = Box::new(self.reserve(object(reserve)?)?);
        let label = fields
            .get("lease")
            .and_then(Value::as_str)
            .ok_or("`recovered` must name its `lease`")?;
        if !self.labels.contains_key(label) {
            // The lost reserve is not in the trace. It had the session's next number.
            let key = self.next_key(session);
            self.name(label.to_owned(), key, Some((*reserve).clone()));
        }
        let lease = self.labelled(&label.into())?.key;
        Ok(Recovered::Reserve { lease, reserve })
    }

    fn session(&mut self, name: &str) -> u64 {
        let next = self.sessions.len() as u64 + 1;
        let session = *self.sessions.entry(name.to_owned()).or_insert(next);
        self.names.sessions.insert(session, name.to_owned());
        session
    }

    fn next_key(&mut self, session: u64) -> Key {
        let number = self.numbers.entry(session).or_default();
        *number += 1;
        Key { session, number: *number }
    }

    fn name(&mut self, label: String, key: Key, reserve: Option<Reserve>) {
        self.names.labels.insert(key, label.clone());
        self.labels.insert(label, Labelled { key, reserve });
    }

    fn labelled(&self, value: &Value) -> Result<&Labelled, String> {
        let label = value.as_str().unwrap_or_default();
        self.labels.get(label).ok_or_else(|| format!("unknown label {value}"))
    }

    fn key(&self, value: &Value) -> Result<Key, String> {
        self.labelled(value).map(|labelled| labelled.key)
    }
}

const HEAD: [&str; 4] = ["story", "why", "slack", "claim"];

const CLAIM: Span = Span::secs(2);

/// The default timeout of a reserve: 5 min, as everywhere.
const PATIENCE: Span = Span::secs(300);

/// Parses amounts by unit. Prices are in millionths of a dollar per million units.
pub(super) fn amounts(value: &Value) -> Result<Amounts, String> {
    let each = object(value)?.iter().map(|(unit, figure)| Ok((named_unit(unit)?, amount(figure)?)));
    let each: Result<Vec<_>, String> = each.collect();
    Amounts::new(each?).map_err(|error| error.to_string())
}

/// Parses `tokens` or `tokens/min`.
fn hit(value: &Value) -> Result<Hit, String> {
    let text = value.as_str().unwrap_or_default();
    let (unit, period) = text.split_once('/').map_or((text, None), |(u, p)| (u, Some(p)));
    let period = period.map(|period| rate(&format!("1/{period}"))).transpose()?;
    Ok(Hit { unit: named_unit(unit)?, period: period.map(|(_, period)| period) })
}

/// Parses a pause: its length, or `for` and `as`.
fn pause(value: &Value) -> Result<Action, String> {
    match value.get("for") {
        Some(length) => {
            let by = value.get("as").map(agent).transpose()?;
            Ok(Action::Pause { length: time(length)?, by })
        }
        None => Ok(Action::Pause { length: time(value)?, by: None }),
    }
}

fn agent(value: &Value) -> Result<AgentName, String> {
    AgentName::new(value.as_str().unwrap_or_default())
        .ok_or_else(|| format!("{value} is not an agent name"))
}

fn text(value: &Value) -> Result<Text, String> {
    Text::new(value.as_str().unwrap_or_default())
        .ok_or_else(|| format!("{value} is not a text of 1 to 128 bytes"))
}

fn named_unit(key: &str) -> Result<Unit, String> {
    Unit::named(key).ok_or_else(|| format!("`{key}` is not a unit"))
}

/// Parses announced resets: per unit, the time since the last one and until the next.
fn calendar(fields: &Map<String, Value>) -> Result<Vec<CalendarReset>, String> {
    let each = |(unit, value): (&String, &Value)| {
        let length = |key: &str| value.get(key).map_or(Err(format!("no `{key}`")), time);
        let limit = LimitId::Window(named_unit(unit)?, Span::secs(86_400));
        Ok(CalendarReset { limit, since: length("since")?, left: length("left")? })
    };
    fields.iter().map(each).collect()
}
