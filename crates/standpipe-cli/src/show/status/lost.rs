//! Pools whose ledger is gone: what counts as used from the next call on, and what to do.

use standpipe::observe::LostLedger;

use crate::show::style::{Style, TextRole};
use crate::show::table::sentence;

/// Formats the lost ledgers, a block each.
pub(crate) fn ledgers(style: Style, all: &[LostLedger]) -> String {
    all.iter().map(|lost| ledger(style, lost).join("\n") + "\n\n").collect()
}

fn ledger(style: Style, lost: &LostLedger) -> Vec<String> {
    let state = style.paint(TextRole::Error, "LEDGER LOST");
    let mut lines = vec![format!("{}  {state}", style.paint(TextRole::Title, &lost.pool))];
    let what = style.paint(TextRole::Error, &lost.what());
    let hint = format!("hint: {}; else wait: running processes restore theirs", lost.remedy());
    for text in [what, lost.effect(), hint] {
        lines.extend(sentence(2, style.width, &text));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_ledger_is_its_file_what_follows_and_what_to_do() {
        let lost = LostLedger {
            pool: "a/b".parse().unwrap(),
            file: "/s/pools/a+b.pool".to_owned(),
            slots_full_ms: 600_000,
        };
        let style = Style { colour: false, unicode: true, width: 200 };
        let text = ledgers(style, &[lost]);
        assert!(text.starts_with("a/b  LEDGER LOST\n  its ledger /s/pools/a+b.pool is gone\n"));
        assert!(text.contains("its slots count as full for 10 min, and its rates"), "{text}");
        let remedy = "hint: if no call is running: standpipe store reset a/b --yes; else wait";
        assert!(text.contains(remedy), "{text}");
        assert_eq!(ledgers(style, &[]), "");
    }
}
