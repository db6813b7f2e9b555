//! Titles of prose: those with signs before them, and those with a line of signs below. Pure.

use super::{Introduces, LONGEST, Lines, introduces, is_fenced};

/// So few signs below a title make it none.
const LEAST_SIGNS: usize = 3;
/// The signs below titles as most projects nest them, the outermost first.
const ORDER: &str = "#*=-~^\"";

/// What the title in a line of prose introduces.
pub(super) fn heading(lines: &Lines, at: u32) -> Option<Introduces<'_>> {
    let line = lines.get(&at)?;
    let heading = signed(line).or_else(|| underlined(lines, at));
    // `# build it` is a comment there.
    heading.filter(|_| !is_fenced(lines, at))
}

fn signed(line: &str) -> Option<Introduces<'_>> {
    let title = line.trim_start_matches(['#', '=']);
    let level = line.len() - title.len();
    let is_heading = (1..=6).contains(&level) && title.starts_with(' ');
    is_heading.then(|| Introduces::Heading {
        level,
        title: title.trim().trim_end_matches('#').trim(),
    })
}

/// A title with a line of the same sign below that is about as long, and perhaps one above.
fn underlined(lines: &Lines, at: u32) -> Option<Introduces<'_>> {
    let title = lines.get(&at)?.trim();
    let sign = rule(lines, at + 1, title)?;
    let is_title = title.contains(char::is_alphabetic) && !title.starts_with(['|', '+', '>', '-']);
    let order = ORDER.find(sign).unwrap_or(ORDER.len());
    let is_outer = at > 1 && rule(lines, at - 1, title) == Some(sign);
    is_title.then_some(Introduces::Heading {
        // With a line above it, a title is of a higher level than without.
        level: if is_outer { 1 } else { order + 2 },
        title,
    })
}

/// The sign of which a line has nothing else, if that goes as far as the title.
fn rule(lines: &Lines, at: u32, title: &str) -> Option<char> {
    let line = lines.get(&at)?.trim_end();
    let sign = line.chars().next().filter(char::is_ascii_punctuation)?;
    let long = line.len() >= LEAST_SIGNS && line.len() + 1 >= title.chars().count();
    (long && line.chars().all(|c| c == sign)).then_some(sign)
}

/// Where a title begins: with the line above it, if that belongs to it.
pub(super) fn first_line(lines: &Lines, head: u32) -> u32 {
    let title = lines.get(&head).map_or("", |line| line.trim());
    let above = head
        .checked_sub(1)
        .and_then(|above| rule(lines, above, title));
    match above.is_some() && above == rule(lines, head + 1, title) {
        true => head - 1,
        false => head,
    }
}

/// A passage that begins with a title, on to the end of its first paragraph and of the code that follows it: a title
/// alone says nothing. As far as lines are known and no other title of its level or a higher one comes.
pub(in super::super) fn with_opening(
    path: &str,
    lines: &Lines,
    (first, last): (u32, u32),
) -> (u32, u32) {
    let level_at = |at: u32| match introduces(path, lines, at) {
        Some(Introduces::Heading { level, .. }) => Some(level),
        Some(Introduces::Definition { .. }) | None => None,
    };
    let head = (first..=last.min(first + 1)).find(|at| level_at(*at).is_some());
    let Some((head, outer)) = head.and_then(|head| Some((head, level_at(head)?))) else {
        return (first, last);
    };
    let goes_on = |at: &u32| {
        let is_next = level_at(*at).is_some_and(|level| level <= outer);
        lines.contains_key(at) && *at < first + LONGEST && !is_next
    };
    let body: Vec<u32> = (head + 1..).take_while(goes_on).collect();
    let text = |at: u32| lines.get(&at).map_or("", |line| line.trim());
    let is_title = |at: u32| level_at(at).is_some() || rule(lines, at, "").is_some();
    let is_said = |at: &u32| {
        text(*at).contains(char::is_alphanumeric) && !is_title(*at) && !is_mark(text(*at))
    };
    let Some(begin) = body.iter().copied().find(is_said) else {
        return (first, last);
    };
    let paragraph = body.iter().copied().filter(|at| *at >= begin);
    let end = paragraph
        .take_while(|at| !text(*at).is_empty())
        .last()
        .unwrap_or(begin);
    let end = code_behind(lines, &body, end).unwrap_or(end);
    (first, last.max(end))
}

/// What only says where links go, or sets something.
fn is_mark(text: &str) -> bool {
    text.starts_with(".. ")
        || text.starts_with("<!--")
        || (text.starts_with(':') && text.contains(": "))
}

/// The last line of the code that follows a paragraph: a fence, or what is set in behind a colon.
fn code_behind(lines: &Lines, body: &[u32], end: u32) -> Option<u32> {
    let line = |at: u32| lines.get(&at).map_or("", String::as_str);
    let mut behind = body
        .iter()
        .copied()
        .filter(|at| *at > end && !line(*at).trim().is_empty());
    let begin = behind.next()?;
    let is_fence = |at: u32| line(at).trim_start().starts_with("```");
    let is_block = line(begin).starts_with(".. code")
        || line(begin).starts_with(".. sourcecode")
        || line(begin).starts_with(".. prompt");
    if is_fence(begin) {
        return behind
            .find(|at| is_fence(*at))
            .or_else(|| body.last().copied());
    }
    if is_block || line(end).trim_end().ends_with(':') && line(begin).starts_with([' ', '\t']) {
        let set_in = behind.take_while(|at| line(*at).starts_with([' ', '\t']));
        return Some(set_in.last().unwrap_or(begin));
    }
    None
}
