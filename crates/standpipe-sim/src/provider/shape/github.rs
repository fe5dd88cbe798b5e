//! As GitHub's API replies: REST, and of GraphQL what is different.

use serde_json::{Value, json};

use super::super::call::Unit;
use super::super::refusal::{Refusal, Why};
use super::super::reply::{Headers, Reply};
use super::{Scene, seconds};

pub(super) fn success(scene: &Scene) -> Reply {
    let status = if scene.call.creates { 201 } else { 200 };
    Reply::json(status, headers(scene), &json!({"id": scene.number}))
}

pub(super) fn refusal(scene: &Scene, refusal: &Refusal) -> Reply {
    let mut headers = headers(scene);
    let (status, body) = match refusal.why {
        // For the primary limit GitHub states only when it resets.
        Why::Quota { .. } if scene.call.graphql => (200, primary_of_graphql()),
        Why::Quota { .. } => (403, primary(scene)),
        Why::Concurrency { .. } | Why::Secondary | Why::Acceleration => {
            headers.push_some("retry-after", refusal.wait.map(seconds));
            (403, secondary(scene))
        }
        Why::Overload => {
            headers.push_some("retry-after", refusal.wait.map(seconds));
            (503, message("Service unavailable. Please try again later.", DOCS))
        }
        Why::Spent { .. } => (403, message("Resource not accessible: spending limit.", DOCS)),
    };
    Reply::json(status, headers, &body)
}

fn headers(scene: &Scene) -> Headers {
    let mut headers = scene.headers("application/json; charset=utf-8");
    if let Some(level) = scene.level(Unit::Requests).filter(|_| !scene.options.silent) {
        headers.push("x-ratelimit-limit", level.amount);
        headers.push("x-ratelimit-remaining", level.left);
        headers.push("x-ratelimit-reset", scene.wall.plus(level.full_in).rounded_up().epoch());
        headers.push("x-ratelimit-used", level.amount - level.left);
        let resource = if scene.call.graphql { "graphql" } else { &scene.options.model };
        headers.push("x-ratelimit-resource", resource);
    }
    headers.push("x-github-request-id", request_id(scene));
    headers
}

fn primary(scene: &Scene) -> Value {
    let text = format!(
        "API rate limit exceeded for user ID 1. If you reach out to GitHub Support for help, \
         please include the request ID {} and timestamp {} UTC.",
        request_id(scene),
        scene.wall.rfc3339().trim_end_matches('Z').replace('T', " "),
    );
    message(&text, "https://docs.github.com/rest/overview/rate-limits-for-the-rest-api")
}

fn primary_of_graphql() -> Value {
    let message = "API rate limit exceeded for user ID 1.";
    json!({"errors": [{"type": "RATE_LIMITED", "message": message}]})
}

fn secondary(scene: &Scene) -> Value {
    let text = format!(
        "You have exceeded a secondary rate limit. Please wait a few minutes before you try again. \
         If you reach out to GitHub Support for help, please include the request ID {}.",
        request_id(scene),
    );
    let docs = "https://docs.github.com/free-pro-team@latest/rest/overview/\
                rate-limits-for-the-rest-api#about-secondary-rate-limits";
    message(&text, docs)
}

fn message(text: &str, docs: &str) -> Value {
    json!({"message": text, "documentation_url": docs})
}

fn request_id(scene: &Scene) -> String {
    let part = |length, salt| scene.name("0123456789ABCDEF", length, salt);
    format!("{}:{}:{}:{}", part(4, 0), part(4, 2), part(6, 3), part(8, 4))
}

const DOCS: &str = "https://docs.github.com/rest";
