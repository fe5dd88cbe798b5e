//! Findings of `doctor` and `audit`: a line each, the remedy below.

use standpipe::escape;
use standpipe::observe::{Finding, Level};

use crate::show::style::{Style, TextRole, columns};
use crate::show::table::table;

/// Formats findings grouped by check, with a summary at the end.
pub(crate) fn by_group(style: Style, findings: &[Finding]) -> String {
    let widest = findings.iter().map(|finding| columns(finding.check)).max().unwrap_or(0);
    let mut before = "";
    let mut rows = Vec::new();
    for finding in findings {
        let name = if finding.check == before { "" } else { finding.check };
        before = finding.check;
        let gap = " ".repeat(widest + 2 - columns(name));
        rows.extend(row(style, &format!("{name}{gap}"), finding));
    }
    let mut lines = table(0, style.width, &rows);
    lines.push(String::new());
    lines.push(summary(findings));
    lines.join("\n") + "\n"
}

/// Formats findings as an indented list.
pub(crate) fn list(style: Style, findings: &[Finding]) -> Vec<String> {
    let rows: Vec<Vec<String>> = findings.iter().flat_map(|each| row(style, "", each)).collect();
    table(2, style.width, &rows)
}

/// A finding, and below it the remedy.
fn row(style: Style, name: &str, finding: &Finding) -> Vec<Vec<String>> {
    let role = match finding.level {
        Level::Ok => TextRole::Good,
        Level::Note => TextRole::Title,
        Level::Warning => TextRole::Warning,
        Level::Failure => TextRole::Error,
    };
    let level = format!("{name}{}", style.paint(role, finding.level.as_str()));
    let mut rows = vec![vec![level, escape::text(&finding.what).into_owned()]];
    if let Some(remedy) = &finding.remedy {
        let arrow = if style.unicode { "→" } else { "->" };
        rows.push(vec![String::new(), format!("{arrow} {}", escape::text(remedy))]);
    }
    rows
}

/// `1 failure, 2 warnings, 1 note`
fn summary(findings: &[Finding]) -> String {
    let count = |level: Level| findings.iter().filter(|finding| finding.level == level).count();
    let counts = [Level::Failure, Level::Warning, Level::Note].map(|level| (level, count(level)));
    let words = counts.iter().filter(|(_, count)| *count > 0).map(|(level, count)| {
        let many = if *count == 1 { "" } else { "s" };
        format!("{count} {}{many}", level.as_str())
    });
    let words: Vec<String> = words.collect();
    if words.is_empty() { "All is well.".to_owned() } else { format!("{}.", words.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use standpipe::{Settings, Standpipe, StoreUrl};

    const PLAIN: Style = Style { colour: false, unicode: false, width: 60 };

    #[test]
    fn groups_are_named_once_and_lines_stay_in_their_columns() {
        let builder = Standpipe::builder().settings(Settings::default()).store(StoreUrl::Memory);
        let findings = builder.diagnose().findings;
        let text = by_group(PLAIN, &findings);
        assert_eq!(text.matches("configuration  ").count(), 1, "{text}");
        assert!(text.lines().all(|line| columns(line) <= 60), "{text}");
        assert!(text.contains("-> use a file store if you need one"), "{text}");
        assert!(text.ends_with("\n1 note.\n"), "{text}");
        assert_eq!(summary(&[]), "All is well.");
    }
}
