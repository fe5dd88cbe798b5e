//! The environment variables that send a program's API calls through the proxy.

use standpipe::{Priority, Settings};

/// A variable, the provider it is for, and what its value has after the provider's path.
const VARIABLES: [(&str, &str, &str); 9] = [
    ("ANTHROPIC_BASE_URL", "anthropic", ""),
    ("OPENAI_BASE_URL", "openai", "/v1"),
    // LangChain and LiteLLM read the older name.
    ("OPENAI_API_BASE", "openai", "/v1"),
    ("GOOGLE_GEMINI_BASE_URL", "gemini", ""),
    ("GROQ_BASE_URL", "groq", ""),
    ("MISTRAL_BASE_URL", "mistral", ""),
    ("OPENROUTER_BASE_URL", "openrouter", "/api/v1"),
    ("GITHUB_API_URL", "github", ""),
    ("AZURE_OPENAI_ENDPOINT", "azure", ""),
];

/// Claude Code's patience, in milliseconds: a call may wait for its turn.
const CLAUDE_TIMEOUT_MS: &str = "1800000";

/// Returns the variables for an agent behind the daemon at `base`, such as `http://127.0.0.1:8377`.
pub(crate) fn variables(
    base: &str,
    agent: &str,
    priority: Option<Priority>,
    settings: &Settings,
) -> Vec<(String, String)> {
    let identity = match priority {
        Some(priority) => format!("{agent}:{}", priority.as_str()),
        None => agent.to_owned(),
    };
    let url = |provider: &str, rest: &str| format!("{base}/as/{identity}/{provider}{rest}");
    // Azure has no address that is the same for all.
    let is_known =
        |provider: &str| provider != "azure" || settings.providers.contains_key(provider);
    let built_in = VARIABLES.iter().filter(|(_, provider, _)| is_known(provider));
    let mut all: Vec<(String, String)> =
        built_in.map(|(name, provider, rest)| ((*name).to_owned(), url(provider, rest))).collect();
    for provider in settings.providers.keys() {
        if !VARIABLES.iter().any(|(_, known, _)| known == provider) {
            let plain =
                |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
            let name: String = provider.chars().map(plain).collect();
            all.push((format!("{name}_BASE_URL"), url(provider, "")));
        }
    }
    all.push(("API_TIMEOUT_MS".to_owned(), CLAUDE_TIMEOUT_MS.to_owned()));
    all.push(("CLAUDE_CODE_MAX_RETRIES".to_owned(), "0".to_owned()));
    all.push(("STANDPIPE_AGENT".to_owned(), agent.to_owned()));
    let priority = priority.map(|priority| priority.as_str().to_owned());
    all.extend(priority.map(|priority| ("STANDPIPE_PRIORITY".to_owned(), priority)));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_and_priorities_are_in_the_path() {
        let settings = Settings::default();
        let all = variables("http://127.0.0.1:8377", "blog", Some(Priority::Background), &settings);
        let value =
            |name: &str| all.iter().find(|(known, _)| known == name).map(|(_, v)| v.as_str());
        let anthropic = "http://127.0.0.1:8377/as/blog:background/anthropic";
        assert_eq!(value("ANTHROPIC_BASE_URL"), Some(anthropic));
        let openai = "http://127.0.0.1:8377/as/blog:background/openai/v1";
        assert_eq!(
            (value("OPENAI_BASE_URL"), value("STANDPIPE_AGENT")),
            (Some(openai), Some("blog"))
        );
        assert_eq!(value("AZURE_OPENAI_ENDPOINT"), None, "it has no address of its own");
    }
}
