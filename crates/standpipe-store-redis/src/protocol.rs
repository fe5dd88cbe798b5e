//! What the server stores and how the scripts reply: key names, byte layouts, Lua scripts.
//!
//! Everything here is read by other versions of Standpipe on the same server. A change of a layout,
//! a key name, an argument or a reply needs a new key name or new semantics.

pub(crate) mod head;
pub(crate) mod keys;
pub(crate) mod record;
pub(crate) mod reply;
pub(crate) mod resp;
pub(crate) mod scripts;
