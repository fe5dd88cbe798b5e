//! What the server does, as scripts that it keeps by their hashes.

use sha1_smol::Sha1;

/// A script of ours.
#[derive(Debug)]
pub(crate) struct Script {
    pub(crate) source: &'static str,
    pub(crate) hash: String,
}

/// All of them.
#[derive(Debug)]
pub(crate) struct Scripts {
    pub(crate) append: Script,
    pub(crate) snapshot: Script,
    pub(crate) piece: Script,
    pub(crate) stage: Script,
    pub(crate) aside: Script,
    pub(crate) begin: Script,
}

impl Scripts {
    pub(crate) fn new() -> Self {
        Self {
            append: Script::new(include_str!("scripts/append.lua")),
            snapshot: Script::new(include_str!("scripts/snapshot.lua")),
            piece: Script::new(include_str!("scripts/piece.lua")),
            stage: Script::new(include_str!("scripts/stage.lua")),
            aside: Script::new(include_str!("scripts/aside.lua")),
            begin: Script::new(include_str!("scripts/begin.lua")),
        }
    }
}

impl Script {
    fn new(source: &'static str) -> Self {
        Self { source, hash: Sha1::from(source).digest().to_string() }
    }
}
