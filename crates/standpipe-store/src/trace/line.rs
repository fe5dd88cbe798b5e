//! Reading a story: from lines of JSON to events with their keys, and what must come of them.
//!
//! Labels and sessions are resolved here, so that the runner only has to run.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use standpipe_core::{
    Action, AgentName, Amounts, Commit, Event, Hit, Instant, Key, Observed, Owner, Reading,
    Recovered, Reserve, Span, Text, ThrottleKind, Throttled, Unit,
};

use super::Mistake;
use super::config::{self, Defaults, amount, object, time};
use super::show::Names;
use super::text::{instant, rate};

/// A story about a pool.
#[derive(Clone, Debug)]
pub struct Story {
    /// The name of its file.
    pub name: String,
    /// What it is about, in one sentence.
    pub story: String,
    /// What it guards.
    pub why: String,
    pub(super) steps: Vec<Step>,
    pub(super) names: Names,
}

/// Something that happens in a story.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) line: usize,
    pub(super) at: Instant,
    pub(super) what: What,
    /// What the line states of the outcome.
    pub(super) expected: Map<String, Value>,
}

/// What happens.
#[derive(Clone, Debug)]
pub(super) enum What {
    /// An event.
    Apply(Event),
    /// A look that changes nothing.
    Peek(Reserve),
    /// The ledger is written down and read back.
    Snapshot,
}

/// What a line can say besides what happens: about the event, and about its outcome.
const ABOUT: [&str; 6] = ["at", "session", "label", "repeat", "every", "note"];
const OUTCOME: [&str; 7] = ["admit", "wait", "refuse", "answer", "wake", "notices", "next"];

impl Story {
    /// Reads a story.
    ///
    /// # Errors
    /// The first line that cannot be understood.
    pub fn read(name: &str, text: &str) -> Result<Self, Mistake> {
        let mistake =
            |line: usize, what: String| Mistake { file: name.to_owned(), line: line + 1, what };
        let parse = |line: usize, text: &str| match serde_json::from_str(text) {
            Ok(Value::Object(said)) => Ok(said),
            Ok(_) => Err(mistake(line, "not an object".to_owned())),
            Err(error) => Err(mistake(line, format!("not JSON: {error}"))),
        };
        let mut lines = text.lines().enumerate().filter(|(_, text)| !text.trim().is_empty());
        let Some((at, first)) = lines.next() else {
            return Err(mistake(0, "the file is empty; the first line tells the story".to_owned()));
        };
        let head = parse(at, first)?;
        let mut reader = Reader::new(&head).map_err(|what| mistake(at, what))?;
        let word = |word: &str| match head.get(word).and_then(Value::as_str) {
            Some(text) => Ok(text.to_owned()),
            None => Err(mistake(at, format!("the first line must say `{word}`"))),
        };
        let (story, why) = (word("story")?, word("why")?);
        let mut steps = Vec::new();
        for (line, text) in lines {
            let said = parse(line, text)?;
            steps.extend(reader.line(line + 1, &said).map_err(|what| mistake(line, what))?);
        }
        Ok(Self { name: name.to_owned(), story, why, steps, names: reader.names })
    }
}

/// What was said so far.
struct Reader {
    defaults: Defaults,
    clock: Instant,
    sessions: BTreeMap<String, u64>,
    numbers: BTreeMap<u64, u64>,
    labels: BTreeMap<String, Labelled>,
    /// By session.
    last: BTreeMap<u64, Event>,
    names: Names,
}

#[derive(Clone)]
struct Labelled {
    key: Key,
    reserve: Option<Reserve>,
}

impl Reader {
    fn new(head: &Map<String, Value>) -> Result<Self, String> {
        let or = |word: &str, default| head.get(word).map_or(Ok(default), time);
        let defaults = Defaults { slack: or("slack", Span::ZERO)?, claim: or("claim", CLAIM)? };
        if let Some(odd) = head.keys().find(|word| !HEAD.contains(&word.as_str())) {
            return Err(format!("the first line cannot say `{odd}`"));
        }
        Ok(Self {
            defaults,
            clock: Instant(0),
            sessions: BTreeMap::new(),
            numbers: BTreeMap::new(),
            labels: BTreeMap::new(),
            last: BTreeMap::new(),
            names: Names::default(),
        })
    }

    fn line(&mut self, line: usize, said: &Map<String, Value>) -> Result<Vec<Step>, String> {
        let is = |words: &[&str], word: &String| words.contains(&word.as_str());
        let mut happens = said.iter().filter(|(word, _)| !is(&ABOUT, word) && !is(&OUTCOME, word));
        let (Some((word, value)), None) = (happens.next(), happens.next()) else {
            return Err("a line says one thing that happens, such as `reserve`".to_owned());
        };
        let expected = said.iter().filter(|(word, _)| is(&OUTCOME, word));
        let expected: Map<_, _> =
            expected.map(|(word, value)| (word.clone(), value.clone())).collect();
        let mut at = instant(said.get("at").and_then(Value::as_str).unwrap_or_default())?;
        let every = said.get("every").map_or(Ok(Span::ZERO), time)?;
        let times = said.get("repeat").map_or(Ok(1), amount)?;
        let label = said.get("label").and_then(Value::as_str);
        let session = self.session(said.get("session").and_then(Value::as_str).unwrap_or("one"));
        let mut steps = Vec::new();
        for time in 1..=times {
            if at < self.clock {
                return Err("time goes back; lines are in the order of time".to_owned());
            }
            self.clock = at;
            let label = label.map(|label| match times {
                1 => label.to_owned(),
                _ => format!("{label}{time}"),
            });
            let what = self.what(session, word, value, label)?;
            steps.push(Step { line, at, what, expected: expected.clone() });
            at = at + every;
        }
        Ok(steps)
    }

    fn what(
        &mut self,
        session: u64,
        word: &str,
        value: &Value,
        label: Option<String>,
    ) -> Result<What, String> {
        match word {
            "peek" => return Ok(What::Peek(self.reserve(object(value)?)?)),
            "snapshot" => return Ok(What::Snapshot),
            "again" => {
                let last = self.last.get(&session).cloned();
                return last.map(What::Apply).ok_or("nothing to send again".to_owned());
            }
            _ => {}
        }
        let action = self.action(session, word, value)?;
        let event = Event { key: self.next_key(session), action };
        if let Some(label) = label {
            let reserve = match &event.action {
                Action::Reserve(reserve) => Some((**reserve).clone()),
                _ => None,
            };
            self.name(label, event.key, reserve);
        }
        self.last.insert(session, event.clone());
        Ok(What::Apply(event))
    }

    fn action(&mut self, session: u64, word: &str, value: &Value) -> Result<Action, String> {
        Ok(match word {
            "reserve" => Action::Reserve(Box::new(self.reserve(object(value)?)?)),
            "claim" => {
                let said = Map::from_iter([("ticket".to_owned(), value.clone())]);
                Action::Reserve(Box::new(self.reserve(&said)?))
            }
            "commit" => Action::Commit(self.commit(object(value)?)?),
            "cancel" => Action::Cancel { lease: self.key(value)? },
            "throttled" => Action::Throttled(self.throttled(object(value)?)?),
            "observed" => Action::Observed(self.observed(object(value)?)?),
            "heartbeat" => Action::Heartbeat {
                lease: value.get("lease").map(|lease| self.key(lease)).transpose()?,
                ttl: value.get("ttl").map(time).transpose()?,
            },
            "session_ended" => {
                let name = value.as_str().ok_or("`session_ended` names a session")?;
                Action::SessionEnded { session: self.session(name) }
            }
            "owner_ended" => Action::OwnerEnded { lease: self.key(value)? },
            "configure" => {
                Action::Configure(Box::new(config::configure(object(value)?, self.defaults)?))
            }
            "pause" => Action::Pause { length: time(value)? },
            "resume" => Action::Resume,
            "recovered" => Action::Recovered(self.recovered(session, object(value)?)?),
            "forgotten" => Action::Forgotten,
            _ => return Err(format!("nothing that happens is called `{word}`")),
        })
    }

    /// A reserve. With a ticket, what is not said is as it was when the ticket was made.
    fn reserve(&self, said: &Map<String, Value>) -> Result<Reserve, String> {
        let ticket = said.get("ticket").map(|ticket| self.labelled(ticket)).transpose()?;
        let ticketed = ticket.and_then(|labelled| labelled.reserve.clone());
        let mut reserve = match (ticketed, said.get("as")) {
            (Some(reserve), None) => reserve,
            (_, Some(name)) => {
                let mut reserve = Reserve::new(agent(name)?, Amounts::default());
                reserve.patience = PATIENCE;
                reserve
            }
            (None, None) => return Err("a reserve says who asks: `as`".to_owned()),
        };
        reserve.ticket = ticket.map(|labelled| labelled.key);
        let mut cost = Vec::new();
        for (word, value) in said {
            match word.as_str() {
                "as" | "ticket" => {}
                "priority" => reserve.priority = Some(config::priority(value)?),
                "timeout" => reserve.patience = time(value)?,
                "ttl" => reserve.ttl = Some(time(value)?),
                "id" => reserve.id = Some(words(value)?),
                "model" => reserve.model = Some(words(value)?),
                "task" => reserve.task = Some(words(value)?),
                "owner" => {
                    let pid = u32::try_from(amount(value)?).map_err(|_| "no process id")?;
                    reserve.owner = Some(Owner { pid, started: 0 });
                }
                "retry_of" => reserve.retry_of = Some(self.key(value)?),
                "hold" => reserve.hold = Some(time(value)?),
                "bytes" => reserve.bytes = Some(amount(value)?),
                "at_most" => reserve.at_most = amounts(value)?,
                unit => cost.push((named_unit(unit)?, amount(value)?)),
            }
        }
        if !cost.is_empty() || reserve.cost == Amounts::default() {
            reserve.cost = Amounts::cost(cost).map_err(|error| error.to_string())?;
        }
        Ok(reserve)
    }

    fn commit(&self, said: &Map<String, Value>) -> Result<Commit, String> {
        let lease = self.key(said.get("lease").ok_or("a commit names its `lease`")?)?;
        let (mut progress, mut refused, mut used) = (false, false, Vec::new());
        for (word, value) in said {
            match word.as_str() {
                "lease" => {}
                "progress" => progress = value == true,
                "refused" => refused = value == true,
                unit => used.push((named_unit(unit)?, amount(value)?)),
            }
        }
        let used = Amounts::new(used).map_err(|error| error.to_string())?;
        Ok(Commit { lease, used, progress, refused })
    }

    fn throttled(&self, said: &Map<String, Value>) -> Result<Throttled, String> {
        let kind = match said.get("kind").and_then(Value::as_str) {
            Some("quota") | None => ThrottleKind::Quota,
            Some("concurrency") => ThrottleKind::Concurrency,
            Some("slow_down") => ThrottleKind::SlowDown,
            Some("overload") => ThrottleKind::Overload,
            Some("terminal") => ThrottleKind::Terminal,
            Some(odd) => return Err(format!("no refusal is of kind `{odd}`")),
        };
        Ok(Throttled {
            lease: said.get("lease").map(|lease| self.key(lease)).transpose()?,
            agent: said.get("as").map(agent).transpose()?,
            kind,
            retry_after: said.get("retry_after").map(time).transpose()?,
            hit: said.get("hit").map(hit).transpose()?,
        })
    }

    fn observed(&self, said: &Map<String, Value>) -> Result<Observed, String> {
        let lease = said.get("lease").map(|lease| self.key(lease)).transpose()?;
        let mut readings = Vec::new();
        for (word, value) in said.iter().filter(|(word, _)| *word != "lease") {
            let figure = |word: &str| value.get(word).map(amount).transpose();
            let length = |word: &str| value.get(word).map(time).transpose();
            readings.push(Reading {
                unit: named_unit(word)?,
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

    fn recovered(&mut self, session: u64, said: &Map<String, Value>) -> Result<Recovered, String> {
        if let Some(commit) = said.get("commit") {
            return Ok(Recovered::Commit { lease: self.key(commit)? });
        }
        if let Some(throttled) = said.get("throttled") {
            return Ok(Recovered::Throttled(self.throttled(object(throttled)?)?));
        }
        let reserve =
            said.get("reserve").ok_or("`recovered` a reserve, a commit or a throttled?")?;
        let reserve = Box::new(self.reserve(object(reserve)?)?);
        let label = said.get("lease").and_then(Value::as_str).ok_or("it names its `lease`")?;
        if !self.labels.contains_key(label) {
            // The store has forgotten it: it had the session's next number then.
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
        self.labels.get(label).ok_or_else(|| format!("nothing was labelled {value}"))
    }

    fn key(&self, value: &Value) -> Result<Key, String> {
        self.labelled(value).map(|labelled| labelled.key)
    }
}

const HEAD: [&str; 4] = ["story", "why", "slack", "claim"];

const CLAIM: Span = Span::secs(2);

/// How long a reserve waits that does not say how long: 5 min, as everywhere.
const PATIENCE: Span = Span::secs(300);

/// `tokens`, or `tokens/min`.
/// Figures by unit; of prices, millionths of a dollar per million.
pub(super) fn amounts(value: &Value) -> Result<Amounts, String> {
    let each = object(value)?.iter().map(|(unit, figure)| Ok((named_unit(unit)?, amount(figure)?)));
    let each: Result<Vec<_>, String> = each.collect();
    Amounts::new(each?).map_err(|error| error.to_string())
}

fn hit(value: &Value) -> Result<Hit, String> {
    let text = value.as_str().unwrap_or_default();
    let (unit, period) = text.split_once('/').map_or((text, None), |(u, p)| (u, Some(p)));
    let period = period.map(|period| rate(&format!("1/{period}"))).transpose()?;
    Ok(Hit { unit: named_unit(unit)?, period: period.map(|(_, period)| period) })
}

fn agent(value: &Value) -> Result<AgentName, String> {
    AgentName::new(value.as_str().unwrap_or_default())
        .ok_or_else(|| format!("{value} is no agent's name"))
}

fn words(value: &Value) -> Result<Text, String> {
    Text::new(value.as_str().unwrap_or_default())
        .ok_or_else(|| format!("{value} is no text of 1 to 128 bytes"))
}

fn named_unit(word: &str) -> Result<Unit, String> {
    Unit::named(word).ok_or_else(|| format!("`{word}` is no unit"))
}
