//! Every page of documentation has exactly one title, and it comes before every other heading.

use crate::tree::Tree;

pub(super) fn check(tree: &Tree) -> Vec<String> {
    let pages = tree.files.iter().filter(|file| file.is("md") && !file.path.contains("LICENSE"));
    pages.filter_map(|page| Some(format!("{}: {}", page.path, wrong(&page.text)?))).collect()
}

fn wrong(text: &str) -> Option<&'static str> {
    let headings = headings(text);
    let titles = headings.iter().filter(|heading| heading.starts_with("# ")).count();
    match titles {
        0 => Some("it has no `# ` title"),
        1 if headings[0].starts_with("# ") => None,
        1 => Some("its title comes after another heading"),
        _ => Some("it has more than one `# ` title"),
    }
}

/// The headings outside of fenced code.
fn headings(text: &str) -> Vec<&str> {
    let mut fence: Option<&str> = None;
    let mut found = Vec::new();
    for line in text.lines() {
        let mark = ["```", "~~~"].into_iter().find(|mark| line.trim_start().starts_with(mark));
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            (None, None) if is_heading(line) => found.push(line),
            _ => {}
        }
    }
    found
}

fn is_heading(line: &str) -> bool {
    let rest = line.trim_start_matches('#');
    (1..=6).contains(&(line.len() - rest.len())) && rest.starts_with(' ')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tree;

    #[test]
    fn none_two_and_a_late_title_are_found() {
        let files = [("a.md", "text\n## b\n"), ("c.md", "# d\n# e\n"), ("f.md", "## g\n# h\n")];
        assert_eq!(check(&tree(&files)).len(), 3);
    }

    #[test]
    fn one_title_is_right_and_code_has_none() {
        let text = "# a\n\n```sh\n# not a title\n```\n## b\n#tag\n";
        assert!(check(&tree(&[("a.md", text), ("LICENSE.md", ""), ("b.txt", "")])).is_empty());
    }
}
