//! What the server does, as scripts that it keeps by their hashes.

use sha1::{Digest, Sha1};

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

/// A script that reads or writes heads.
macro_rules! with_head {
    ($script:literal) => {
        concat!(include_str!("scripts/head.lua"), include_str!($script))
    };
}

impl Scripts {
    pub(crate) fn new() -> Self {
        Self {
            append: Script::new(with_head!("scripts/append.lua")),
            snapshot: Script::new(with_head!("scripts/snapshot.lua")),
            piece: Script::new(with_head!("scripts/piece.lua")),
            stage: Script::new(include_str!("scripts/stage.lua")),
            aside: Script::new(include_str!("scripts/aside.lua")),
            begin: Script::new(with_head!("scripts/begin.lua")),
        }
    }
}

impl Script {
    fn new(source: &'static str) -> Self {
        let digest = Sha1::digest(source.as_bytes());
        let hash = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        Self { source, hash }
    }
}
