//! As Mistral's API replies.
//!
//! Mistral publishes one text for every exceeded rate. Refusals that it does not document use it.

use serde_json::json;

use super::super::call::{Unit, Used};
use super::super::refusal::{Refusal, Why};
use super::super::reply::{Headers, Reply};
use super::{HEX, Scene, openai, seconds};

pub(super) fn success(scene: &Scene, used: &Used) -> Reply {
    let mut headers = opened(scene);
    let total = used.input + used.cache_read + used.cache_written + used.output;
    headers.push("x-ratelimit-tokens-query-cost", total);
    let mut completion = openai::completion(scene, used);
    completion["id"] = json!(scene.name(HEX, 32, 1));
    if let Some(message) = completion["choices"][0]["message"].as_object_mut() {
        message.remove("refusal");
    }
    let usage = &completion["usage"];
    completion["usage"] = json!({
        "prompt_tokens": usage["prompt_tokens"],
        "total_tokens": usage["total_tokens"],
        "completion_tokens": usage["completion_tokens"],
    });
    Reply::json(200, headers, &completion)
}

pub(super) fn refusal(scene: &Scene, refusal: &Refusal) -> Reply {
    let mut headers = opened(scene);
    let wait = refusal.wait.filter(|_| !matches!(refusal.why, Why::Spent { .. }));
    headers.push_some("retry-after", wait.map(seconds));
    let (message, kind, code) = match refusal.why {
        Why::Overload => (
            "Service tier capacity exceeded for this model.",
            "service_tier_capacity_exceeded",
            "3505",
        ),
        _ => ("Rate limit exceeded", "rate_limited", "1300"),
    };
    let body = json!({"object": "error", "message": message, "type": kind, "param": null,
                      "code": code, "raw_status_code": 429});
    Reply::json(429, headers, &body)
}

fn opened(scene: &Scene) -> Headers {
    let mut headers = scene.headers("application/json");
    for (name, unit) in [("req", Unit::Requests), ("tokens", Unit::Tokens)] {
        let Some(level) = scene.level(unit).filter(|_| !scene.options.silent) else { continue };
        headers.push(format!("x-ratelimit-limit-{name}-minute"), level.amount);
        headers.push(format!("x-ratelimit-remaining-{name}-minute"), level.left);
    }
    headers.push("mistral-correlation-id", scene.name(HEX, 32, 0));
    headers
}
