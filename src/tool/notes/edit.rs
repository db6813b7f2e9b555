//! How a note is changed: text put at the end of it or of one of its sections. Pure.

use std::ops::Range;

use memchr::{memchr_iter, memmem::FinderRev};

use super::note::Note;

/// At how many places is looked whether the same lines stand where they would be put: the last one is it,
/// unless what they say makes other sections of what stands below.
const MOST_LOOKS: usize = 8;

/// A note with a text in it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Edit {
    /// It has that already, where it belongs, on these lines.
    Had(u32, u32),
    /// It is to be this, and has the text on these lines.
    New(String, u32, u32),
}

/// Puts lines at the end of a section, or of the whole note. All that was there stays as it is, byte
/// for byte; new lines end as the one above them does. What stands where they would have been put was put
/// there by the same call; the same lines anywhere else are others.
pub(super) fn append(text: &str, section: Option<usize>, addition: &str) -> Edit {
    let mark = if text.starts_with('\u{feff}') { 3 } else { 0 };
    let lines: Vec<&str> = text[mark..].split_inclusive('\n').collect();
    let mut new: Vec<&str> = addition.trim_matches(['\n', '\r']).lines().collect();
    while new.last().is_some_and(|line| is_blank(line)) {
        new.pop();
    }
    let area = area(&lines, section);
    if let Some(begin) = done(&lines, section, &area, &new) {
        return Edit::Had(number(begin + 1), number(begin + new.len()));
    }
    // Right behind the last line that says something; blank ones below it stay below.
    let before = end(&lines, &area);
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
    if below.is_some_and(|line| !is_blank(line)) {
        put.push_str(line_end);
    }
    let begin = before + usize::from(apart) + 1;
    let text = format!("{}{put}{}", &text[..at], &text[at..]);
    Edit::New(text, number(begin), number(begin + new.len() - 1))
}

/// Which lines a section has, or the whole note.
fn area(lines: &[&str], section: Option<usize>) -> Range<usize> {
    let section = section.and_then(|at| Note::read(&lines.concat()).sections.into_iter().nth(at));
    section.map_or(0..lines.len(), |section| {
        (section.first as usize).saturating_sub(1)..(section.last as usize).min(lines.len())
    })
}

/// Behind the last line up to the end of an area that says something.
fn end(lines: &[&str], area: &Range<usize>) -> usize {
    let full = lines[..area.end].iter().rposition(|line| !is_blank(line));
    full.map_or(0, |full| full + 1)
}

/// Where these lines were put by the same call: they stand where it would put them if they were not there,
/// but for blank lines. What they say may have changed which section they stand in.
fn done(
    lines: &[&str],
    section: Option<usize>,
    area: &Range<usize>,
    new: &[&str],
) -> Option<usize> {
    // They may begin with a heading, and so right behind the area.
    let behind = lines[area.end..].iter().position(|line| !is_blank(line));
    let behind = behind.map_or(lines.len(), |full| area.end + full);
    let last = (behind + new.len()).min(lines.len());
    let text = |lines: &[&str]| {
        let lines = lines.iter().map(|line| format!("\n{}", line.trim_end()));
        lines.collect::<String>() + "\n"
    };
    // In linear time, whatever they say.
    let (mut within, wanted) = (text(&lines[area.start..last]), text(new));
    let wanted = FinderRev::new(&wanted);
    for _ in 0..MOST_LOOKS {
        let at = wanted.rfind(within.as_bytes())?;
        let begin = area.start + memchr_iter(b'\n', &within.as_bytes()[..at]).count();
        within.truncate(at + wanted.needle().len() - 1);
        let rest = [&lines[..begin], &lines[begin + new.len()..]].concat();
        let end = end(&rest, &self::area(&rest, section));
        if end <= begin && lines[end..begin].iter().all(|line| is_blank(line)) {
            return Some(begin);
        }
    }
    None
}

fn is_blank(line: &str) -> bool {
    line.trim().is_empty()
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
    let rest = match digits {
        0 => line.strip_prefix(['-', '*', '+']),
        _ => line[digits..].strip_prefix(['.', ')']),
    };
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace))
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
                "behind what only looks like an item",
                "**x**\n",
                None,
                "- y",
                new("**x**\n\n- y\n", 3, 3),
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
            (
                "there, but further up",
                "# Log\n\ncalled\n\nno answer\n",
                Some(0),
                "called",
                new("# Log\n\ncalled\n\nno answer\n\ncalled\n", 7, 7),
            ),
            (
                "there, in another section",
                "called\n\n# Log\nno answer\n",
                None,
                "called",
                new("called\n\n# Log\nno answer\n\ncalled\n", 6, 6),
            ),
            (
                "half of it there",
                "x\n\none\n",
                None,
                "one\ntwo",
                new("x\n\none\n\none\ntwo\n", 5, 6),
            ),
            (
                "there, with a heading of its own",
                "# A\n\nx\n\ny\n## B\nz\n\n# C\n",
                Some(0),
                "y\n## B\nz\n",
                Edit::Had(5, 7),
            ),
            (
                "a heading of its own, and more below it",
                "# A\n\nx\n\ny\n## B\nz\nmore\n",
                Some(0),
                "y\n## B\nz\n",
                new("# A\n\nx\n\ny\n\ny\n## B\nz\n\n## B\nz\nmore\n", 7, 9),
            ),
            (
                "there, and what is below it has become code",
                "# A\nx\n\n```\ny\n\n# B\nz\n",
                Some(0),
                "```\ny",
                Edit::Had(4, 5),
            ),
            (
                "there, with blank lines around",
                "x\n\n\n\ny\n\n\n",
                None,
                "y\n  \n",
                Edit::Had(5, 5),
            ),
        ] {
            assert_eq!(append(text, section, addition), want, "{name}");
        }
    }

    proptest! {
        #[test]
        fn the_same_text_is_put_in_once(text in "[a#\n -]{0,60}", addition in "[a#-]{1,9}(\n[a#-]{1,9}){0,2}", at in 0_usize..4) {
            let sections = |text: &str| Note::read(text).sections;
            let section = at.checked_sub(1).filter(|at| *at < sections(&text).len());
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
                // The same call finds it, unless the text makes other sections of what was there.
                let begun = |text: &str| section.map(|at| sections(text).get(at).map(|one| (one.first, one.path.clone())));
                if begun(&text) == begun(&new) {
                    prop_assert_eq!(append(&new, section, &addition), Edit::Had(first, last));
                }
            }
        }
    }
}
