//! Reads the body of a call once, for its model, its size and its options.
//!
//! Nothing is copied: a body of a megabyte is walked, not built as a tree. A body that is not JSON
//! is forwarded as it is; the provider answers what is wrong with it.

use std::collections::BTreeMap;
use std::fmt;

use axum::http::Method;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Value, json};
use standpipe::{Request, Unit};

use super::format::Format;
use super::identify::Identified;

/// A longer string without spaces is an image or a file, whose size tells nothing about tokens.
const LONGEST_WORD: usize = 1_024;

/// What a call states about itself.
#[derive(Default, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) model: Option<String>,
    /// The client wants a stream.
    pub(crate) stream: bool,
    /// Bytes of text, images and files not counted.
    pub(crate) text_bytes: u64,
    pub(crate) max_output: Option<u64>,
    /// The user on whose behalf the client calls, as OpenAI has it.
    pub(crate) user: Option<String>,
    /// A query in GraphQL that changes nothing.
    pub(crate) reads: bool,
    /// `stream_options`, if there are any.
    pub(crate) stream_options: Option<Value>,
}

/// What a call does to the provider's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Nothing, so it may be sent again although its answer was lost.
    Reads,
    /// It creates or changes content.
    Creates,
    Deletes,
}

impl Effect {
    pub(crate) fn of(format: Format, method: &Method, facts: &Facts) -> Self {
        let reads = match format {
            Format::GitHubGraphQl => facts.reads,
            _ => method.is_safe(),
        };
        match reads {
            true => Self::Reads,
            false if method == Method::DELETE => Self::Deletes,
            false => Self::Creates,
        }
    }
}

impl Facts {
    /// Reads the body of a call.
    pub(crate) fn of(format: Format, path: &str, body: &[u8]) -> Self {
        let mut facts = Self::default();
        if format.is_model() {
            let mut json = serde_json::Deserializer::from_slice(body);
            let read = (&mut json).deserialize_map(TopLevel(&mut facts)).and_then(|()| json.end());
            if read.is_err() {
                facts = Self { text_bytes: body.len() as u64, ..Self::default() };
            }
        }
        if format == Format::GitHubGraphQl {
            facts.reads = serde_json::from_slice::<Value>(body).is_ok_and(|body| is_query(&body));
        }
        if format == Format::OpenAiMedia && facts.model.is_none() {
            facts.model = model_in_form(body);
        }
        if let Some(model) = format.model_in_path(path) {
            facts.model = Some(model.to_owned());
        }
        facts.stream |= format.streams_by_path(path);
        facts
    }

    /// Whether the provider states no usage in the stream unless it is asked to.
    pub(crate) fn lacks_usage(&self, format: Format) -> bool {
        let asked = self.stream_options.as_ref().and_then(|options| options.get("include_usage"));
        format == Format::OpenAiChat && self.stream && asked != Some(&Value::Bool(true))
    }

    /// The body with a request for the usage at the end of its stream, which this format leaves
    /// out otherwise.
    pub(crate) fn with_usage(&self, body: &[u8]) -> Vec<u8> {
        let Some(end) = body.iter().rposition(|byte| *byte == b'}') else { return body.to_vec() };
        if self.stream_options.is_none() {
            // The object has other members: at least `stream`.
            let asks = br#","stream_options":{"include_usage":true}"#;
            return [&body[..end], asks, &body[end..]].concat();
        }
        let Ok(mut value) = serde_json::from_slice::<Value>(body) else { return body.to_vec() };
        match &mut value["stream_options"] {
            Value::Object(options) => drop(options.insert("include_usage".into(), true.into())),
            other => *other = json!({"include_usage": true}),
        }
        serde_json::to_vec(&value).unwrap_or_else(|_| body.to_vec())
    }

    /// The request to the ledger. `input` is what will count of a prompt that is mostly cached;
    /// without it the ledger estimates the input by its size.
    pub(crate) fn request(
        &self,
        identified: &Identified,
        format: Format,
        effect: Effect,
        input: Option<u64>,
    ) -> Request {
        let mut request = Request::by(identified.agent.as_str());
        if let Some(priority) = identified.priority {
            request = request.priority(priority);
        }
        if let Some(task) = &identified.task {
            request = request.task(task.as_str());
        }
        let cost = identified.configured.as_ref().map(|calls| &calls.cost);
        self.complete(request, format, effect, input, cost)
    }

    /// Adds to a request what the call states about its size and model, and the cost that the
    /// configuration states; see [`Facts::request`].
    pub(crate) fn complete(
        &self,
        mut request: Request,
        format: Format,
        effect: Effect,
        input: Option<u64>,
        cost: Option<&BTreeMap<Unit, u64>>,
    ) -> Request {
        let is_stated =
            |unit: &str| cost.is_some_and(|cost| cost.keys().any(|own| own.name() == unit));
        let add = |request: Request, units: &[(&str, u64)]| {
            let missing = units.iter().filter(|(unit, _)| !is_stated(unit));
            missing.fold(request, |request, (unit, amount)| request.unit(*unit, *amount))
        };
        for (unit, amount) in cost.into_iter().flatten() {
            request = request.unit(unit.name(), *amount);
        }
        if let Some(model) = &self.model {
            request = request.model(model.chars().take(128).collect::<String>());
        }
        match format {
            Format::GitHub | Format::GitHubGraphQl => {
                // GitHub counts five points for a call that changes something, one for others.
                let points = if effect == Effect::Reads { 1 } else { 5 };
                let content = u64::from(effect == Effect::Creates);
                add(request, &[("points", points), ("content", content)])
            }
            // Providers count the tokens of these calls in units of their own, if at all.
            _ if format.is_one_request() => {
                add(request, &[("input_tokens", 0), ("output_tokens", 0), ("tokens", 0)])
            }
            _ if format.is_model() => {
                let request = match input {
                    Some(tokens) => request.at_most("input_tokens", tokens),
                    None => request.bytes(self.text_bytes),
                };
                match self.max_output {
                    Some(tokens) => request.max_output_tokens(tokens),
                    None => request,
                }
            }
            _ => request,
        }
    }
}

/// How much of a form is searched for its model, from the start and from the end.
const FORM_SEARCH: usize = 64 * 1_024;

/// The field `model` of a form (`multipart/form-data`), which is forwarded as it is.
fn model_in_form(body: &[u8]) -> Option<String> {
    let find = |text: &[u8], wanted: &[u8]| {
        text.windows(wanted.len()).position(|found| found == wanted).map(|at| at + wanted.len())
    };
    let search = |text: &[u8]| {
        let field = &text[find(text, b"name=\"model\"")?..];
        let value = &field[find(field, b"\r\n\r\n")?..];
        let end = find(value, b"\r\n")? - 2;
        std::str::from_utf8(&value[..end]).ok().map(|model| model.trim().to_owned())
    };
    let end = body.len().saturating_sub(FORM_SEARCH);
    let found = search(&body[..body.len().min(FORM_SEARCH)]).or_else(|| search(&body[end..]));
    found.filter(|model| !model.is_empty() && model.len() <= 128)
}

/// Whether a call in GraphQL only reads. A document with several operations may change something.
fn is_query(body: &Value) -> bool {
    body["query"].as_str().is_some_and(|text| !text.contains("mutation"))
}

/// Visits the members of the body.
struct TopLevel<'a>(&'a mut Facts);

impl<'de> Visitor<'de> for TopLevel<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let facts = self.0;
        while let Some(key) = map.next_key::<std::borrow::Cow<'de, str>>()? {
            match &*key {
                "model" => facts.model = map.next_value::<Value>()?.as_str().map(str::to_owned),
                "stream" => facts.stream = map.next_value::<Value>()? == Value::Bool(true),
                "max_tokens" | "max_completion_tokens" | "max_output_tokens" => {
                    facts.max_output = map.next_value::<Value>()?.as_u64().or(facts.max_output);
                }
                "user" => facts.user = map.next_value::<Value>()?.as_str().map(str::to_owned),
                "stream_options" => facts.stream_options = Some(map.next_value()?),
                "generationConfig" => {
                    let config = map.next_value::<Value>()?;
                    facts.max_output = config.get("maxOutputTokens").and_then(Value::as_u64);
                }
                _ => map.next_value_seed(TextSize(&mut facts.text_bytes))?,
            }
        }
        Ok(())
    }
}

/// Counts the bytes of text in any value.
struct TextSize<'a>(&'a mut u64);

impl TextSize<'_> {
    fn add(self, text: &str) {
        let is_data = text.len() > LONGEST_WORD && !text.as_bytes()[..LONGEST_WORD].contains(&b' ');
        if !is_data {
            *self.0 += text.len() as u64;
        }
    }
}

impl<'de> DeserializeSeed<'de> for TextSize<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for TextSize<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        self.add(text);
        Ok(())
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element_seed(TextSize(self.0))?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while map.next_key::<IgnoredAny>()?.is_some() {
            map.next_value_seed(TextSize(self.0))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(format: Format, path: &str, body: &Value) -> Facts {
        Facts::of(format, path, body.to_string().as_bytes())
    }

    #[test]
    fn model_size_and_options_are_read() {
        let body = json!({
            "model": "claude-sonnet-4-5", "max_tokens": 800, "stream": true,
            "system": "be brief", "messages": [{"role": "user", "content": "hello there"}],
        });
        let found = facts(Format::Anthropic, "/v1/messages", &body);
        assert_eq!(found.model.as_deref(), Some("claude-sonnet-4-5"));
        assert_eq!((found.stream, found.max_output), (true, Some(800)));
        assert_eq!(found.text_bytes, "be brief".len() as u64 + 4 + "hello there".len() as u64);
    }

    #[test]
    fn images_do_not_count_as_text() {
        let image = "iVBORw0KGgo".repeat(10_000);
        let body = json!({"model": "m", "messages": [{"content": [
            {"type": "image", "source": {"type": "base64", "data": image}}]}]});
        assert!(facts(Format::Anthropic, "/v1/messages", &body).text_bytes < 100);
        let long = "a word and ".repeat(10_000);
        let body = json!({"messages": [{"content": long}]});
        assert_eq!(facts(Format::Anthropic, "/v1/messages", &body).text_bytes, 110_000);
    }

    #[test]
    fn usage_is_lacking_only_in_chat_streams_that_did_not_ask() {
        let chat = |options: Value| {
            let body = json!({"model": "gpt-4o", "stream": true, "stream_options": options});
            facts(Format::OpenAiChat, "/v1/chat/completions", &body).lacks_usage(Format::OpenAiChat)
        };
        assert!(chat(Value::Null) && chat(json!({"include_usage": false})));
        assert!(!chat(json!({"include_usage": true})));
        let body = json!({"model": "gpt-4o"});
        assert!(!facts(Format::OpenAiChat, "", &body).lacks_usage(Format::OpenAiChat));
    }

    #[test]
    fn a_graphql_call_reads_unless_it_may_change_something() {
        let reads =
            |text: &str| facts(Format::GitHubGraphQl, "/graphql", &json!({"query": text})).reads;
        assert!(reads("{viewer{login}}") && reads("query { viewer { login } }"));
        assert!(!reads("mutation { addStar(input: {}) { id } }"));
        assert!(!Facts::of(Format::GitHubGraphQl, "/graphql", b"oops").reads);
    }

    #[test]
    fn the_model_of_a_form_is_found() {
        let form = |filler: usize| {
            let mut body = b"--x\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\n".to_vec();
            body.resize(body.len() + filler, 0);
            body.extend(b"\r\n--x\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\n");
            body.extend(b"whisper-1\r\n--x--\r\n");
            Facts::of(Format::OpenAiMedia, "/v1/audio/transcriptions", &body).model
        };
        assert_eq!(form(10).as_deref(), Some("whisper-1"));
        assert_eq!(form(1_000_000).as_deref(), Some("whisper-1"));
        assert_eq!(model_in_form(b"name=\"model\""), None);
    }

    #[test]
    fn what_is_not_json_is_measured_as_a_whole() {
        for odd in [&b"not json"[..], b"[1,2]", b"{\"model\":\"x\"", b"{} trailing"] {
            let found = Facts::of(Format::OpenAi, "/v1/embeddings", odd);
            assert_eq!(found.text_bytes, odd.len() as u64);
            assert_eq!(found.model, None);
        }
        let typed = json!({"model": 7, "stream": "yes", "max_tokens": -1});
        let found = facts(Format::Anthropic, "", &typed);
        assert_eq!((found.model, found.stream, found.max_output), (None, false, None));
    }
}
