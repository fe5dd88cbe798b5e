//! Rows in columns that line up, cut to a width.

use crate::show::style::columns;

/// The rows as lines: columns as wide as their widest cell, two blanks between, the last one
/// ragged; a column of nothing is left out. A line that is wider than `width` goes on in the next,
/// under its second column.
pub(crate) fn table(indent: usize, width: usize, rows: &[Vec<String>]) -> Vec<String> {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widest = widest(rows, count);
    rows.iter().flat_map(|row| lines(indent, width, row, &widest)).collect()
}

/// The same, with a note below each row, under its second column.
pub(crate) fn table_with_notes(
    indent: usize,
    width: usize,
    rows: &[Vec<String>],
    notes: &[String],
) -> Vec<String> {
    let first = rows.iter().filter_map(|row| row.first()).map(|cell| columns(cell)).max();
    let below = indent + first.unwrap_or(0) + 2;
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widest = widest(rows, count);
    let each = rows.iter().zip(notes).flat_map(|(row, note)| {
        let note = wrap(&(" ".repeat(below) + note), below, width);
        let note = note.into_iter().map(|line| line.trim_end().to_owned());
        lines(indent, width, row, &widest).into_iter().chain(note).collect::<Vec<_>>()
    });
    each.collect()
}

/// The width of each column.
fn widest(rows: &[Vec<String>], count: usize) -> Vec<usize> {
    let wide = |at: usize| rows.iter().filter_map(move |row| row.get(at)).map(|c| columns(c)).max();
    (0..count).map(|at| wide(at).unwrap_or(0)).collect()
}

fn lines(indent: usize, width: usize, row: &[String], widest: &[usize]) -> Vec<String> {
    let further = indent + widest.first().copied().unwrap_or(0) + 2;
    let mut lines = Vec::new();
    let mut line = " ".repeat(indent);
    for (at, cell) in row.iter().enumerate() {
        let wide = widest.get(at).copied().unwrap_or(0);
        if wide == 0 {
            continue;
        }
        let is_last = row.iter().skip(at + 1).all(String::is_empty);
        let needed = if is_last { columns(cell) } else { wide };
        if at > 0 && columns(&line) + needed > width && columns(&line) > further {
            lines.push(std::mem::replace(&mut line, " ".repeat(further)));
        }
        line.push_str(cell);
        if is_last {
            break;
        }
        line.push_str(&" ".repeat(wide - columns(cell).min(wide) + 2));
    }
    lines.extend(wrap(&line, further, width));
    lines.iter().map(|line| line.trim_end().to_owned()).collect()
}

/// A sentence, indented and broken between words; further lines are indented a little more.
pub(crate) fn sentence(indent: usize, width: usize, text: &str) -> Vec<String> {
    let line = " ".repeat(indent) + text;
    let lines = wrap(&line, indent + 2, width);
    lines.iter().map(|line| line.trim_end().to_owned()).collect()
}

/// A line whose end is too long even so is broken between words.
fn wrap(line: &str, further: usize, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in line.split_inclusive(' ') {
        let last = lines.last().map_or(0, |last| columns(last));
        if last > further && last + columns(word.trim_end()) > width {
            lines.push(" ".repeat(further));
        }
        if let Some(last) = lines.last_mut() {
            last.push_str(word);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(of: &[&[&str]]) -> Vec<Vec<String>> {
        of.iter().map(|row| row.iter().map(|cell| (*cell).to_owned()).collect()).collect()
    }

    #[test]
    fn columns_line_up() {
        let rows = rows(&[&["blog", "1 request", "12s"], &["poller", "nothing", ""]]);
        assert_eq!(table(2, 80, &rows), ["  blog    1 request  12s", "  poller  nothing"]);
    }

    #[test]
    fn a_narrow_line_goes_on_below() {
        let rows = rows(&[&["blog", "1 request", "for 12s"]]);
        assert_eq!(table(2, 20, &rows), ["  blog  1 request", "        for 12s"]);
    }

    #[test]
    fn a_long_end_is_broken_between_words() {
        let rows = rows(&[&["blog", "waits for room in a pool"]]);
        assert_eq!(table(2, 20, &rows), ["  blog  waits for", "        room in a", "        pool"]);
    }

    #[test]
    fn a_sentence_is_broken_between_words() {
        let lines = sentence(2, 24, "paused for 5min (until noon) by hand");
        assert_eq!(lines, ["  paused for 5min (until", "    noon) by hand"]);
        assert_eq!(sentence(0, 80, "short"), ["short"]);
    }

    #[test]
    fn no_rows_are_no_lines() {
        assert!(table(2, 80, &[]).is_empty());
    }
}
