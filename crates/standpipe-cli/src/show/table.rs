//! Rows in columns that line up, cut to a width.

use crate::show::style::columns;

/// The least width of a column in which text is broken.
const READABLE: usize = 30;

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
        // A long last cell is broken inside its column, if that is wide enough to read.
        let from = columns(&line);
        if is_last && at > 0 && from + columns(cell) > width && from + READABLE <= width {
            lines.extend(wrap(&(line + cell), from, width));
            return lines.iter().map(|line| line.trim_end().to_owned()).collect();
        }
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
    for word in words(line, width.saturating_sub(further)) {
        let last = lines.last().map_or(0, |last| columns(last));
        if last > further && last + columns(word.trim_end()) > width {
            lines.push(" ".repeat(further));
        }
        if let Some(last) = lines.last_mut() {
            last.push_str(&word);
        }
    }
    lines
}

/// The words of a line, each with the blanks behind it. A number and its unit are one word, and so
/// is a command in backticks of at most this width, which people copy.
fn words(line: &str, most: usize) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in line.split_inclusive(' ') {
        let number = |last: &String| {
            let last = last.trim_end().trim_start_matches('(');
            !last.is_empty() && last.chars().all(|c| c.is_ascii_digit() || c == '.')
        };
        let is_unit = UNITS.contains(&word.trim_end().trim_end_matches([')', ',', '.', ';']));
        let is_open = |last: &String| last.matches('`').count() % 2 == 1;
        let fits = |last: &String| columns(last) + columns(word.trim_end()) <= most;
        let belongs = |last: &String| is_unit && number(last) || is_open(last) && fits(last);
        match words.last_mut().filter(|last| belongs(last)) {
            Some(last) => last.push_str(word),
            None => words.push(word.to_owned()),
        }
    }
    words
}

/// What is not separated from the number before it.
const UNITS: [&str; 6] = ["ms", "s", "min", "h", "d", "%"];

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
    fn a_number_stays_with_its_unit() {
        assert_eq!(sentence(0, 14, "not before (in 51 s)"), ["not before (in", "  51 s)"]);
        assert_eq!(sentence(0, 12, "free in (51 s)"), ["free in", "  (51 s)"]);
    }

    #[test]
    fn a_command_is_not_broken_unless_it_is_too_long() {
        let text = "wait; `standpipe resume my/api` ends it";
        assert_eq!(sentence(0, 30, text), ["wait;", "  `standpipe resume my/api`", "  ends it"]);
        assert_eq!(sentence(0, 16, "`a-long command here`")[0], "`a-long command");
    }

    #[test]
    fn a_long_last_cell_is_broken_in_its_column() {
        let text = "its own cap on requests per 1min is reached";
        let lines = table(0, 44, &rows(&[&["no", "share", text]]));
        assert_eq!(lines[0], "no  share  its own cap on requests per 1min");
        assert_eq!(lines[1], "           is reached");
    }

    #[test]
    fn no_rows_are_no_lines() {
        assert!(table(2, 80, &[]).is_empty());
    }
}
