//! Streams of every provider: usage, errors after the 200, and that chunk sizes do not matter.

use std::time::Duration;

use standpipe_dialect::{Dialect, Kind, StreamReader, Usage};

use crate::support::streams::{
    ANTHROPIC, ANTHROPIC_OVERLOADED, CHAT, GEMINI_LIST, GEMINI_SSE, RESPONSES, RESPONSES_FAILED,
    bedrock, frame,
};

fn whole(dialect: Dialect, bytes: &[u8]) -> StreamReader {
    let mut reader = StreamReader::new(dialect);
    reader.feed(bytes);
    reader
}

#[test]
fn anthropic_tells_the_input_first_and_the_output_last() {
    let first = ANTHROPIC.find("event: content_block_start").unwrap();
    let reader = whole(Dialect::Anthropic, &ANTHROPIC.as_bytes()[..first]);
    assert!(reader.is_input_known() && !reader.finished());
    assert_eq!(reader.usage().charged_input(Dialect::Anthropic), Some(125));
    let reader = whole(Dialect::Anthropic, ANTHROPIC.as_bytes());
    assert!(reader.finished() && reader.refused().is_none());
    let usage = reader.usage();
    assert_eq!((usage.input_tokens, usage.output_tokens), (Some(25), Some(15)));
    assert_eq!((usage.cache_write_tokens, usage.cache_read_tokens), (Some(100), Some(3_000)));
    assert_eq!(reader.text_bytes(), "Hello!".len() as u64 + "{\"a\":".len() as u64);
}

#[test]
fn an_error_after_the_200_is_seen() {
    let reader = whole(Dialect::Anthropic, ANTHROPIC_OVERLOADED.as_bytes());
    let refused = reader.refused().unwrap();
    assert_eq!((refused.kind, refused.message.as_str()), (Kind::Overload, "Overloaded"));
    let reader = whole(Dialect::OpenAi, RESPONSES_FAILED.as_bytes());
    let refused = reader.refused().unwrap();
    assert_eq!((refused.kind, refused.wait), (Kind::Quota, Some(Duration::from_millis(1_500))));
    let error =
        "data: {\"type\":\"error\",\"code\":\"slow_down\",\"message\":\"m\",\"param\":null}\n\n";
    let reader = whole(Dialect::OpenAi, error.as_bytes());
    assert_eq!(reader.refused().map(|refused| refused.kind), Some(Kind::SlowDown));
    let error = "data: {\"error\":{\"code\":\"server_error\",\"message\":\"m\"}}\n\n";
    assert_eq!(whole(Dialect::OpenAi, error.as_bytes()).refused(), None);
    let error = r#"[{"error":{"code":429,"message":"m","status":"RESOURCE_EXHAUSTED"}}]"#;
    let reader = whole(Dialect::Gemini, error.as_bytes());
    assert_eq!(reader.refused().map(|refused| refused.kind), Some(Kind::Quota));
    let error = format!("data: {error}\n\n");
    let reader = whole(Dialect::Gemini, error.as_bytes());
    assert_eq!(reader.refused().map(|refused| refused.kind), Some(Kind::Quota));
}

#[test]
fn openai_chat_tells_usage_in_an_extra_chunk() {
    let reader = whole(Dialect::OpenAi, CHAT.as_bytes());
    assert!(reader.finished() && reader.is_input_known());
    let usage = reader.usage();
    assert_eq!((usage.input_tokens, usage.output_tokens), (Some(9), Some(12)));
    assert_eq!(reader.text_bytes(), 7 + 2);
    let died = CHAT.find("data: {\"id\":\"c\",\"choices\":[],").unwrap();
    let reader = whole(Dialect::OpenAi, &CHAT.as_bytes()[..died]);
    assert!(!reader.finished() && !reader.is_input_known());
    assert_eq!((reader.usage(), reader.text_bytes()), (&Usage::default(), 9));
}

#[test]
fn openai_responses_tell_usage_at_the_end() {
    let reader = whole(Dialect::OpenAi, RESPONSES.as_bytes());
    assert!(reader.finished());
    assert_eq!(reader.usage().total_tokens, Some(48));
    assert_eq!(reader.text_bytes(), 11);
}

#[test]
fn gemini_streams_events_or_a_list() {
    for sample in [GEMINI_SSE, GEMINI_LIST] {
        let reader = whole(Dialect::Gemini, sample.as_bytes());
        assert!(reader.finished());
        let usage = reader.usage();
        assert_eq!((usage.input_tokens, usage.output_tokens), (Some(4), Some(9)));
        assert_eq!(reader.text_bytes(), 10);
    }
}

#[test]
fn bedrock_streams_frames() {
    let reader = whole(Dialect::Bedrock, &bedrock());
    assert!(reader.finished());
    assert_eq!(reader.usage().input_tokens, Some(30));
    assert_eq!(reader.text_bytes(), 5);
    let refused = reader.refused().unwrap();
    assert_eq!((refused.kind, refused.unit.as_deref()), (Kind::Quota, Some("tokens")));
}

#[test]
fn frames_that_cannot_be_and_frames_that_are_too_large_do_no_harm() {
    let broken = whole(Dialect::Bedrock, &[&[0, 0, 0, 5][..], &[9; 100]].concat());
    assert_eq!(broken.usage(), &Usage::default());
    let large = vec![b'x'; 2 * 1_024 * 1_024];
    let usage = frame("event", "metadata", br#"{"usage":{"inputTokens":3}}"#);
    let reader = whole(Dialect::Bedrock, &[frame("event", "chunk", &large), usage].concat());
    assert_eq!(reader.usage().input_tokens, Some(3));
}

#[test]
fn an_answer_that_came_whole_is_read_too() {
    let body = r#"{"object":"chat.completion","usage":{"prompt_tokens":1,"completion_tokens":2}}"#;
    let reader = whole(Dialect::OpenAi, body.as_bytes());
    assert!(reader.finished() && reader.is_input_known());
}

#[test]
fn pieces_make_no_difference() {
    let bedrock = bedrock();
    let texts = [ANTHROPIC, ANTHROPIC_OVERLOADED, CHAT, RESPONSES, RESPONSES_FAILED, GEMINI_SSE];
    let returns = texts.map(|text| text.replace('\n', "\r\n").into_bytes());
    let texts = texts.iter().chain([&GEMINI_LIST]).map(|text| text.as_bytes());
    let all = texts.chain(returns.iter().map(Vec::as_slice)).chain([bedrock.as_slice()]);
    for sample in all {
        for dialect in Dialect::ALL {
            let expected = format!("{:?}", summary(&whole(dialect, sample)));
            let mut bytes = StreamReader::new(dialect);
            sample.iter().for_each(|byte| bytes.feed(&[*byte]));
            assert_eq!(format!("{:?}", summary(&bytes)), expected);
        }
        let dialect = Dialect::Anthropic;
        let expected = format!("{:?}", summary(&whole(dialect, sample)));
        for at in 0..=sample.len() {
            let mut halves = StreamReader::new(dialect);
            halves.feed(&sample[..at]);
            halves.feed(&sample[at..]);
            assert_eq!(format!("{:?}", summary(&halves)), expected, "split at {at}");
        }
    }
}

fn summary(reader: &StreamReader) -> impl std::fmt::Debug {
    (*reader.usage(), reader.refused().cloned(), reader.finished(), reader.text_bytes())
}
