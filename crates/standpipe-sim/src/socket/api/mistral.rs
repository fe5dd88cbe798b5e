//! Mistral's API: that of OpenAI, except that a stream always states its usage, in its last chunk,
//! and that members which Mistral does not know are an error.

use serde_json::{Value, json};

use super::openai::{self, StreamUsage};
use super::{Answer, with_body};
use crate::provider::Reply;
use crate::socket::http::Request;

pub(super) fn answer(request: &Request, body: &Value, mut reply: Reply) -> Answer {
    let options = &body["stream_options"];
    if !options.is_null() {
        reply.status = 422;
        return Answer::Whole(with_body(reply, &forbidden(options)));
    }
    openai::answer_with(request, body, reply, StreamUsage::InLastChunk)
}

fn forbidden(options: &Value) -> Value {
    let detail = json!([{"type": "extra_forbidden", "loc": ["body", "stream_options"],
                         "msg": "Extra inputs are not permitted", "input": options}]);
    json!({"object": "error", "message": {"detail": detail}, "type": "invalid_request_error",
           "param": null, "code": null})
}
