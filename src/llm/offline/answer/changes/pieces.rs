//! A section of a change log as it is shown: all of it if it is short, else the beginning of each of its parts.

use super::super::{
    super::{
        changelog::{Section, is_sub_heading},
        protocol::{inert, inert_path, shortened},
        quote::{in_sentence, quote},
        rank::Passage,
        source::{Lines, is_fenced},
    },
    Case,
};

/// Most lines that are shown of a section, least of a part, and most of its parts.
const MOST_SHOWN: u32 = 60;
const LEAST_OF_PART: u32 = 4;
const MOST_PARTS: usize = 12;
/// So few lines are not worth leaving out.
const FEW: u32 = 3;
/// Longest words of a version in a list, in characters, and of how many lines.
const LONGEST_WORDS: usize = 200;
const LINES_OF_WORDS: usize = 2;

/// The last line of a section that says anything.
pub(super) fn last_line(case: &Case<'_>, section: &Section<'_>) -> u32 {
    let Some(lines) = case.evidence.files.get(section.path) else {
        return section.last;
    };
    let says = |at: &u32| {
        let text = lines.get(at).map_or("", |line| line.trim());
        // What is there for links alone says nothing, or belongs to what comes next.
        let is_link = text.starts_with('[') && text.contains("]:");
        let is_target = text.starts_with(".. _") && text.ends_with(':');
        !text.is_empty() && !is_link && !is_target
    };
    let mut known = (section.heading.at..=section.last).rev();
    known.find(says).unwrap_or(section.heading.at)
}

/// The quotes of a section, with what is left out between them.
pub(super) fn quoted(case: &Case<'_>, section: &Section<'_>) -> Vec<String> {
    let Some(lines) = case.evidence.files.get(section.path) else {
        return Vec::new();
    };
    let (first, last) = (section.heading.at, last_line(case, section));
    let spans = match last - first < MOST_SHOWN {
        true => vec![(first, last, last)],
        false => parts(lines, first, last),
    };
    let mut blocks = Vec::new();
    for (start, shown, end) in spans.iter().take(MOST_PARTS) {
        let passage = Passage::at(section.path, (*start, *shown), *start);
        blocks.push(quote(&passage, case.evidence));
        blocks.extend(left_out(section.path, *shown, *end));
    }
    let rest: Vec<String> = spans
        .iter()
        .skip(MOST_PARTS)
        .map(|(start, ..)| {
            let title = lines
                .get(start)
                .map_or("", |line| line.trim_matches(['#', ' ']));
            let place = in_sentence(&format!("{}:{start}", inert_path(section.path)));
            format!("“{}” ({place})", shortened(&inert(title), LONGEST_WORDS))
        })
        .collect();
    if !rest.is_empty() {
        blocks.push(format!("And below: {}.", rest.join(", ")));
    }
    if section.may_go_on(lines) {
        blocks.push(format!(
            "It may go on behind line {}, which is as far as I read.",
            section.last
        ));
    }
    blocks
}

fn left_out(path: &str, shown: u32, end: u32) -> Option<String> {
    let place = || in_sentence(&format!("{}:{}-{end}", inert_path(path), shown + 1));
    match end - shown {
        0 => None,
        1 => Some("… one more line".to_owned()),
        more => Some(format!("… {more} more lines ({})", place())),
    }
}

/// The parts under the headings of a section: first line, last line shown and last line of each. Neighbours of which
/// all is shown are one, as far as they are short together.
fn parts(lines: &Lines, first: u32, last: u32) -> Vec<(u32, u32, u32)> {
    let mut starts = vec![first];
    for at in first + 1..=last {
        let text = lines.get(&at).map_or("", |line| line.as_str());
        // The line under a title is no heading of its own.
        let is_title = text.contains(char::is_alphanumeric) && is_sub_heading(lines, at);
        if is_title && !is_fenced(lines, at) {
            starts.push(at);
        }
    }
    let share = (MOST_SHOWN / u32::try_from(starts.len()).unwrap_or(MOST_SHOWN)).max(LEAST_OF_PART);
    let ends = starts.iter().skip(1).map(|next| next - 1).chain([last]);
    let mut parts: Vec<(u32, u32, u32)> = Vec::new();
    for (start, end) in starts.iter().copied().zip(ends) {
        let all = end + 1 - start;
        let shown = if all <= share + FEW {
            end
        } else {
            start + share - 1
        };
        match parts.last_mut() {
            Some((from, before, all_before))
                if before == all_before && shown - *from < MOST_SHOWN =>
            {
                (*before, *all_before) = (shown, end)
            }
            Some(_) | None => parts.push((start, shown, end)),
        }
    }
    parts
}

/// What a version begins with, below its headings.
pub(super) fn first_words(case: &Case<'_>, section: &Section<'_>) -> Option<String> {
    let lines = case.evidence.files.get(section.path)?;
    let texts = (section.heading.at + 1..=section.last).filter_map(|at| {
        let text = lines.get(&at)?.trim();
        let is_sign = ["..", ":", "<", "```", "*Note", "["]
            .iter()
            .any(|sign| text.starts_with(sign));
        let says = text.contains(char::is_alphanumeric) && !is_sign && !is_sub_heading(lines, at);
        says.then(|| {
            text.trim_start_matches(['-', '*', '+', ' '])
                .replace("**", "")
        })
    });
    let words: Vec<String> = texts.take(LINES_OF_WORDS).collect();
    (!words.is_empty()).then(|| shortened(&inert(&words.join(" ")), LONGEST_WORDS))
}
