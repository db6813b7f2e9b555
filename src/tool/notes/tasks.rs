//! The to-dos of all notes, by note, with the words of a query that an item, its headings or its note has.

use std::{cmp::Reverse, collections::BTreeSet, fmt::Write as _};

use tokio_util::sync::CancellationToken;

use super::{
    Notes,
    index::Index,
    page::{Page, Unit},
    question::Question,
    rank::Filter,
    report::{self, Telling},
    task::{MOST, Task, Tasks},
    words::{self, Key},
};
use crate::tool::text::{counted, on_one_line, quoted};

/// What is asked of them.
pub(super) struct Asked<'a> {
    pub(super) tasks: Tasks,
    pub(super) question: &'a Question,
    pub(super) query: &'a str,
    pub(super) filter: &'a Filter,
    /// Most tasks to show.
    pub(super) most: usize,
}

/// A task that was looked at.
struct Found {
    page: usize,
    /// Which unit of the page has it, if any.
    unit: Option<usize>,
    line: u32,
    text: String,
    /// How many words of the query it has.
    has: usize,
}

/// The tasks that were asked for; those of the newest notes first.
pub(super) fn report(
    notes: &Notes,
    index: &Index,
    asked: &Asked<'_>,
    stop: &CancellationToken,
) -> String {
    let (all, late) = found(notes, index, asked, stop);
    let of_all = all.len();
    let wanted = asked.question.words.len();
    let best = all.iter().map(|task| task.has).max().unwrap_or(0);
    // What has all of the words, or else what has most of them.
    let fitting: Vec<Found> = all
        .into_iter()
        .filter(|task| wanted == 0 || (best > 0 && task.has == best))
        .collect();
    let (mut text, shown) = lines(notes, index, &fitting, asked);
    let name = asked.tasks.name();
    let about = match wanted {
        0 => String::new(),
        _ if best < wanted && best > 0 => {
            format!(" with some of {}, none with all of it", quoted(asked.query))
        }
        _ => format!(" with {}", quoted(asked.query)),
    };
    if fitting.is_empty() {
        let _ = write!(text, "no {name}task{about} in the notes");
        if wanted > 0 {
            let _ = write!(text, ", {of_all} {name}in all");
        }
    } else {
        let (one, many) = (format!("{name}task"), format!("{name}tasks"));
        let pages: BTreeSet<usize> = fitting.iter().map(|task| task.page).collect();
        let _ = write!(
            text,
            "{}{about} in {}",
            counted(fitting.len() as u64, &one, &many),
            counted(pages.len() as u64, "note", "notes")
        );
    }
    match fitting.len() - shown {
        0 => {}
        rest => {
            let _ = write!(text, ", of which {rest} are not shown: narrow the query");
        }
    }
    if index.pages.iter().any(|page| page.tasks.len() >= MOST) {
        let _ = write!(text, "; of a note the first {MOST} tasks are looked at");
    }
    if late > 0 {
        let _ = write!(text, "; {late} not looked at in time: search again");
    }
    let _ = write!(text, "; {}", report::searched(index));
    text
}

/// All tasks that the filter takes, and how many notes could not be looked at.
fn found(
    notes: &Notes,
    index: &Index,
    asked: &Asked<'_>,
    stop: &CancellationToken,
) -> (Vec<Found>, u64) {
    let mut order: Vec<usize> = (0..index.pages.len()).collect();
    order.retain(|at| !index.pages[*at].tasks.is_empty());
    order.sort_by_key(|at| (Reverse(index.pages[*at].date), *at));
    let (mut all, mut late) = (Vec::new(), 0);
    for at in order {
        let page = &index.pages[at];
        let wanted = page.tasks.iter().filter(|task| asked.tasks.take(**task));
        let placed = wanted.map(|task| (*task, unit_of(page, *task)));
        let taken = |(_, unit): &(Task, Option<usize>)| match unit {
            Some(unit) => asked.filter.takes(page, &page.units[*unit]),
            None => asked.filter.is_empty(),
        };
        let taken: Vec<(Task, Option<usize>)> = placed.filter(taken).collect();
        if taken.is_empty() {
            continue;
        }
        let lines = match stop.is_cancelled() {
            true => None,
            false => notes.lines_of(page),
        };
        let Some(lines) = lines else {
            late += 1;
            continue;
        };
        all.extend(taken.into_iter().filter_map(|(task, unit)| {
            let text = lines.get(task.line as usize - 1)?.clone();
            let has = had(page, unit, &text, &asked.question.words);
            Some(Found {
                page: at,
                unit,
                line: task.line,
                text,
                has,
            })
        }));
    }
    (all, late)
}

fn unit_of(page: &Page, task: Task) -> Option<usize> {
    let has = |unit: &Unit| (unit.first..=unit.last).contains(&task.line);
    page.units.iter().position(has)
}

/// How many of the words the item has, or the headings above it, or its note by title, tags and path.
fn had(page: &Page, unit: Option<usize>, text: &str, wanted: &[(String, Key)]) -> usize {
    let mut own = BTreeSet::new();
    let mut add = |text: &str| {
        words::each(text, |word| {
            own.insert(words::key(word));
        });
    };
    add(text);
    let section = unit.and_then(|unit| page.note.sections.get(page.units[unit].section));
    let headings = section.into_iter().flat_map(|section| &section.path);
    headings.for_each(|heading| add(heading));
    let has = |key: &Key| own.contains(key) || page.shares(*key) > 0.0;
    wanted.iter().filter(|(_, key)| has(key)).count()
}

/// The tasks as they are shown, those of one section together, and how many there are.
fn lines(notes: &Notes, index: &Index, found: &[Found], asked: &Asked<'_>) -> (String, usize) {
    let caps = notes.settings;
    let nothing = Telling::new();
    let mut text = String::new();
    let mut shown = 0;
    let of_section = |a: &Found, b: &Found| a.page == b.page && a.unit == b.unit;
    for group in found.chunk_by(of_section) {
        let Some(first) = group.first() else { continue };
        let path = index.shown(first.page);
        let page = &index.pages[first.page];
        let about = match first.unit {
            Some(unit) => report::about(page, &page.units[unit]),
            None => format!("in \"{}\"", on_one_line(page.title())),
        };
        let mut block = String::new();
        let mut of_block = 0;
        for task in group.iter().take(asked.most.saturating_sub(shown)) {
            let line = report::excerpt(&task.text, &nothing, caps.max_line_chars);
            // What the last lines take is left free.
            if text.len() + block.len() + line.len() + about.len() + 600 > caps.max_output_bytes {
                break;
            }
            let _ = writeln!(block, "{path}:{}: {line}", task.line);
            of_block += 1;
        }
        if of_block == 0 {
            break;
        }
        shown += of_block;
        let _ = writeln!(text, "{block}  {about}\n");
    }
    (text, shown)
}
