//! As Anthropic's API replies.

use serde_json::json;

use super::super::call::{Unit, Used};
use super::super::refusal::{Level, Refusal, Why};
use super::super::reply::{Headers, Reply};
use super::super::rule::Cap;
use super::{ALPHANUMERIC, Scene, grouped, period_name, seconds};

pub(super) fn success(scene: &Scene, used: &Used) -> Reply {
    let body = json!({
        "id": format!("msg_{}", scene.name(ALPHANUMERIC, 24, 1)),
        "type": "message",
        "role": "assistant",
        "model": scene.options.model,
        "content": [{"type": "text", "text": "Done."}],
        "stop_reason": "end_turn",
        "stop_sequence": null,
        "usage": {
            "input_tokens": used.input,
            "cache_creation_input_tokens": used.cache_written,
            "cache_read_input_tokens": used.cache_read,
            "cache_creation": {
                "ephemeral_5m_input_tokens": used.cache_written,
                "ephemeral_1h_input_tokens": 0,
            },
            "output_tokens": used.output,
            "service_tier": "standard",
        },
    });
    Reply::json(200, headers(scene, None), &body)
}

pub(super) fn refusal(scene: &Scene, refusal: &Refusal) -> Reply {
    let (status, kind, message) = error_of(scene, &refusal.why);
    let spent = matches!(refusal.why, Why::Spent { .. });
    let wait = refusal.wait.filter(|_| !spent);
    let mut error = json!({"type": kind, "message": message});
    if matches!(refusal.why, Why::Spent { cap: Cap::Enforced, .. }) {
        error["details"] = json!({"error_code": "enforced_spend_limit_reached"});
    }
    let body = json!({"type": "error", "error": error, "request_id": request_id(scene)});
    Reply::json(status, headers(scene, wait), &body)
}

/// Status, type and message.
fn error_of(scene: &Scene, why: &Why) -> (u16, &'static str, String) {
    match why {
        Why::Quota { unit, amount, period, .. } => {
            (429, "rate_limit_error", quota(scene, *unit, *amount, *period))
        }
        Why::Concurrency { .. } | Why::Secondary => {
            let message = "Number of concurrent connections to Claude exceeds your rate limit. \
                           Please try again later or contact sales at \
                           https://www.anthropic.com/contact-sales to discuss your options for a \
                           rate limit increase.";
            (429, "rate_limit_error", message.to_owned())
        }
        Why::Acceleration => {
            let message = "This request would exceed your organization's maximum usage increase \
                           rate for input tokens per minute. Please scale up your input tokens \
                           usage more gradually to stay within the accepted limits.";
            (429, "rate_limit_error", message.to_owned())
        }
        Why::Overload => (529, "overloaded_error", "Overloaded".to_owned()),
        Why::Spent { cap, resets } => spent(scene, *cap, *resets),
    }
}

fn quota(scene: &Scene, unit: Unit, amount: u64, period: u64) -> String {
    let unit = match unit {
        Unit::Requests => "requests",
        Unit::Tokens => "tokens",
        Unit::Input => "input tokens",
        Unit::Output => "output tokens",
    };
    format!(
        "This request would exceed your organization's rate limit of {} {unit} per {} (org: {}, \
         model: {}). For details, refer to: https://docs.claude.com/en/api/rate-limits. You can \
         see the response headers for current usage. Please reduce the prompt length or the \
         maximum tokens requested, or try again later. You may also contact sales at \
         https://www.anthropic.com/contact-sales to discuss your options for a rate limit \
         increase.",
        grouped(amount),
        period_name(period),
        scene.organization(),
        scene.options.model,
    )
}

fn spent(scene: &Scene, cap: Cap, resets: u64) -> (u16, &'static str, String) {
    let back = scene.moment(resets);
    let back =
        format!("You will regain access on {} at {} UTC.", back.date(), back.hour_and_minute());
    match cap {
        Cap::Enforced => {
            let message = "You have reached your API usage limits: your organization has reached \
                           its monthly spend limit.";
            (429, "rate_limit_error", format!("{message} {back}"))
        }
        Cap::Organization => {
            let message = "You have reached your specified API usage limits.";
            (400, "invalid_request_error", format!("{message} {back}"))
        }
        Cap::Project => {
            let message = "You have reached your specified workspace API usage limits.";
            (400, "invalid_request_error", format!("{message} {back}"))
        }
        Cap::Credits => {
            let message = "Your credit balance is too low to access the Anthropic API. Please go \
                           to Plans & Billing to upgrade or purchase credits.";
            (402, "billing_error", message.to_owned())
        }
    }
}

fn headers(scene: &Scene, wait: Option<u64>) -> Headers {
    let mut headers = scene.headers("application/json");
    if !scene.options.silent {
        for (name, level) in [
            ("requests", scene.level(Unit::Requests).copied()),
            ("tokens", all_tokens(scene)),
            ("input-tokens", scene.level(Unit::Input).copied()),
            ("output-tokens", scene.level(Unit::Output).copied()),
        ] {
            level_headers(&mut headers, scene, name, level);
        }
    }
    headers.push_some("retry-after", wait.map(seconds));
    headers.push("anthropic-organization-id", scene.organization());
    headers.push("request-id", request_id(scene));
    headers
}

fn level_headers(headers: &mut Headers, scene: &Scene, name: &str, level: Option<Level>) {
    let Some(level) = level else { return };
    let left = if name == "requests" { level.left } else { rounded(level.left) };
    // Full already: then the moment is now, or even just past.
    let full = match level.full_in {
        0 => scene.wall,
        span => scene.wall.plus(span).rounded_up(),
    };
    headers.push(format!("anthropic-ratelimit-{name}-limit"), level.amount);
    headers.push(format!("anthropic-ratelimit-{name}-remaining"), left);
    headers.push(format!("anthropic-ratelimit-{name}-reset"), full.rfc3339());
}

/// The limit on all tokens: its own, or that on prompts and that on answers together.
fn all_tokens(scene: &Scene) -> Option<Level> {
    if let Some(own) = scene.level(Unit::Tokens) {
        return Some(*own);
    }
    let (input, output) = (scene.level(Unit::Input)?, scene.level(Unit::Output)?);
    Some(Level {
        unit: Unit::Tokens,
        amount: input.amount.saturating_add(output.amount),
        left: input.left.saturating_add(output.left),
        full_in: input.full_in.max(output.full_in),
        ..*input
    })
}

/// To the nearest thousand.
const fn rounded(tokens: u64) -> u64 {
    tokens.saturating_add(500) / 1_000 * 1_000
}

fn request_id(scene: &Scene) -> String {
    format!("req_{}", scene.name(ALPHANUMERIC, 24, 0))
}
