//! Reading the files: names of metrics, the dashboard's questions, texts inside of others.

use std::collections::BTreeSet;

/// The names in the text that the daemon prints. A histogram has three.
pub(super) fn printed(exposition: &str) -> BTreeSet<String> {
    let types = exposition.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    let names = types.flat_map(|(name, kind)| match kind {
        "histogram" => {
            vec![format!("{name}_bucket"), format!("{name}_sum"), format!("{name}_count")]
        }
        _ => vec![name.to_owned()],
    });
    names.collect()
}

/// The names in a text that are not among those, each once.
pub(super) fn unknown(text: &str, known: &BTreeSet<String>) -> Vec<String> {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let words = text.split(|letter| !is_part(letter));
    let names = words.filter(|word| word.starts_with("standpipe_"));
    let unknown: BTreeSet<&str> = names.filter(|name| !known.contains(*name)).collect();
    unknown.into_iter().map(str::to_owned).collect()
}

/// The questions of a dashboard as rules that Prometheus can check, with something in the place of
/// Grafana's variables.
pub(super) fn questions(dashboard: &str) -> Result<String, String> {
    let lines = dashboard.lines().filter_map(|line| line.trim().strip_prefix("\"expr\": "));
    let rules = lines.zip(1..).map(|(text, number)| {
        let text = text.trim_end_matches(',').replace("$__rate_interval", "5m");
        // A string of JSON is one of YAML.
        format!(
            "      - {{record: \"question:{number}\", expr: {}}}\n",
            text.replace("$pool", ".*")
        )
    });
    let rules: String = rules.collect();
    if rules.is_empty() {
        return Err("the dashboard has no `\"expr\": …` on a line of its own".to_owned());
    }
    Ok(format!("groups:\n  - name: questions\n    rules:\n{rules}"))
}

/// The text after a line which ends so, without its margin, up to one that is not further in.
pub(super) fn block(text: &str, opening: &str) -> Option<String> {
    let margin = |line: &str| line.len() - line.trim_start().len();
    let mut lines = text.lines().skip_while(|line| !line.ends_with(opening));
    let outer = margin(lines.next()?);
    let inside = lines.take_while(|line| line.trim().is_empty() || margin(line) > outer);
    Some(inside.map(|line| format!("{}\n", line.trim_start())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_has_three_names_and_not_its_own() {
        let text = "# HELP standpipe_a A.\n# TYPE standpipe_a gauge\nstandpipe_a 1\n\
                    # TYPE standpipe_b histogram\n";
        let known = printed(text);
        let expected =
            ["standpipe_a", "standpipe_b_bucket", "standpipe_b_count", "standpipe_b_sum"];
        assert_eq!(known.iter().map(String::as_str).collect::<Vec<_>>(), expected);
        let asked = "sum(standpipe_a{x=\"standpipe\"}) / standpipe_b_count + standpipe_b";
        assert_eq!(unknown(asked, &known), ["standpipe_b"]);
    }

    #[test]
    fn a_block_ends_where_the_margin_does() {
        let text = "a:\n  b: |\n    x = 1\n\n    y = 2\n  c: 3\n";
        assert_eq!(block(text, "b: |").as_deref(), Some("x = 1\n\ny = 2\n"));
        assert_eq!(block(text, "d: |"), None);
    }

    #[test]
    fn questions_become_rules() {
        let text = "\"expr\": \"sum(x{pool=~\\\"$pool\\\"}[$__rate_interval])\",\n";
        let rules = questions(text).unwrap();
        let rule = "{record: \"question:1\", expr: \"sum(x{pool=~\\\".*\\\"}[5m])\"}";
        assert!(rules.contains(rule), "{rules}");
        assert!(questions("{}").is_err());
    }
}
