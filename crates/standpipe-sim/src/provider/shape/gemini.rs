//! As Google's Gemini API replies: no headers that tell anything, everything in the body.

use serde_json::{Value, json};

use super::super::call::{Unit, Used};
use super::super::refusal::{Refusal, Why};
use super::super::reply::Reply;
use super::Scene;
use crate::calendar::{DAY, SECOND, decimal};

pub(super) fn success(scene: &Scene, used: &Used) -> Reply {
    let prompt = used.input + used.cache_read + used.cache_written;
    let body = json!({
        "candidates": [{
            "content": {"parts": [{"text": "Done."}], "role": "model"},
            "finishReason": "STOP",
            "index": 0,
        }],
        "usageMetadata": {
            "promptTokenCount": prompt,
            "candidatesTokenCount": used.output,
            "cachedContentTokenCount": used.cache_read,
            "totalTokenCount": prompt + used.output,
        },
        "modelVersion": scene.options.model,
    });
    Reply::json(200, scene.headers(CONTENT), &body)
}

pub(super) fn refusal(scene: &Scene, refusal: &Refusal) -> Reply {
    let error = match refusal.why {
        Why::Quota { unit, amount, period, .. } => {
            quota(scene, unit, amount, period == DAY, refusal.wait)
        }
        Why::Overload => {
            let message = "The model is overloaded. Please try again later.";
            json!({"code": 503, "message": message, "status": "UNAVAILABLE"})
        }
        // No numbers to learn from: what is left is to back off.
        _ => {
            let message = "Resource has been exhausted (e.g. check quota).";
            json!({"code": 429, "message": message, "status": EXHAUSTED})
        }
    };
    let status = if matches!(refusal.why, Why::Overload) { 503 } else { 429 };
    Reply::json(status, scene.headers(CONTENT), &json!({"error": error}))
}

fn quota(scene: &Scene, unit: Unit, amount: u64, daily: bool, wait: Option<u64>) -> Value {
    let model = &scene.options.model;
    let metric = match unit {
        Unit::Requests => "generate_content_free_tier_requests",
        _ => "generate_content_free_tier_input_token_count",
    };
    let id = match (unit, daily) {
        (Unit::Requests, false) => "GenerateRequestsPerMinutePerProjectPerModel-FreeTier",
        (Unit::Requests, true) => "GenerateRequestsPerDayPerProjectPerModel-FreeTier",
        (_, false) => "GenerateContentInputTokensPerModelPerMinute-FreeTier",
        (_, true) => "GenerateContentInputTokensPerModelPerDay-FreeTier",
    };
    let metric = format!("generativelanguage.googleapis.com/{metric}");
    let again = wait.map(|wait| format!("\nPlease retry in {}s.", decimal(wait, 6)));
    let message = format!(
        "You exceeded your current quota, please check your plan and billing details. For more \
         information on this error, head to: https://ai.google.dev/gemini-api/docs/rate-limits. \n\
         * Quota exceeded for metric: {metric}, limit: {amount}, model: {model}{}",
        again.unwrap_or_default(),
    );
    let mut details = vec![
        json!({
            "@type": "type.googleapis.com/google.rpc.QuotaFailure",
            "violations": [{
                "quotaMetric": metric,
                "quotaId": id,
                "quotaDimensions": {"location": "global", "model": model},
                "quotaValue": amount.to_string(),
            }],
        }),
        json!({
            "@type": "type.googleapis.com/google.rpc.Help",
            "links": [{
                "description": "Learn more about Gemini API quotas",
                "url": "https://ai.google.dev/gemini-api/docs/rate-limits",
            }],
        }),
    ];
    // Cut to whole seconds, as the real one is, though the message is exact.
    details.extend(wait.map(|wait| {
        let delay = format!("{}s", wait / SECOND);
        json!({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay})
    }));
    json!({"code": 429, "message": message, "status": EXHAUSTED, "details": details})
}

const CONTENT: &str = "application/json; charset=UTF-8";
const EXHAUSTED: &str = "RESOURCE_EXHAUSTED";
