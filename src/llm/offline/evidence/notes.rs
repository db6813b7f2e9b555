//! Sections of notes, as a search of notes tells them: lines as `path:line: text`, under them
//! `in "title › heading" · lines a–b · kind · status · date`. Pure.

use super::{Place, lines_between, matched, own};

/// What makes a section more than a passage of text.
const RECORDS: &[&str] = &["decision", "changelog", "meeting"];

/// Which notes hold in the place of others: the other one, then the one that holds.
pub(super) fn successors(content: &str) -> Vec<(String, String)> {
    let of_block = |block: Vec<&str>| {
        let over = block
            .iter()
            .find_map(|line| line.strip_prefix("  in place of: "))?;
        Some((over.to_owned(), own::path_of(&block)?.to_owned()))
    };
    own::blocks(content)
        .into_iter()
        .filter_map(of_block)
        .collect()
}

/// Puts what holds before the first place of what it took the place of.
pub(super) fn put_before(places: &mut Vec<Place>, successors: &[(String, String)]) {
    for (over, holding) in successors {
        let of = |path: &String| places.iter().position(|place| place.path == *path);
        // What the search of notes named says what was decided.
        let is_noted = |place: &Place| place.path == *holding && place.record.is_some();
        let noted = places.iter().position(is_noted);
        if let (Some(over), Some(holding)) = (of(over), noted.or_else(|| of(holding)))
            && holding > over
        {
            let place = places.remove(holding);
            places.insert(over, place);
        }
    }
}

/// The sections that a result names. Of one of our own, what lines begin with is their path as it stands.
pub(super) fn sections(content: &str, is_own: bool) -> Vec<Place> {
    let blocks = own::blocks(content).into_iter();
    blocks.flat_map(|block| of_block(&block, is_own)).collect()
}

fn of_block(block: &[&str], is_own: bool) -> Vec<Place> {
    let mut sections = Vec::new();
    let mut path: Option<&str> = None;
    let mut marked: Vec<u32> = Vec::new();
    let known = own::path_of(block).filter(|_| is_own);
    let told = |line| match known {
        Some(path) => own::line_of(line, path).map(|(_, at, _)| (path, at)),
        None => matched(line).map(|(path, at, _)| (path, at)),
    };
    for line in block {
        let line: &str = line;
        if let Some(words) = line.strip_prefix("  words found: ") {
            if let Some(last) = sections.last_mut() {
                let last: &mut Place = last;
                last.has = words.split(", ").map(str::to_owned).collect();
            }
        } else if let Some((of, at)) = told(line).filter(|_| !line.starts_with(' ')) {
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
        lines: lines_between(first, last)?,
        within: headings.split(" › ").map(str::to_owned).collect(),
        record: is_record.then(|| known.join(", ")),
    })
}
