//! How a note is changed: text put at the end of it or of one of its sections. Pure.

use super::note::Note;

/// A note with a text in it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Edit {
    /// It had that already, on these lines.
    Had(u32, u32),
    /// It is to be this, and has the text on these lines.
    New(String, u32, u32),
}

/// Puts lines at the end of a section, or of the whole note. All that was there stays as it is, byte
/// for byte; new lines end as the one above them does.
pub(super) fn append(text: &str, section: Option<usize>, addition: &str) -> Edit {
    let note = Note::read(text);
    let mark = if text.starts_with('\u{feff}') { 3 } else { 0 };
    let lines: Vec<&str> = text[mark..].split_inclusive('\n').collect();
    let whole = (1, note.lines);
    let section = section.and_then(|at| note.sections.get(at));
    let (first, last) = section.map_or(whole, |section| (section.first, section.last));
    let new: Vec<&str> = addition.trim_matches(['\n', '\r']).lines().collect();
    let start = (first as usize).saturating_sub(1);
    let area = lines.get(start..last as usize).unwrap_or_default();
    let fits = |at: &usize| {
        new.iter()
            .zip(&area[*at..])
            .all(|(new, old)| new.trim_end() == old.trim_end())
    };
    if let Some(at) = (0..(area.len() + 1).saturating_sub(new.len())).find(fits) {
        let begin = start + at + 1;
        return Edit::Had(number(begin), number(begin + new.len() - 1));
    }
    // Right behind the last line that says something; blank ones below it stay below.
    let before = lines
        .get(..last as usize)
        .unwrap_or(&lines)
        .iter()
        .rposition(|line| !line.trim().is_empty())
        .map_or(0, |full| full + 1);
    let at = mark
        + lines
            .iter()
            .take(before)
            .map(|line| line.len())
            .sum::<usize>();
    let (above, below) = (lines[..before].last(), lines.get(before));
    let line_end = line_end(&lines[..before]).or_else(|| line_end(&lines[before..]));
    let line_end = line_end.unwrap_or("\n");
    let mut put = String::new();
    if above.is_some_and(|line| !line.ends_with('\n')) {
        put.push_str(line_end);
    }
    let goes_on =
        above.is_some_and(|line| is_item(line)) && new.first().is_some_and(|line| is_item(line));
    let apart = above.is_some() && !goes_on;
    if apart {
        put.push_str(line_end);
    }
    for line in &new {
        put.push_str(line);
        put.push_str(line_end);
    }
    if below.is_some_and(|line| !line.trim().is_empty()) {
        put.push_str(line_end);
    }
    let begin = before + usize::from(apart) + 1;
    let text = format!("{}{put}{}", &text[..at], &text[at..]);
    Edit::New(text, number(begin), number(begin + new.len() - 1))
}

/// How the last of these lines ends that has an end.
fn line_end(lines: &[&str]) -> Option<&'static str> {
    let ended = lines.iter().rev().find(|line| line.ends_with('\n'))?;
    Some(if ended.ends_with("\r\n") {
        "\r\n"
    } else {
        "\n"
    })
}

/// A text as a file has it.
pub(super) fn as_file(text: &str) -> String {
    let mut file = text.replace("\r\n", "\n");
    if !file.ends_with('\n') {
        file.push('\n');
    }
    file
}

fn number(line: usize) -> u32 {
    u32::try_from(line).unwrap_or(u32::MAX)
}

fn is_item(line: &str) -> bool {
    let line = line.trim_start();
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    line.starts_with(['-', '*', '+']) || (digits > 0 && line[digits..].starts_with(['.', ')']))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn text_comes_to_the_end_of_its_section() {
        const NOTE: &str = "# A\n\nx\n\n## B\n\n- one\n\n# C\nlast\n";
        let new = |text: &str, first, last| Edit::New(text.to_owned(), first, last);
        for (name, text, section, addition, want) in [
            (
                "the end",
                NOTE,
                None,
                "more\n",
                new(&format!("{NOTE}\nmore\n"), 12, 12),
            ),
            (
                "a section",
                NOTE,
                Some(0),
                "y",
                new("# A\n\nx\n\ny\n\n## B\n\n- one\n\n# C\nlast\n", 5, 5),
            ),
            (
                "an item",
                NOTE,
                Some(1),
                "- two\n- three\n",
                new(
                    "# A\n\nx\n\n## B\n\n- one\n- two\n- three\n\n# C\nlast\n",
                    8,
                    9,
                ),
            ),
            (
                "before a heading at once",
                "# A\nx\n# B\n",
                Some(0),
                "y",
                new("# A\nx\n\ny\n\n# B\n", 4, 4),
            ),
            ("no line end", "x", None, "y", new("x\n\ny\n", 3, 3)),
            ("nothing there", "", None, "y\n", new("y\n", 1, 1)),
            (
                "Windows",
                "x\r\ny\r\n",
                None,
                "z\n",
                new("x\r\ny\r\n\r\nz\r\n", 4, 4),
            ),
            (
                "one line of Windows",
                "x\r\ny\nz\n",
                None,
                "w\n",
                new("x\r\ny\nz\n\nw\n", 5, 5),
            ),
            (
                "in between",
                "# A\r\nx\r\n\r\n# B\ny",
                Some(0),
                "w\r\nv",
                new("# A\r\nx\r\n\r\nw\r\nv\r\n\r\n# B\ny", 4, 5),
            ),
            (
                "spaces at ends",
                "x  \ny\t\n",
                None,
                "z  \nw\n",
                new("x  \ny\t\n\nz  \nw\n", 4, 5),
            ),
            (
                "blank lines at the end",
                "x\n\n\n",
                None,
                "y",
                new("x\n\ny\n\n\n", 3, 3),
            ),
            (
                "a mark of its order",
                "\u{feff}\nx\n",
                None,
                "y",
                new("\u{feff}\nx\n\ny\n", 4, 4),
            ),
            ("there already", NOTE, Some(1), "- one\n", Edit::Had(7, 7)),
            (
                "there, but elsewhere",
                NOTE,
                Some(2),
                "- one\n",
                new(&format!("{NOTE}\n- one\n"), 12, 12),
            ),
        ] {
            assert_eq!(append(text, section, addition), want, "{name}");
        }
    }

    proptest! {
        #[test]
        fn the_same_text_is_put_in_once(text in "[a#\n -]{0,60}", addition in "[a#-]{1,9}(\n[a#-]{1,9}){0,2}", at in 0_usize..4) {
            let section = at.checked_sub(1).filter(|_| !addition.contains('#'));
            if let Edit::New(new, first, last) = append(&text, section, &addition) {
                let has: Vec<&str> = new.lines().skip(first as usize - 1).take((last - first + 1) as usize).collect();
                prop_assert_eq!(has.join("\n"), addition.clone());
                prop_assert!(!has.is_empty());
                // What was there is there still, in its order, around what was put in.
                let (head, tail) = (0..=text.len())
                    .map(|at| text.split_at(at))
                    .find(|(head, tail)| new.starts_with(head) && new.ends_with(tail))
                    .unwrap();
                prop_assert_eq!(format!("{head}{tail}"), text.clone());
                // Where the text makes no headings of its own, the same call finds it.
                if section.is_none() {
                    prop_assert!(matches!(append(&new, section, &addition), Edit::Had(..)));
                }
            }
        }
    }
}
