//! The formats of providers' APIs: which calls count, where the model is, how an error looks.
//!
//! The path tells the format, so that any server that speaks a known format can be an upstream.

use axum::http::Method;
use standpipe::config::CallSettings;

/// The format of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// Anthropic: `POST /v1/messages`.
    Anthropic,
    /// OpenAI and compatible servers: `POST …/chat/completions`. Its streams state no usage unless
    /// the request asks for it.
    OpenAiChat,
    /// OpenAI and compatible servers: responses, completions, embeddings.
    OpenAi,
    /// Gemini: `POST …/models/{model}:generateContent`.
    Gemini,
    /// Bedrock: `POST /model/{model}/converse`.
    Bedrock,
    /// OpenAI and compatible servers: images and audio.
    OpenAiMedia,
    /// OpenAI: a WebSocket to `…/realtime`.
    Realtime,
    /// GitHub, REST.
    GitHub,
    /// GitHub, GraphQL.
    GitHubGraphQl,
    /// Any other API: every request counts.
    Other,
    /// A call of a known provider that uses no quota: lists of models, batches, token counts.
    Unmetered,
}

/// Ends of paths whose calls count, in the format of OpenAI.
const OPENAI: [&str; 3] = ["/responses", "/completions", "/embeddings"];
/// Ends of paths of images and audio in the format of OpenAI. Such a call counts as one request.
const OPENAI_MEDIA: [&str; 6] = [
    "/images/generations",
    "/images/edits",
    "/images/variations",
    "/audio/speech",
    "/audio/transcriptions",
    "/audio/translations",
];
/// Methods of Gemini whose calls count.
const GEMINI: [&str; 4] =
    [":generateContent", ":streamGenerateContent", ":embedContent", ":batchEmbedContents"];
/// Ends of paths of Bedrock whose calls count.
const BEDROCK: [&str; 4] =
    ["/invoke", "/invoke-with-response-stream", "/converse", "/converse-stream"];
/// Providers of language models. What is not a call of a model uses no quota there.
const MODEL_PROVIDERS: [&str; 10] = [
    "anthropic",
    "openai",
    "azure",
    "gemini",
    "bedrock",
    "mistral",
    "groq",
    "openrouter",
    "cerebras",
    "deepseek",
];

impl Format {
    /// The format of a call to this path of a provider.
    pub(crate) fn of(provider: &str, method: &Method, path: &str) -> Self {
        let path = path.split('?').next().unwrap_or_default().trim_end_matches('/');
        if provider == "github" {
            return match path {
                // Asking for the limits does not count against them.
                "/rate_limit" => Self::Unmetered,
                "/graphql" => Self::GitHubGraphQl,
                _ => Self::GitHub,
            };
        }
        if method == Method::GET && path.ends_with("/realtime") {
            return Self::Realtime;
        }
        if method == Method::POST {
            if path.ends_with("/messages") {
                return Self::Anthropic;
            }
            // Mistral states the usage of every stream, and rejects a request for it.
            if path.ends_with("/chat/completions") && provider != "mistral" {
                return Self::OpenAiChat;
            }
            if OPENAI.iter().any(|end| path.ends_with(end)) {
                return Self::OpenAi;
            }
            if OPENAI_MEDIA.iter().any(|end| path.ends_with(end)) {
                return Self::OpenAiMedia;
            }
            if GEMINI.iter().any(|end| path.ends_with(end)) {
                return Self::Gemini;
            }
            if path.contains("/model/") && BEDROCK.iter().any(|end| path.ends_with(end)) {
                return Self::Bedrock;
            }
        }
        match MODEL_PROVIDERS.contains(&provider) {
            true => Self::Unmetered,
            false => Self::Other,
        }
    }

    /// The format of a call that the configuration describes by path and method.
    pub(crate) fn as_configured(self, calls: Option<&CallSettings>) -> Self {
        match calls {
            Some(calls) if !calls.counted => Self::Unmetered,
            Some(_) if self == Self::Unmetered => Self::Other,
            _ => self,
        }
    }

    /// The provider that a format is known from, for servers at an unknown address.
    pub(crate) const fn provider(self) -> Option<&'static str> {
        match self {
            Self::Anthropic => Some("anthropic"),
            Self::OpenAiChat | Self::OpenAi | Self::OpenAiMedia | Self::Realtime => Some("openai"),
            Self::Gemini => Some("gemini"),
            Self::Bedrock => Some("bedrock"),
            Self::GitHub | Self::GitHubGraphQl | Self::Other | Self::Unmetered => None,
        }
    }

    /// Whether a call counts against a quota.
    pub(crate) const fn is_counted(self) -> bool {
        !matches!(self, Self::Unmetered)
    }

    /// Whether the call is to a language model, which may be repeated if its answer was lost.
    pub(crate) const fn is_model(self) -> bool {
        matches!(
            self,
            Self::Anthropic
                | Self::OpenAiChat
                | Self::OpenAi
                | Self::OpenAiMedia
                | Self::Gemini
                | Self::Bedrock
        )
    }

    /// Whether the call counts as one request whatever it sends: its tokens are not known before.
    pub(crate) const fn is_one_request(self) -> bool {
        matches!(self, Self::OpenAiMedia | Self::Realtime)
    }

    /// The model that the path names.
    pub(crate) fn model_in_path(self, path: &str) -> Option<&str> {
        let after = |mark: &str| path.split_once(mark).map(|(_, rest)| rest);
        let found = match self {
            Self::Gemini => after("/models/")?.split(':').next(),
            Self::Bedrock => after("/model/")?.split('/').next(),
            // Azure names a deployment.
            Self::OpenAiChat | Self::OpenAi | Self::OpenAiMedia => {
                after("/deployments/")?.split('/').next()
            }
            Self::Realtime => {
                let query = path.split_once('?')?.1;
                query.split('&').find_map(|member| member.strip_prefix("model="))
            }
            _ => None,
        };
        found.filter(|model| !model.is_empty())
    }

    /// Whether the path asks for a stream. Other formats ask in the body.
    pub(crate) fn streams_by_path(self, path: &str) -> bool {
        let path = path.split('?').next().unwrap_or_default();
        match self {
            // Without `alt=sse` the stream is a JSON array, to which no comment can be added.
            Self::Gemini => path.ends_with(":streamGenerateContent"),
            Self::Bedrock => path.ends_with("-stream"),
            _ => false,
        }
    }

    /// Whether a stream of this format is server-sent events, to which comments may be added.
    pub(crate) const fn has_comments(self) -> bool {
        matches!(self, Self::Anthropic | Self::OpenAiChat | Self::OpenAi)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_tells_the_format() {
        let post = |provider, path| Format::of(provider, &Method::POST, path);
        assert_eq!(post("anthropic", "/v1/messages?beta=true"), Format::Anthropic);
        assert_eq!(post("anthropic", "/v1/messages/count_tokens"), Format::Unmetered);
        assert_eq!(post("anthropic", "/v1/messages/batches"), Format::Unmetered);
        assert_eq!(post("openai", "/v1/chat/completions"), Format::OpenAiChat);
        assert_eq!(post("my-vllm", "/v1/chat/completions"), Format::OpenAiChat);
        assert_eq!(post("mistral", "/v1/chat/completions"), Format::OpenAi);
        assert_eq!(post("openai", "/v1/responses"), Format::OpenAi);
        assert_eq!(post("openai", "/v1/audio/speech"), Format::OpenAiMedia);
        assert_eq!(post("openai", "/v1/moderations"), Format::Unmetered);
        let realtime = "/v1/realtime?model=gpt-realtime&x=1";
        assert_eq!(Format::of("openai", &Method::GET, realtime), Format::Realtime);
        assert_eq!(Format::Realtime.model_in_path(realtime), Some("gpt-realtime"));
        let gemini = "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse";
        assert_eq!(post("gemini", gemini), Format::Gemini);
        assert_eq!(Format::Gemini.model_in_path(gemini), Some("gemini-2.5-flash"));
        assert!(Format::Gemini.streams_by_path(gemini));
        assert_eq!(post("github", "/graphql"), Format::GitHubGraphQl);
        assert_eq!(Format::of("github", &Method::GET, "/rate_limit"), Format::Unmetered);
        assert_eq!(Format::of("github", &Method::GET, "/repos/a/b"), Format::GitHub);
        assert_eq!(Format::of("openai", &Method::GET, "/v1/models"), Format::Unmetered);
        assert_eq!(Format::of("stripe", &Method::GET, "/v1/charges"), Format::Other);
        let azure = "/openai/deployments/prod-4o/chat/completions?api-version=2024-10-21";
        assert_eq!(post("azure", azure).model_in_path(azure), Some("prod-4o"));
    }

    #[test]
    fn the_configuration_decides_whether_a_call_counts() {
        let counted = CallSettings::default();
        let not = CallSettings { counted: false, ..CallSettings::default() };
        for (format, configured) in [
            (Format::Unmetered, Format::Other),
            (Format::Other, Format::Other),
            (Format::OpenAiChat, Format::OpenAiChat),
        ] {
            assert_eq!(format.as_configured(Some(&counted)), configured);
            assert_eq!(format.as_configured(Some(&not)), Format::Unmetered);
            assert_eq!(format.as_configured(None), format);
        }
    }
}
