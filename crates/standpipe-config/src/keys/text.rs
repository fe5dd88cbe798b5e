//! Strings with rules: addresses, URLs, variables. No error repeats a string that may be a secret.

use std::net::SocketAddr;

use standpipe_core::Text;

use super::form::form;
use super::{Shape, Value};
use crate::file::reader::shown_value;
use crate::parse::{TextError, quoted};
use crate::settings::Settings;

form!(
    /// The version of a file.
    Version: u64, Shape::integer(0, None),
    |reader, item| {
        let number = item.value.as_integer().and_then(|number| number.as_str().parse().ok());
        if number.is_none() {
            let remedy = "write a whole number, for example 1";
            reader.problem_at(item, format!("is {}, not a version", shown_value(item)), remedy);
        }
        number
    },
    |version| Value::Number(*version)
);

form!(
    /// An IP address and a port; `None` is the default.
    Address: Option<SocketAddr>, Shape::text("address and port"),
    |reader, item| reader.parse_text(item, |text| text.parse().map(Some).map_err(|_| {
        let what = format!("{} is not an address and a port", quoted(text));
        TextError::new(what, format!("write for example \"{}\"", Settings::LISTEN))
    })),
    |address| Value::from(address.unwrap_or(Settings::LISTEN).to_string())
);

form!(
    /// A short printable string.
    ShortText: String, Shape::text("text"),
    |reader, item| reader.parse_text(item, short_text),
    |text| Value::from(text.as_str())
);

pub(super) fn short_text(text: &str) -> Result<String, TextError> {
    Text::new(text).map(|_| text.to_owned()).ok_or_else(|| {
        let what = "is empty, too long or not printable";
        TextError::new(what, "write 1 to 128 characters without line breaks")
    })
}

form!(
    /// The name of an environment variable. Anything else may be the secret itself.
    Variable: String,
    Shape::Text { what: "name of a variable", pattern: "^[A-Za-z_][A-Za-z0-9_]*$" },
    |reader, item| reader.parse_text(item, variable),
    |name| Value::from(name.as_str())
);

fn variable(text: &str) -> Result<String, TextError> {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    let starts_well = text.bytes().next().is_some_and(|b| !b.is_ascii_digit());
    if !starts_well || text.len() > 128 || !text.bytes().all(is_plain) {
        let remedy = "write the variable's name, for example \"MY_API_KEY\", not the key itself";
        return Err(TextError::new("is not the name of an environment variable", remedy));
    }
    Ok(text.to_owned())
}

form!(
    /// The URL of an API, without credentials.
    Upstream: String, Shape::Text { what: "URL", pattern: "^https?://[^@?#]+$" },
    |reader, item| reader.parse_text(item, upstream),
    |url| Value::from(url.as_str())
);

fn upstream(text: &str) -> Result<String, TextError> {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let Some(rest) = rest else {
        let remedy = "write a URL, for example \"https://api.example.com\"";
        // A host or a scheme is no secret; anything else may be one.
        let is_plain = |b: u8| b.is_ascii_alphanumeric() || b".:/-_".contains(&b);
        let is_shown = text.contains(['.', ':']) && text.len() <= 64;
        let what = match is_shown && text.bytes().all(is_plain) {
            true => format!("{} is not a URL of http or https", quoted(text)),
            false => "is not a URL of http or https".to_owned(),
        };
        return Err(TextError::new(what, remedy));
    };
    let is_plain = rest.bytes().all(|b| b.is_ascii_graphic()) && text.len() <= 2_048;
    let has_host = !rest.is_empty() && !rest.starts_with(['/', ':']);
    if !is_plain || !has_host || rest.contains(['@', '?', '#']) {
        let what = "has no host, or has a user, a query or unsupported characters";
        let remedy = "write scheme, host and path only; a key goes in key_file";
        return Err(TextError::new(what, remedy));
    }
    Ok(text.to_owned())
}
