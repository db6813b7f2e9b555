//! Results whose form is known: blocks of lines, parted by blank ones, each of one file.
//!
//! What a block begins with is its path, whatever stands in it: names of notes have blanks, dashes and
//! question marks. Pure.

use super::{Place, line_number, lines_between};
use crate::model::ToolCall;

/// The tools that answer so.
const OWN: &[&str] = &[
    "code_search",
    "file_read",
    "note_search",
    "note_read",
    "repo_map",
];

pub(super) fn is_own(call: &ToolCall) -> bool {
    OWN.contains(&call.name.as_str())
}

/// The file that was to be read.
pub(super) fn path_argument(call: &ToolCall) -> Option<String> {
    let arguments = call.parsed().ok()?;
    arguments.get("path")?.as_str().map(str::to_owned)
}

/// The lines between blank ones.
pub(super) fn blocks(content: &str) -> Vec<Vec<&str>> {
    let lines: Vec<&str> = content.lines().collect();
    lines
        .split(|line| line.is_empty())
        .filter(|block| !block.is_empty())
        .map(<[&str]>::to_vec)
        .collect()
}

/// The file of a block: that of its header, or what all lines begin with that are not set in.
pub(super) fn path_of<'a>(block: &[&'a str]) -> Option<&'a str> {
    let first = block.first()?;
    if let Some((path, ..)) = header(first) {
        return Some(path);
    }
    let told = || {
        let lines = block.iter();
        lines.filter(|line| !line.starts_with(' ') && **line != "--")
    };
    let line = *told().next()?;
    // From the left: the shortest that fits. What was asked for is said in code marks.
    let ends = line.match_indices([':', '-']).map(|(end, _)| &line[..end]);
    let likely = |path: &&str| !path.is_empty() && !path.contains('`');
    ends.filter(likely).find(|path| {
        let marks: Option<Vec<char>> = told()
            .map(|line| line_of(line, path).map(|(mark, ..)| mark))
            .collect();
        // What stands around a match is not there without it.
        marks.is_some_and(|marks| marks.contains(&':'))
    })
}

/// `path:line: text` or `path-line- text` of that path: the sign, the line and the text.
pub(super) fn line_of<'a>(line: &'a str, path: &str) -> Option<(char, u32, &'a str)> {
    let rest = line.strip_prefix(path)?;
    let mark = rest
        .chars()
        .next()
        .filter(|mark| [':', '-'].contains(mark))?;
    let (number, text) = rest[1..].split_once(mark)?;
    let text = text.strip_prefix(' ').unwrap_or(text);
    Some((mark, line_number(number)?, text))
}

/// `path (lines a–b of N): name > name`.
fn header(line: &str) -> Option<(&str, (u32, u32), &str)> {
    line.match_indices(" (lines ").find_map(|(end, opening)| {
        let (lines, names) = line[end + opening.len()..].split_once(')')?;
        let (first, behind) = lines.split_once('–')?;
        let (last, _) = behind.split_once(" of ")?;
        let names = match names.strip_prefix(':') {
            Some(names) => names.trim_start(),
            None => names,
        };
        let lines = lines_between(first, last)?;
        (end > 0).then_some((&line[..end], lines, names))
    })
}

/// How many lines a file has that was shown, if a result says it.
pub(in super::super) fn total(content: &str, path: &str) -> Option<u32> {
    let mut shown = content.lines().filter_map(|line| line.strip_prefix(path));
    let (_, behind) = shown.find_map(|line| line.strip_prefix(" (lines ")?.split_once(" of "))?;
    behind.split_once(')')?.0.parse().ok()
}

/// The place that a header names.
pub(super) fn place(line: &str) -> Option<Place> {
    let (path, lines, names) = header(line)?;
    Some(Place {
        path: path.to_owned(),
        lines,
        within: names
            .split(" > ")
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect(),
        marked: Vec::new(),
        record: None,
        has: Vec::new(),
    })
}

/// The places of a ranked search, in its order.
pub(super) fn places(content: &str) -> Vec<Place> {
    let places = blocks(content).into_iter().filter_map(|block| {
        let mut place = place(block.first()?)?;
        let lines = block.iter().filter_map(|line| line_of(line, &place.path));
        place.marked = lines
            .filter(|(mark, ..)| *mark == ':')
            .map(|(_, at, _)| at)
            .collect();
        Some(place)
    });
    places.collect()
}
