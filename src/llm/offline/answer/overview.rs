//! The answer to what a project is: what it says of itself, its folders, and where to go on.

use super::{
    super::{
        interest::Interest,
        protocol::{Percent, Stand, inert, inert_path, shortened},
        quote::{in_sentence, place, quote},
        rank::Passage,
        source::{FileKind, Lines, introduces, is_fenced},
    },
    Case, Said,
};

/// Most lines that are quoted of a front page, and most of its first lines that are looked at.
const MOST_QUOTED: usize = 12;
const MOST_LOOKED_AT: u32 = 150;
/// How far above its first words a heading belongs to them, in lines.
const ABOVE: usize = 3;
/// Shortest sentence that says something, in words.
const FEWEST_WORDS: usize = 5;
/// What headings have of sections that are not about the project itself.
const OF_OTHERS: &[&str] = &[
    "donat",
    "sponsor",
    "backer",
    "funding",
    "supporter",
    "enterprise",
    "contents",
    "badge",
    "license",
];
/// Most folders that are shown.
const MOST_FOLDERS: usize = 24;
/// Fewer notes are no folder of notes.
const FEW_NOTES: usize = 3;
/// What says what a project or a folder of notes is.
const FRONT_PAGES: [&str; 3] = ["readme", "index", "home"];
/// Most definitions that are named.
const MOST_NAMED: usize = 6;
/// Where programs and libraries begin.
const ENTRIES: &[&str] = &[
    "main", "lib", "index", "mod", "app", "server", "__init__", "__main__",
];
/// Longest line of a folder, in characters.
const LONGEST_LINE: usize = 120;

/// Whether the folders of a project were asked for and are known.
pub(super) fn is_known(case: &Case<'_>) -> bool {
    case.question.interest == Interest::Overview
        && case.question.terms.is_empty()
        && !case.evidence.folders.is_empty()
}

pub(super) fn compose(case: &Case<'_>) -> Said {
    let page = front_page(case);
    let mut blocks = Vec::new();
    match &page {
        Some(page) => {
            blocks.push(format!(
                "What it says of itself is in {}.",
                in_sentence(&place(page))
            ));
            blocks.push(quote(page, case.evidence));
        }
        None => blocks.push("There is no README that says what it is.".to_owned()),
    }
    match notes(case) {
        Some(notes) => blocks.push(notes),
        None => blocks.push(folders(case)),
    }
    let named = named(case);
    if !named.is_empty() {
        blocks.push(format!("Where to read on: {}.", named.join(", ")));
    }
    let body = blocks.join("\n\n");
    match page {
        Some(_) => {
            let stand = Stand::Sufficient {
                sources_found: 1 + named.len(),
                source_types: vec!["docs", "code"],
            };
            (body, stand, Percent(70))
        }
        None => {
            let missing = "what the project is for: no file at its top says it".to_owned();
            let stand = Stand::Partial {
                missing,
                caveat: None,
            };
            (body, stand, Percent(50))
        }
    }
}

/// What the README says first, without badges, banners and whom to thank for money.
fn front_page(case: &Case<'_>) -> Option<Passage> {
    let is_called = |path: &str, name: &str| {
        let stem = path.get(..name.len());
        let is_page = name == "readme" || (path.len() == name.len() + 3 && path.ends_with(".md"));
        stem.is_some_and(|stem| stem.eq_ignore_ascii_case(name)) && is_page
    };
    let (path, lines) = FRONT_PAGES.iter().find_map(|name| {
        let mut files = case.evidence.files.iter();
        files.find(|(path, lines)| is_called(path, name) && lines.contains_key(&1))
    })?;
    let (first, last) = opening(lines).or_else(|| beginning(path, lines))?;
    Some(Passage {
        kind: FileKind::Docs,
        score: 1,
        ..Passage::at(path, (first, last), first)
    })
}

/// The first words of a page with the heading right above them, up to the next heading.
fn opening(lines: &Lines) -> Option<(u32, u32)> {
    let known: Vec<(u32, &str)> = (1..=MOST_LOOKED_AT)
        .map_while(|at| Some((at, lines.get(&at)?.trim())))
        .collect();
    let below = |at: usize| known.get(at + 1).map_or("", |(_, text)| *text);
    let is_code = |at: usize| is_fenced(lines, known[at].0);
    let heading = |at: usize| heading(known[at].1, below(at)).filter(|_| !is_code(at));
    // Which mark has the heading of a section that is passed over, with all below it.
    let mut passed: Option<&str> = None;
    let start = (front_matter(lines) as usize..known.len()).find(|at| {
        if let Some(title) = heading(*at) {
            let lower = title.to_lowercase();
            let mark = mark(known[*at].1, below(*at));
            if passed.is_none_or(|passed| !lies_below(mark, passed)) {
                let is_of_others = OF_OTHERS.iter().any(|word| lower.contains(word));
                passed = is_of_others.then_some(mark);
            }
        }
        passed.is_none() && says_something(known[*at].1) && !is_code(*at)
    })?;
    let above = (start.saturating_sub(ABOVE)..start).rev();
    let first = above
        .into_iter()
        .find(|at| heading(*at).is_some())
        .unwrap_or(start);
    let end =
        (start + 1..known.len().min(start + MOST_QUOTED)).take_while(|at| heading(*at).is_none());
    let last = end
        .filter(|at| !known[*at].1.is_empty())
        .last()
        .unwrap_or(start);
    Some((known[first].0, known[last].0))
}

/// The title of a heading with a sign before it, or with a line under it.
fn heading<'a>(text: &'a str, below: &str) -> Option<&'a str> {
    let underlines = |line: &str| {
        line.len() >= 3
            && line.starts_with(['=', '-', '~', '^', '*'])
            && line.chars().all(|c| line.starts_with(c))
    };
    let marked = text
        .trim_start_matches('#')
        .strip_prefix(' ')
        .filter(|_| text.starts_with('#'))
        .map(|title| title.trim_matches(['#', ' ']));
    let underlined = (!text.is_empty() && !underlines(text) && underlines(below)).then_some(text);
    marked.or(underlined)
}

/// What marks a heading: the signs before it, or one of those under it.
fn mark<'a>(text: &'a str, below: &'a str) -> &'a str {
    let signs = text.len() - text.trim_start_matches('#').len();
    match signs {
        0 => below.get(..1).unwrap_or(""),
        _ => &text[..signs],
    }
}

/// Whether a heading belongs to a section: it has more signs before it, or another one under it.
fn lies_below(mark: &str, section: &str) -> bool {
    match section.starts_with('#') {
        true => mark.len() > section.len(),
        false => mark != section,
    }
}

/// Whether a line is a sentence, and no badge, link, tag, setting or item of a list.
fn says_something(text: &str) -> bool {
    let begins =
        text.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '*' | '_' | '`' | '"' | '“'));
    let words = text.split_whitespace();
    let is_word = |word: &&str| {
        word.chars().filter(|c| c.is_alphabetic()).count() > 1 && !word.contains("://")
    };
    begins && words.filter(is_word).count() >= FEWEST_WORDS
}

/// The first lines up to the second heading, of a page that has no sentences.
fn beginning(path: &str, lines: &Lines) -> Option<(u32, u32)> {
    let in_front = front_matter(lines);
    let mut headings = 0;
    let known = (1..=MOST_QUOTED as u32).take_while(|at| lines.contains_key(at));
    let last = known
        .take_while(|at| {
            headings += u32::from(*at > in_front && introduces(path, lines, *at).is_some());
            headings <= 1
        })
        .filter(|at| *at > in_front && !lines[at].trim().is_empty())
        .last()?;
    Some((in_front + 1, last))
}

/// How many lines stand between the fences before a note, with those.
fn front_matter(lines: &Lines) -> u32 {
    let is_fence = |at: &u32| lines.get(at).is_some_and(|line| line.trim_end() == "---");
    let end = (2..=MOST_LOOKED_AT).find(is_fence).filter(|_| is_fence(&1));
    end.unwrap_or(0)
}

/// The folders with the numbers of their notes, if there is hardly anything but notes.
fn notes(case: &Case<'_>) -> Option<String> {
    let is_note = |name: &&str| name.ends_with(".md");
    let folders = case.evidence.folders.iter().filter_map(|line| {
        let (folder, names) = line.split_once("/ ")?;
        let names: Vec<&str> = names.split(", ").collect();
        let notes = names.iter().copied().filter(|name| is_note(name)).count();
        Some((folder, names, notes))
    });
    let folders: Vec<(&str, Vec<&str>, usize)> = folders.collect();
    let is_counted = |names: &[&str]| names.len() == 1 && names[0].ends_with(" files");
    let known = || folders.iter().filter(|(_, names, _)| !is_counted(names));
    let all: usize = known().map(|(_, names, _)| names.len()).sum();
    let noted: usize = known().map(|(.., notes)| *notes).sum();
    if noted * 10 < all * 9 || noted < FEW_NOTES || !named(case).is_empty() {
        return None;
    }
    let lines = folders
        .iter()
        .take(MOST_FOLDERS)
        .map(|(folder, names, notes)| {
            let folder = match *folder {
                "." => "at the top".to_owned(),
                folder => in_sentence(&format!("{}/", inert_path(folder))),
            };
            let count = match (is_counted(names), *notes) {
                (true, _) => inert(names[0]),
                (false, 1) => "1 note".to_owned(),
                (false, notes) => format!("{notes} notes"),
            };
            format!("- {folder}: {count}")
        });
    let lines: Vec<String> = lines.collect();
    Some(format!("Its folders of notes:\n{}", lines.join("\n")))
}

/// The folders of the project and what is in them, in a fence.
pub(super) fn folders(case: &Case<'_>) -> String {
    let all = &case.evidence.folders;
    let mut shown: Vec<String> = all
        .iter()
        .take(MOST_FOLDERS)
        .map(|line| shortened(&inert(line), LONGEST_LINE))
        .collect();
    if all.len() > shown.len() {
        shown.push(format!("… {} more", all.len() - shown.len()));
    }
    format!("Its folders:\n```\n{}\n```", shown.join("\n"))
}

/// Where the map showed something: the usual entries first, then what lies nearest to the top.
fn named(case: &Case<'_>) -> Vec<String> {
    let mut first: Vec<(bool, usize, String)> = case
        .evidence
        .files
        .iter()
        .filter(|(path, _)| FileKind::of(path) == FileKind::Code)
        .filter_map(|(path, lines)| {
            let (at, _) = lines.first_key_value()?;
            let name = path.rsplit('/').next().unwrap_or(path);
            let stem = name.split('.').next().unwrap_or(name);
            let is_entry = ENTRIES.contains(&stem);
            let place = in_sentence(&format!("{}:{at}", inert_path(path)));
            Some((!is_entry, path.matches('/').count(), place))
        })
        .collect();
    first.sort();
    let named = first.into_iter().map(|(.., place)| place);
    named.take(MOST_NAMED).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_begins_with_its_first_words() {
        for (name, text, want) in [
            (
                "a title and a sentence",
                "# Shop\n\nA shop that sells by the hour.\n\n## Install\n",
                Some((1, 3)),
            ),
            (
                "badges",
                "[![npm](x)](y)\n<br>\n\n# Shop\n\n[Docs](x) |\n[More](y)\n\nShop is a tool for selling things.\n\n- fast\n\n## X\n",
                Some((9, 11)),
            ),
            (
                "directives, and whom to thank",
                "|logo|\n\n.. |logo| image:: x\n   :alt: All of the words of it\n\nDonations\n=========\n\nHere\n----\n\nGive us all of your money now.\n\nWhat is a Shop?\n===============\n\nA shop is where things are sold.\n",
                Some((14, 17)),
            ),
            (
                "tags",
                "<div>\n  <p>\n    Shop is a seller of all things.\n  </p>\n</div>\n",
                Some((3, 5)),
            ),
            (
                "code, and what only looks like a heading",
                "# Shop\n\n```\n# make all of it yourself\nbuy all of the things now\n```\n\nIt sells by the hour to all\n#1 of them.\n\n## X\n",
                Some((8, 9)),
            ),
            ("nothing", "# Shop\n\nSoon.\n", None),
        ] {
            let lines: Lines = (1..).zip(text.lines().map(str::to_owned)).collect();
            assert_eq!(opening(&lines), want, "{name}");
        }
    }
}
