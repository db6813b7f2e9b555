//! What a search found, as text: places as `path:line: text`, and below each group what is known of it.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fmt::Write as _,
};

use super::{
    Notes,
    index::{Index, Passed},
    kind::Kind,
    page::{Page, Unit},
    question::Question,
    rank::{Hit, Ranked},
    words::{self, Key},
};
use crate::tool::text::{counted, on_one_line, quoted};

/// Most sections of one note among the results, as long as others have some too.
const MOST_OF_PAGE: usize = 3;
/// Most lines of a section that are shown.
const MOST_LINES: usize = 3;
/// Most links that are named, each way.
const MOST_LINKS: usize = 4;
/// Characters shown before the first word found in a long line.
const BEFORE: usize = 60;

/// The words that were found, with how much each tells; in order, so that sums are always the same.
pub(super) type Telling = BTreeMap<Key, f32>;

/// The report of a search.
pub(super) fn report(
    notes: &Notes,
    index: &Index,
    question: &Question,
    query: &str,
    ranked: &Ranked,
    most: usize,
) -> String {
    let hits = &ranked.hits;
    let caps = notes.settings;
    let shown = spread(hits, most);
    let mut text = String::new();
    let mut written = 0_usize;
    for hit in &shown {
        let group = group(notes, index, (question, ranked), hit);
        // What the last lines take is left free.
        if written > 0 && text.len() + group.len() + 600 > caps.max_output_bytes {
            break;
        }
        text.push_str(&group);
        text.push('\n');
        written += 1;
    }
    if hits.is_empty() {
        let what = match query.trim() {
            "" => "that filter".to_owned(),
            query => quoted(query),
        };
        let _ = writeln!(
            text,
            "no section of the notes fits {what}: try other words or a wider filter\n"
        );
    }
    match (hits.len(), hits.len() - written) {
        (0, _) => {}
        (_, 0) => text.push_str("all that fits is shown; "),
        (_, 1) => text.push_str("1 more section fits; "),
        (_, rest) => {
            let _ = write!(text, "{rest} more sections fit; ");
        }
    }
    text.push_str(&searched(index));
    text
}

/// The best hits, but not all of one note while others wait.
fn spread(hits: &[Hit], most: usize) -> Vec<&Hit> {
    let mut of_page = HashMap::<usize, usize>::new();
    let mut later = Vec::new();
    let mut shown = Vec::new();
    for hit in hits {
        let count = of_page.entry(hit.page).or_default();
        *count += 1;
        if *count > MOST_OF_PAGE {
            later.push(hit);
        } else {
            shown.push(hit);
        }
        if shown.len() == most {
            return shown;
        }
    }
    shown.extend(later.into_iter().take(most - shown.len()));
    shown
}

fn group(
    notes: &Notes,
    index: &Index,
    (question, ranked): (&Question, &Ranked),
    hit: &Hit,
) -> String {
    let page = &index.pages[hit.page];
    let path = index.shown(hit.page);
    let unit = &page.units[hit.unit];
    let mut text = String::new();
    let words = question.words.iter().zip(&ranked.rarities).enumerate();
    let found = words
        .filter(|(bit, _)| hit.has & (1 << bit) != 0)
        .map(|(_, word)| word);
    let found: Vec<(&String, Key, f32)> = found
        .map(|((word, key), rarity)| (word, *key, *rarity))
        .collect();
    let telling: Telling = found
        .iter()
        .map(|(_, key, rarity)| (*key, *rarity))
        .collect();
    match notes.lines_of(page) {
        Some(lines) => {
            let people = page.note.front.people.filter(|_| question.who);
            let people = people.filter(|at| !(unit.first..=unit.last).contains(at));
            if let Some((at, line)) = people.and_then(|at| Some((at, lines.get(at as usize - 1)?)))
            {
                let line = excerpt(line, &telling, notes.settings.max_line_chars);
                let _ = writeln!(text, "{path}:{at}: {line}");
            }
            for at in best_lines(&lines, unit, &telling) {
                let line = excerpt(&lines[at], &telling, notes.settings.max_line_chars);
                let _ = writeln!(text, "{path}:{}: {line}", at + 1);
            }
        }
        None => {
            let _ = writeln!(text, "{path}:{}: (it has changed meanwhile)", unit.first);
        }
    }
    let _ = writeln!(text, "  {}", about(page, unit));
    if !found.is_empty() {
        let mut words: Vec<&str> = found.iter().map(|(word, ..)| word.as_str()).collect();
        // A name counts in parts, but is one word.
        words.dedup();
        let _ = writeln!(text, "  words found: {}", on_one_line(&words.join(", ")));
    }
    if let Some(over) = hit.instead_of {
        let _ = writeln!(text, "  in place of: {}", index.shown(over));
    }
    links(&mut text, index, hit.page);
    text
}

/// Where in its note the section stands, what it is and when.
pub(super) fn about(page: &Page, unit: &Unit) -> String {
    let section = &page.note.sections[unit.section];
    let mut path: Vec<&str> = section
        .path
        .iter()
        .map(|heading| &**heading)
        .filter(|one| !one.is_empty())
        .collect();
    if path.first() != Some(&page.title()) {
        path.insert(0, page.title());
    }
    let mut parts = vec![format!("in \"{}\"", on_one_line(&path.join(" › ")))];
    parts.push(format!("lines {}–{}", unit.first, unit.last));
    if unit.kind != Kind::Note {
        parts.push(unit.kind.name().to_owned());
    }
    parts.extend(page.status.clone());
    parts.extend(unit.date.map(|day| day.to_string()));
    parts.join(" · ")
}

/// To which notes it leads, and which lead to it.
pub(super) fn links(text: &mut String, index: &Index, page: usize) {
    let links = index.links(page).iter().map(|to| index.shown(*to));
    let linked = index
        .linked(page)
        .iter()
        .map(|from| format!("{}:{}", index.shown(from.page), from.line));
    for (name, all) in [
        ("links to", links.collect::<Vec<_>>()),
        ("linked from", linked.collect()),
    ] {
        if !all.is_empty() {
            let more = match all.len().saturating_sub(MOST_LINKS) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let shown: Vec<&str> = all.iter().take(MOST_LINKS).map(String::as_str).collect();
            let _ = writeln!(text, "  {name}: {}{more}", shown.join(", "));
        }
    }
}

/// The lines of a unit that say the most of the words, in order; without any, its first ones.
fn best_lines(lines: &[String], unit: &Unit, telling: &Telling) -> Vec<usize> {
    let first = (unit.first as usize).saturating_sub(1);
    let last = (unit.last as usize).min(lines.len());
    let mut weighed: Vec<(f32, usize)> = (first..last)
        .filter(|at| !lines[*at].trim().is_empty())
        .map(|at| (held(&lines[at], telling), at))
        .collect();
    // Stable: among equals the first ones stay.
    weighed.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let best = weighed.first().map_or(0.0, |(weight, _)| *weight);
    // A line that says less than a third of what the best one says is noise beside it.
    weighed.retain(|(weight, _)| weight * 3.0 >= best);
    let mut shown: Vec<usize> = weighed
        .into_iter()
        .take(MOST_LINES)
        .map(|(_, at)| at)
        .collect();
    shown.sort_unstable();
    shown
}

/// How much of what is looked for a line says.
fn held(line: &str, telling: &Telling) -> f32 {
    let mut found = HashSet::new();
    words::each(line, |word| {
        found.insert(words::key(word));
    });
    let held = telling.iter().filter(|(key, _)| found.contains(*key));
    held.map(|(_, rarity)| rarity).sum()
}

/// A line of which a long one is cut to what stands around the first word found.
pub(super) fn excerpt(line: &str, telling: &Telling, most: usize) -> String {
    let line = line.trim_end();
    let length = line.chars().count();
    if length <= most {
        return on_one_line(line).into_owned();
    }
    let mut before = 0;
    for run in line.split_inclusive(char::is_whitespace) {
        if held(run, telling) > 0.0 {
            break;
        }
        before += run.chars().count();
    }
    // Not found as one run, it stands anywhere.
    let start = if before >= length {
        0
    } else {
        before.saturating_sub(BEFORE)
    };
    let piece: String = line.chars().skip(start).take(most).collect();
    let head = if start > 0 { "…" } else { "" };
    let tail = if start + most < length { "…" } else { "" };
    format!("{head}{}{tail}", on_one_line(&piece))
}

/// What was searched, and what was not.
pub(super) fn searched(index: &Index) -> String {
    let mut text = format!(
        "{} in {} searched",
        counted(index.corpus.units as u64, "section", "sections"),
        counted(index.pages.len() as u64, "note", "notes")
    );
    text.push_str(&passed(&index.passed));
    text
}

/// What was passed over, if anything was.
pub(super) fn passed(passed: &Passed) -> String {
    let mut parts = Vec::new();
    for (count, what) in [
        (passed.too_big, "too big"),
        (passed.binary, "binary"),
        (passed.utf16, "UTF-16 (only UTF-8 is read)"),
        (passed.unreadable, "unreadable"),
        (
            passed.links,
            if passed.links == 1 { "link" } else { "links" },
        ),
        (passed.special, "not regular files"),
        (passed.too_many, "beyond the limit of notes"),
        (passed.in_part, "in part, as too much stands in them"),
        (passed.late, "not read in time: search again"),
    ] {
        if count > 0 {
            parts.push(format!("{count} {what}"));
        }
    }
    if passed.unlisted {
        parts.push("not all folders were looked through in time".to_owned());
    }
    if parts.is_empty() {
        String::new()
    } else {
        format!("; left out: {}", parts.join(", "))
    }
}
