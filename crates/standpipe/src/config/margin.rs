//! The key `margin` of a pool: the share of every stated rate that is left unused.
//!
//! The old key `headroom` meant the share that is used. It is rejected with the new figure, because
//! the same number under the new key would mean the opposite.

use standpipe_core::Margin;

use super::plain;
use super::reader::{Item, Reader, figure};
use super::text;

/// Reads `margin = "auto"`, a percentage, or a number from 0 to below 1.
pub(super) fn read(reader: &mut Reader<'_>, item: &Item<'_>) -> Option<Margin> {
    if item.value.as_str() == Some("auto") {
        return Some(Margin::Auto);
    }
    reader.take(item, text::margin).map(Margin::Fixed)
}

/// Rejects the old key, and names the new one with the figure that means the same.
pub(super) fn reject_headroom(reader: &mut Reader<'_>, item: &Item<'_>) {
    let used = figure(item.value).and_then(|text| text::share(&text).ok());
    let remedy = match used {
        _ if item.value.as_str() == Some("auto") => "write margin = \"auto\"".to_owned(),
        Some(1_000) => "write margin = 0".to_owned(),
        Some(used @ 1..1_000) => format!("write margin = \"{}\"", plain::percent(1_000 - used)),
        _ => "write for example margin = \"20%\"".to_owned(),
    };
    let what = "`headroom` is now `margin`, the share that is left unused";
    reader.wrong(item.line, what, remedy);
}
