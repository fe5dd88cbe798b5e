//! Text from providers, made safe to show: [`redact()`] for messages, [`is_invisible`] for
//! characters.

mod invisible;
mod redact;

pub use invisible::is_invisible;
pub(crate) use redact::redact;
