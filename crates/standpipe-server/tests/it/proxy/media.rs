//! Images, audio, and answers that are too large to be kept.

use super::*;

const POOL: &str = "[pool.\"openai/whisper-1\"]\nmodels = [\"whisper-1\"]\nrequests = \"1000/h\"\n\
    tokens = \"1000/h\"\n[pool.\"openai/embed\"]\nmodels = [\"text-embedding-*\"]\n\
    input_tokens = \"100k/h\"\n";

/// A form is forwarded byte for byte, and its answer may be sound.
#[test]
fn audio_passes_unchanged_and_counts_one_request() {
    let world = World::with(Shape::OpenAi, Vec::new(), POOL);
    let mut form = b"--x\r\ncontent-disposition: form-data; name=\"model\"\r\n\r\nwhisper-1\r\n\
        --x\r\ncontent-disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\n\r\n"
        .to_vec();
    form.extend((0..100_000_u32).map(|number| number.to_le_bytes()[0]));
    form.extend(b"\r\n--x--\r\n");
    let mut client = world.daemon.tcp();
    let headers = ["content-type: multipart/form-data; boundary=x", "x-echo: 1"];
    client.start("POST", "/as/blog/openai/v1/audio/transcriptions", &headers, &form);
    let answer = client.answer();
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), Some("multipart/form-data; boundary=x"));
    assert!(answer.body == form, "not a byte differs");
    assert_eq!(answer.header("x-standpipe-pool"), Some("openai/whisper-1"));
    let status = world.settled("openai/whisper-1");
    assert_eq!(limit(&status, "requests")["used"], 1);
    assert_eq!(limit(&status, "tokens")["used"], 0, "nothing is estimated: {status}");
}

#[test]
fn an_answer_of_several_megabytes_settles_by_its_usage() {
    let world = World::with(Shape::OpenAi, Vec::new(), POOL);
    let body = json!({"model": "text-embedding-3-large", "input": "x ".repeat(30_000)});
    let headers = ["x-body-bytes: 5000000", "x-used-input: 77", "x-used-output: 0"];
    let answer = world.post("/as/blog/openai/v1/embeddings", &headers, &body);
    assert_eq!((answer.status, answer.body.len() > 4_000_000), (200, true));
    let status = world.settled("openai/embed");
    assert_eq!(limit(&status, "input_tokens")["used"], 77, "{status}");
}
