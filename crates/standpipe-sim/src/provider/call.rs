//! What a provider is asked for, and what it turns out to use.

/// A call as it arrives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// Who makes it; for the record only, the provider knows but one key.
    pub agent: u32,
    /// The tokens of the prompt, as the provider estimates them at arrival.
    pub input: u64,
    /// The most it may answer with.
    pub max_output: u64,
    /// Whether it changes something (GitHub: five points rather than one).
    pub writes: bool,
    /// Whether it creates content (GitHub has a limit of its own for that).
    pub creates: bool,
    /// Whether it is asked in GraphQL (GitHub then reports its hourly limit with a 200).
    pub graphql: bool,
}

/// What a call has used once it is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// Tokens of the prompt that were neither read from a cache nor written to one.
    pub input: u64,
    /// Tokens of the prompt that were read from a cache.
    pub cache_read: u64,
    /// Tokens of the prompt that were written to a cache.
    pub cache_written: u64,
    /// Tokens generated.
    pub output: u64,
    /// What it cost, in millionths of a dollar.
    pub cost: u64,
}

/// What a limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unit {
    /// Calls.
    Requests,
    /// Tokens of prompt and answer together.
    Tokens,
    /// Tokens of the prompt.
    Input,
    /// Tokens of the answer.
    Output,
}

/// An accepted call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallId(pub u64);
