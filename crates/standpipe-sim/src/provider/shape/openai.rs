//! As OpenAI's API replies.

use serde_json::{Value, json};

use super::super::call::{Unit, Used};
use super::super::refusal::{Refusal, Why};
use super::super::reply::{Headers, Reply};
use super::super::rule::Cap;
use super::{ALPHANUMERIC, HEX, Scene, millis, period_name, seconds};
use crate::calendar::{DAY, MINUTE, go_duration};

pub(super) fn success(scene: &Scene, used: &Used, took: u64) -> Reply {
    let mut headers = scene.headers("application/json");
    about(&mut headers, scene, Some(took));
    levels(&mut headers, scene);
    Reply::json(200, headers, &completion(scene, used))
}

pub(super) fn refusal(scene: &Scene, refusal: &Refusal) -> Reply {
    let (status, error) = error_of(scene, refusal);
    let mut headers = scene.headers("application/json");
    about(&mut headers, scene, None);
    levels(&mut headers, scene);
    let wait = refusal.wait.filter(|_| !matches!(refusal.why, Why::Spent { .. }));
    headers.push_some("retry-after-ms", wait.map(millis));
    headers.push_some("retry-after", wait.map(seconds));
    Reply::json(status, headers, &json!({"error": error}))
}

/// The body of a 200; Azure's is the same.
pub(super) fn completion(scene: &Scene, used: &Used) -> Value {
    let input = used.input + used.cache_read + used.cache_written;
    json!({
        "id": format!("chatcmpl-{}", scene.name(ALPHANUMERIC, 29, 1)),
        "object": "chat.completion",
        "created": scene.wall.epoch(),
        "model": scene.options.model,
        "choices": [{
            "index": 0,
            "message": {"role": "assistant", "content": "Done.", "refusal": null},
            "logprobs": null,
            "finish_reason": "stop",
        }],
        "usage": {
            "prompt_tokens": input,
            "completion_tokens": used.output,
            "total_tokens": input + used.output,
            "prompt_tokens_details": {"cached_tokens": used.cache_read, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
        },
    })
}

fn about(headers: &mut Headers, scene: &Scene, took: Option<u64>) {
    headers.push("openai-version", "2020-10-01");
    headers.push("openai-organization", "org-x");
    headers.push_some("openai-processing-ms", took.map(millis));
    headers.push("x-request-id", format!("req_{}", scene.name(HEX, 32, 0)));
}

fn levels(headers: &mut Headers, scene: &Scene) {
    if scene.options.silent {
        return;
    }
    let found = [("requests", Unit::Requests), ("tokens", Unit::Tokens)];
    let found = found.map(|(name, unit)| (name, scene.level(unit)));
    let found = found.into_iter().filter_map(|(name, level)| Some((name, level?)));
    for (name, level) in found.clone() {
        headers.push(format!("x-ratelimit-limit-{name}"), level.amount);
    }
    for (name, level) in found.clone() {
        headers.push(format!("x-ratelimit-remaining-{name}"), level.left);
    }
    for (name, level) in found {
        headers.push(format!("x-ratelimit-reset-{name}"), go_duration(level.full_in));
    }
}

/// Status and error.
fn error_of(scene: &Scene, refusal: &Refusal) -> (u16, Value) {
    let model = &scene.options.model;
    match refusal.why {
        Why::Quota { .. } => (429, quota(scene, refusal)),
        Why::Concurrency { .. } | Why::Secondary => {
            let message = format!("Rate limit reached for {model}: too many concurrent requests.");
            (429, error(&message, "requests", "rate_limit_exceeded"))
        }
        Why::Acceleration => {
            let message = "Your request rate is growing too quickly. Please slow down and \
                           increase your traffic gradually.";
            (429, error(message, "rate_limit_error", "slow_down"))
        }
        Why::Overload => {
            let message = "The server is currently overloaded. Please try again later.";
            (503, error(message, "service_unavailable_error", "server_is_overloaded"))
        }
        Why::Spent { cap, .. } => (429, spent(cap)),
    }
}

fn quota(scene: &Scene, refusal: &Refusal) -> Value {
    let Why::Quota { unit, amount, period, used, requested } = refusal.why else {
        return Value::Null;
    };
    let kind = if unit == Unit::Requests { "requests" } else { "tokens" };
    let letter = if unit == Unit::Requests { 'R' } else { 'T' };
    let per = match period {
        MINUTE => format!("{kind} per min ({letter}PM)"),
        DAY => format!("{kind} per day ({letter}PD)"),
        other => format!("{kind} per {}", period_name(other)),
    };
    let wait = refusal.wait.map(|wait| format!(" Please try again in {}.", go_duration(wait)));
    let message = format!(
        "Rate limit reached for {} in organization org-x on {per}: Limit {amount}, Used {used}, \
         Requested {requested}.{} Visit https://platform.openai.com/account/rate-limits to learn \
         more.",
        scene.options.model,
        wait.unwrap_or_default(),
    );
    error(&message, kind, "rate_limit_exceeded")
}

pub(super) fn spent(cap: Cap) -> Value {
    let (code, message) = match cap {
        Cap::Enforced => (
            "insufficient_quota",
            "You exceeded your current quota, please check your plan and billing details. For \
             more information on this error, read the docs: \
             https://platform.openai.com/docs/guides/error-codes/api-errors.",
        ),
        Cap::Organization => (
            "organization_spend_limit_exceeded",
            "Your organization has reached its monthly spend limit.",
        ),
        Cap::Project => {
            ("project_spend_limit_exceeded", "Your project has reached its monthly spend limit.")
        }
        Cap::Credits => {
            ("credit_balance_exhausted", "Your credit balance is exhausted. Please add credits.")
        }
    };
    error(message, "insufficient_quota", code)
}

fn error(message: &str, kind: &str, code: &str) -> Value {
    json!({"message": message, "type": kind, "param": null, "code": code})
}
