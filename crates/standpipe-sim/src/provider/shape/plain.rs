//! A provider that follows the IETF draft on rate limit headers and its problem types.

use serde_json::json;

use super::super::call::{Unit, Used};
use super::super::refusal::{Level, Refusal, Why};
use super::super::reply::{Headers, Reply};
use super::{Scene, period_name, seconds};

pub(super) fn success(scene: &Scene, used: &Used) -> Reply {
    let input = used.input + used.cache_read + used.cache_written;
    let body = json!({"usage": {"input": input, "output": used.output}});
    Reply::json(200, headers(scene, "application/json"), &body)
}

pub(super) fn refusal(scene: &Scene, refusal: &Refusal) -> Reply {
    let (status, kind, title) = match refusal.why {
        Why::Overload => {
            (503, "temporary-reduced-capacity", "Request cannot be satisfied at present")
        }
        Why::Acceleration => (429, "abnormal-usage-detected", "Request not satisfied: usage"),
        _ => (429, "quota-exceeded", "Request cannot be satisfied as assigned quota is exceeded"),
    };
    let policies = match refusal.why {
        Why::Quota { unit, period, .. } => vec![policy(unit, period)],
        Why::Concurrency { .. } => vec!["concurrent".to_owned()],
        Why::Spent { .. } => vec!["spend".to_owned()],
        _ => Vec::new(),
    };
    let mut headers = headers(scene, "application/problem+json");
    let spent = matches!(refusal.why, Why::Spent { .. });
    headers.push_some("retry-after", refusal.wait.filter(|_| !spent).map(seconds));
    let body = json!({
        "type": format!("https://iana.org/assignments/http-problem-types#{kind}"),
        "title": title,
        "violated-policies": policies,
    });
    Reply::json(status, headers, &body)
}

fn headers(scene: &Scene, content: &str) -> Headers {
    let mut headers = scene.headers(content);
    let list = |item: fn(&Level) -> String| {
        let items: Vec<_> = scene.levels.iter().map(item).collect();
        Some(items.join(",")).filter(|list| !list.is_empty() && !scene.options.silent)
    };
    headers.push_some("ratelimit-policy", list(told_policy));
    headers.push_some("ratelimit", list(told_level));
    headers
}

fn told_policy(level: &Level) -> String {
    let Level { unit, amount, period, .. } = *level;
    format!("\"{}\";q={amount};w={}", policy(unit, period), seconds(period))
}

fn told_level(level: &Level) -> String {
    let Level { unit, period, left, full_in, .. } = *level;
    format!("\"{}\";r={left};t={}", policy(unit, period), seconds(full_in))
}

/// The name of a limit: `requests-minute`.
fn policy(unit: Unit, period: u64) -> String {
    let unit = match unit {
        Unit::Requests => "requests",
        Unit::Tokens => "tokens",
        Unit::Input => "input",
        Unit::Output => "output",
    };
    format!("{unit}-{}", period_name(period).replace(' ', "-"))
}
