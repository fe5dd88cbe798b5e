//! As Azure's OpenAI service replies.

use serde_json::{Value, json};

use super::super::call::{Unit, Used};
use super::super::refusal::{Refusal, Why};
use super::super::reply::{Headers, Reply};
use super::{HEX, Scene, millis, openai, seconds};

pub(super) fn success(scene: &Scene, used: &Used, took: u64) -> Reply {
    let mut headers = opened(scene);
    headers.push("openai-processing-ms", millis(took));
    Reply::json(200, headers, &openai::completion(scene, used))
}

pub(super) fn refusal(scene: &Scene, refusal: &Refusal) -> Reply {
    let wait = refusal.wait.filter(|_| !matches!(refusal.why, Why::Spent { .. }));
    let mut headers = opened(scene);
    headers.push_some("retry-after-ms", wait.map(millis));
    headers.push_some("retry-after", wait.map(seconds));
    let error = error_of(refusal, wait);
    Reply::json(429, headers, &json!({"error": error}))
}

fn opened(scene: &Scene) -> Headers {
    let mut headers = scene.headers("application/json");
    for (name, unit) in [("requests", Unit::Requests), ("tokens", Unit::Tokens)] {
        let Some(level) = scene.level(unit) else { continue };
        // Some replies of Azure's have the headers, but nothing in them.
        let (limit, left, reset) = if scene.options.silent {
            ("-1".to_owned(), "-1".to_owned(), 0)
        } else {
            (level.amount.to_string(), level.left.to_string(), seconds(level.full_in))
        };
        headers.push(format!("x-ratelimit-limit-{name}"), limit);
        headers.push(format!("x-ratelimit-remaining-{name}"), left);
        headers.push(format!("x-ratelimit-reset-{name}"), reset);
    }
    headers.push("apim-request-id", scene.name(HEX, 32, 0));
    headers
}

fn error_of(refusal: &Refusal, wait: Option<u64>) -> Value {
    let wait = wait.map(|wait| format!(" Please retry after {} seconds.", seconds(wait)));
    let wait = wait.unwrap_or_default();
    let kind = match refusal.why {
        Why::Spent { cap, .. } => return openai::spent(cap),
        Why::Overload => {
            let message = format!(
                "The system is currently experiencing high demand and cannot process your request. \
                 Your request exceeds the maximum usage size allowed during peak load.{wait} For \
                 improved capacity reliability, consider switching to Provisioned Throughput."
            );
            return json!({"code": "429", "message": message});
        }
        Why::Quota { unit: Unit::Tokens | Unit::Input | Unit::Output, .. } => "token",
        _ => "call",
    };
    let message = format!(
        "Requests to the ChatCompletions_Create Operation under Azure OpenAI API version \
         2024-06-01 have exceeded {kind} rate limit of your current OpenAI S0 pricing tier.{wait} \
         Please go here: https://aka.ms/oai/quotaincrease if you would like to further increase \
         the default rate limit."
    );
    json!({"code": "429", "message": message})
}
