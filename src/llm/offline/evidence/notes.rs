//! Sections of notes, as a search of notes tells them: lines as `path:line: text`, under them
//! `in "title › heading" · lines a–b · kind · status · date`. Pure.

use super::{Place, line_number, matched};

/// What makes a section more than a passage of text.
const RECORDS: &[&str] = &["decision", "changelog", "meeting"];

/// The sections that a result names.
pub(super) fn sections(content: &str) -> Vec<Place> {
    let mut sections = Vec::new();
    let mut path: Option<&str> = None;
    let mut marked: Vec<u32> = Vec::new();
    for line in content.lines() {
        if let Some(words) = line.strip_prefix("  words found: ") {
            if let Some(last) = sections.last_mut() {
                let last: &mut Place = last;
                last.has = words.split(", ").map(str::to_owned).collect();
            }
        } else if let Some((of, at, _)) = matched(line).filter(|_| !line.starts_with(' ')) {
            path = Some(of);
            marked.push(at);
        } else if let (Some(of), Some(about)) = (path, about(line)) {
            let About {
                lines,
                within,
                record,
            } = about;
            sections.push(Place {
                path: of.to_owned(),
                lines,
                within,
                marked: std::mem::take(&mut marked),
                record,
                has: Vec::new(),
            });
        } else if line.trim().is_empty() {
            path = None;
            marked.clear();
        }
    }
    sections
}

struct About {
    lines: (u32, u32),
    within: Vec<String>,
    record: Option<String>,
}

fn about(line: &str) -> Option<About> {
    let (headings, rest) = line.strip_prefix("  in \"")?.rsplit_once("\" · lines ")?;
    let mut parts = rest.split(" · ");
    let (first, last) = parts.next()?.split_once('–')?;
    let known: Vec<&str> = parts.collect();
    let is_record = known.first().is_some_and(|kind| RECORDS.contains(kind));
    Some(About {
        lines: (line_number(first)?, line_number(last)?),
        within: headings.split(" › ").map(str::to_owned).collect(),
        record: is_record.then(|| known.join(", ")),
    })
}
