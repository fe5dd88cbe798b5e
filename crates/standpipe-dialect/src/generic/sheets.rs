//! The tables: per provider, which headers tell of limits, and which marks refuse.

use crate::answer::{Kind, ResetMeans};
use crate::dialect::Dialect;
use crate::rows::{Clock, Row};

/// How one provider speaks.
pub(super) struct Sheet {
    /// Headers of limits.
    pub(super) rows: &'static [Row],
    /// Those that are looked at only if nothing else told of a limit.
    pub(super) plain: &'static [Row],
    /// What refuses, the first that holds.
    pub(super) marks: &'static [Mark],
    /// A header with the code, before the body.
    pub(super) code_header: Option<&'static str>,
    /// A member of the error that says how many seconds to wait.
    pub(super) wait_field: Option<&'static str>,
    /// Whether the codes of OpenAI are used.
    pub(super) speaks_openai: bool,
}

/// If this says that, then.
pub(super) struct Mark {
    pub(super) at: At,
    /// In lower case. Of a header, `*` in front means: however it begins.
    pub(super) says: &'static str,
    pub(super) then: Then,
}

/// Where a mark is.
pub(super) enum At {
    Code,
    /// Anywhere in the provider's words, if the status refuses.
    Message,
    Header(&'static str),
}

/// What follows from a mark.
#[derive(Clone, Copy)]
pub(super) enum Then {
    /// A refusal: its kind, and if known what is counted and in how many seconds.
    Refuse(Kind, Option<&'static str>, Option<u64>),
    /// Not about our quota, and worth another try.
    NotOurs,
}

pub(super) const fn of(dialect: Dialect) -> &'static Sheet {
    match dialect {
        Dialect::Bedrock => &BEDROCK,
        Dialect::Groq => &GROQ,
        Dialect::Cerebras => &CEREBRAS,
        Dialect::Stripe => &STRIPE,
        Dialect::Slack => &SLACK,
        Dialect::Discord => &DISCORD,
        Dialect::Shopify => &SHOPIFY,
        _ => &GENERIC,
    }
}

const BLANK: Sheet = Sheet {
    rows: &[],
    plain: &PLAIN,
    marks: &[],
    code_header: None,
    wait_field: None,
    speaks_openai: false,
};

/// Nobody says what these mean; they count requests nearly everywhere.
const PLAIN: [Row; 2] = [
    Row::new("x-ratelimit-", "", "requests", Clock::Guess),
    Row::new("x-rate-limit-", "", "requests", Clock::Guess),
];

const REQUESTS: Option<&str> = Some("requests");
const TOKENS: Option<&str> = Some("tokens");
const DAY: u64 = 86_400;

const fn code(says: &'static str, then: Then) -> Mark {
    Mark { at: At::Code, says, then }
}

const fn words(says: &'static str, then: Then) -> Mark {
    Mark { at: At::Message, says, then }
}

const fn header(name: &'static str, says: &'static str, then: Then) -> Mark {
    Mark { at: At::Header(name), says, then }
}

const fn quota(unit: Option<&'static str>, seconds: Option<u64>) -> Then {
    Then::Refuse(Kind::Quota, unit, seconds)
}

const OVERLOAD: Then = Then::Refuse(Kind::Overload, None, None);
const CONCURRENCY: Then = Then::Refuse(Kind::Concurrency, Some("parallel"), None);

/// No headers at all: only names of exceptions, which streams send with a small first letter.
static BEDROCK: Sheet = Sheet {
    marks: &[
        words("tokens per day", Then::Refuse(Kind::Terminal, TOKENS, Some(DAY))),
        words("too many tokens", quota(TOKENS, None)),
        words("too many requests", quota(REQUESTS, None)),
        code("modelnotreadyexception", OVERLOAD),
        code("serviceunavailableexception", OVERLOAD),
        code("throttlingexception", quota(None, None)),
    ],
    code_header: Some("x-amzn-errortype"),
    ..BLANK
};

/// OpenAI's names; requests are those of a day, tokens those of a minute.
static GROQ: Sheet = Sheet {
    rows: &[
        like_openai("-requests", "requests").per(DAY),
        like_openai("-tokens", "tokens").per(60),
    ],
    speaks_openai: true,
    ..BLANK
};

/// The period stands in the name.
static CEREBRAS: Sheet = Sheet {
    rows: &[
        like_openai("-requests-minute", "requests").per(60),
        like_openai("-requests-hour", "requests").per(3_600),
        like_openai("-requests-day", "requests").per(DAY),
        like_openai("-tokens-minute", "tokens").per(60),
        like_openai("-tokens-hour", "tokens").per(3_600),
        like_openai("-tokens-day", "tokens").per(DAY),
    ],
    speaks_openai: true,
    ..BLANK
};

const REASON: &str = "stripe-rate-limited-reason";

/// A 429 may be about too much at once, or about one object and not about the account.
static STRIPE: Sheet = Sheet {
    marks: &[
        code("lock_timeout", Then::NotOurs),
        header(REASON, "resource-specific", Then::NotOurs),
        header(REASON, "*-concurrency", CONCURRENCY),
        header(REASON, "*-rate", quota(REQUESTS, Some(1))),
        code("rate_limit", quota(REQUESTS, Some(1))),
    ],
    ..BLANK
};

/// Neither limit nor period is told: they differ by method.
static SLACK: Sheet = Sheet {
    marks: &[
        code("ratelimited", quota(REQUESTS, None)),
        code("rate_limited", quota(REQUESTS, None)),
    ],
    ..BLANK
};

/// What is shared with others does not count against us.
static DISCORD: Sheet = Sheet {
    rows: &[Row::new("x-ratelimit-", "", "requests", Clock::Seconds)
        .reset_by("reset-after")
        .named_by("x-ratelimit-bucket")
        .means(ResetMeans::WindowEnds)],
    plain: &[],
    marks: &[header("x-ratelimit-scope", "shared", Then::NotOurs)],
    wait_field: Some("retry_after"),
    ..BLANK
};

static SHOPIFY: Sheet = Sheet { marks: &[code("throttled", quota(Some("points"), None))], ..BLANK };

static GENERIC: Sheet = Sheet {
    rows: &[like_openai("-requests", "requests"), like_openai("-tokens", "tokens")],
    wait_field: Some("retry_after"),
    speaks_openai: true,
    ..BLANK
};

const fn like_openai(after: &'static str, unit: &'static str) -> Row {
    Row::new("x-ratelimit-", after, unit, Clock::Go).means(ResetMeans::Full).minus_is_unknown()
}
