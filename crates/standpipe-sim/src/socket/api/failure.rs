//! Failures that are no matter of quota, in the words of each provider.

use serde_json::{Value, json};

use super::with_body;
use crate::provider::{Reply, Shape};

pub(super) fn reply(shape: Shape, mut reply: Reply, status: u16) -> Reply {
    reply.status = status;
    let body = match shape {
        Shape::Anthropic => anthropic(&reply, status),
        Shape::OpenAi | Shape::Azure => openai(status),
        Shape::Gemini => gemini(status),
        Shape::Mistral => mistral(status),
        Shape::GitHub => github(status),
        Shape::Plain => json!({"status": status, "title": "it fails on purpose"}),
    };
    with_body(reply, &body)
}

fn anthropic(reply: &Reply, status: u16) -> Value {
    let (kind, message) = match status {
        401 => ("authentication_error", "invalid x-api-key"),
        403 => ("permission_error", "Your API key does not have permission to use this resource."),
        404 => ("not_found_error", "model: claude-missing"),
        413 => ("request_too_large", "Request exceeds the maximum size"),
        529 => ("overloaded_error", "Overloaded"),
        500.. => ("api_error", "Internal server error"),
        _ => ("invalid_request_error", "messages: at least one message is required"),
    };
    json!({"type": "error", "error": {"type": kind, "message": message},
           "request_id": reply.header("request-id")})
}

fn openai(status: u16) -> Value {
    let (kind, code, message) = match status {
        401 => ("invalid_request_error", json!("invalid_api_key"), "Incorrect API key provided."),
        403 => ("invalid_request_error", Value::Null, "You are not allowed to use this model."),
        404 => ("invalid_request_error", json!("model_not_found"), "The model does not exist."),
        503 => (
            "service_unavailable_error",
            json!("server_is_overloaded"),
            "The server is currently overloaded. Please try again later.",
        ),
        500.. => ("server_error", Value::Null, "The server had an error."),
        _ => ("invalid_request_error", Value::Null, "Invalid value for 'messages'."),
    };
    json!({"error": {"message": message, "type": kind, "param": null, "code": code}})
}

fn gemini(status: u16) -> Value {
    let (kind, message) = match status {
        401 => ("UNAUTHENTICATED", "API key not valid. Please pass a valid API key."),
        403 => ("PERMISSION_DENIED", "The caller does not have permission"),
        404 => ("NOT_FOUND", "models/gemini-missing is not found for API version v1beta"),
        503 => ("UNAVAILABLE", "The model is overloaded. Please try again later."),
        500.. => ("INTERNAL", "An internal error has occurred."),
        _ => ("INVALID_ARGUMENT", "Request contains an invalid argument."),
    };
    json!({"error": {"code": status, "message": message, "status": kind}})
}

fn mistral(status: u16) -> Value {
    let (kind, code, message) = match status {
        401 => return json!({"detail": "Unauthorized"}),
        403 => ("forbidden", "1400", "You are not allowed to use this model."),
        404 | 400 => ("invalid_model", "1500", "Invalid model: mistral-missing"),
        503 => ("unreachable_backend", "1100", "Service unavailable."),
        500.. => ("internal_server_error", "1000", "Internal server error"),
        _ => ("invalid_request_error", "3051", "Expected last role User or Tool"),
    };
    json!({"object": "error", "message": message, "type": kind, "param": null, "code": code,
           "raw_status_code": status})
}

fn github(status: u16) -> Value {
    let message = match status {
        401 => "Bad credentials",
        403 => "Resource not accessible by personal access token",
        404 => "Not Found",
        422 => "Validation Failed",
        500.. => "Server Error",
        _ => "Problems parsing JSON",
    };
    json!({"message": message, "documentation_url": "https://docs.github.com/rest",
           "status": status.to_string()})
}
