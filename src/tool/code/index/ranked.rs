//! The best places of a project for a question, by file.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};

use tokio_util::sync::CancellationToken;

use super::{
    kind::Kind,
    own::{self, Names},
    project::{Known, Ready},
    refresh::read,
    score::{Candidate, Sought, candidates, sought},
    segment::MOST_LINES,
    state::Status,
    weigh::{Closer, Lens},
    within::{Frame, Spot},
};
use crate::{
    tool::{CodeSearchSettings, ProjectRoot, code::place::Place},
    words::{Asked, Sort, Tongue},
};

/// How many passages are looked at closely.
const CLOSELY: usize = 70;
/// Of how many, and how many of one file at most: a long changelog would leave no room for others.
const AMONG: usize = 8 * CLOSELY;
const CLOSELY_OF_A_FILE: usize = 20;
/// What has so much of a word has the word.
const ENOUGH: f32 = 0.5;
const HALF: u32 = 50;
/// What the second best place of a file adds to it.
const SECOND: f32 = 0.12;
/// How much more a file is worth with many places that may answer, and how much less with many lines: the
/// longer it is, the more it has by chance. Both are exponents.
const BREADTH: f32 = 0.12;
const LENGTH: f32 = -0.04;
/// Most places of one file.
const PER_FILE: usize = 3;
/// Lines of a place that are marked as what was found.
const BEST_LINES: usize = 4;

/// Most of a line that is kept to be shown and judged, in bytes; no more can be shown.
const LINE_BYTES: usize = 8 * 1024;

/// The best places, and what is to be said beside them.
#[derive(Debug, Default)]
pub(in crate::tool::code) struct Ranked {
    /// The best first.
    pub(in crate::tool::code) files: Vec<RankedFile>,
    /// Places that were good enough to be looked at closely, shown or not.
    pub(in crate::tool::code) places: usize,
    pub(in crate::tool::code) searched: u64,
    pub(in crate::tool::code) binary: u64,
    pub(in crate::tool::code) too_big: u64,
    pub(in crate::tool::code) unreadable: u64,
    pub(in crate::tool::code) links: u64,
    pub(in crate::tool::code) special: u64,
    pub(in crate::tool::code) left_out: u64,
    /// Whether it ended before all good places were looked at closely.
    pub(in crate::tool::code) stopped: bool,
    /// Words that are in no file, and those that were read as others.
    pub(in crate::tool::code) unknown: Vec<String>,
    pub(in crate::tool::code) read_as: Vec<(String, String)>,
    /// Of the words that nobody would leave out, those that the best file does not have close
    /// together, and how much of the question the others are, in hundredths.
    pub(in crate::tool::code) lacking: Vec<String>,
    pub(in crate::tool::code) covered: u32,
}

/// A file and its best places, by line.
#[derive(Debug)]
pub(in crate::tool::code) struct RankedFile {
    pub(in crate::tool::code) path: String,
    pub(in crate::tool::code) lines: usize,
    pub(in crate::tool::code) places: Vec<Shown>,
}

impl RankedFile {
    /// Whether nothing stands in its best place.
    fn is_blank(&self) -> bool {
        let best = self.places.first();
        best.is_none_or(|place| place.text.iter().all(|(_, line)| line.trim().is_empty()))
    }
}

/// A place: its lines from 1, what they stand in, and which of them matter.
#[derive(Debug)]
pub(in crate::tool::code) struct Shown {
    pub(in crate::tool::code) first: u64,
    pub(in crate::tool::code) last: u64,
    /// The names of what it is and what is around it, outermost first.
    pub(in crate::tool::code) within: Vec<String>,
    pub(in crate::tool::code) best: Vec<u64>,
    /// The lines of the place.
    pub(in crate::tool::code) text: Vec<(u64, String)>,
    /// The line that matters most.
    top: u64,
    score: f32,
    /// Whether its own lines have something of the question.
    has_own: bool,
}

/// A file, and its passages that may answer with their lines.
struct OfFile {
    path: PathBuf,
    kind: Kind,
    passages: Vec<(Candidate, u32, u32)>,
}

/// Finds the best places. At most `most` are kept. What is known may change again before the files
/// are read: slow ones keep nobody else waiting. Stopped, it shows the best of the files that it has read,
/// one at least.
pub(in crate::tool::code) fn rank(
    ready: Ready<'_>,
    root: &ProjectRoot,
    place: &Place,
    question: &str,
    settings: &CodeSearchSettings,
    most: usize,
    stop: &CancellationToken,
) -> Ranked {
    let known = ready.known;
    let asked = Asked::read(question);
    let state = &known.state;
    let whole = place.is_whole();
    let wanted = |path: &Path| whole || path.starts_with(place.start()) && place.covers(path);
    let mut ranked = counts(&known, &wanted);
    let sought = sought(state, &asked);
    for (concept, one) in asked.concepts.iter().zip(&sought) {
        if concept.sort == Sort::Part {
            continue;
        }
        match &one.read_as {
            Some(read_as) => ranked
                .read_as
                .push((concept.shown.clone(), read_as.clone())),
            None if one.unknown => ranked.unknown.push(concept.shown.clone()),
            None => {}
        }
    }
    let found = candidates(state, &asked, &sought, AMONG, |file| {
        state.entry(file).is_some_and(|entry| wanted(&entry.path))
    });
    let mut lens = Lens::new(&sought, &asked.run);
    let read_as = ranked.read_as.clone();
    let names = Names::of(&asked, &read_as);
    // The file of the best passage first.
    let mut by_file: Vec<OfFile> = Vec::new();
    let mut places: HashMap<u32, usize> = HashMap::new();
    let mut looked_at = 0;
    for candidate in &found {
        if looked_at >= CLOSELY {
            break;
        }
        if let Some((entry, passage)) = state.passage(*candidate) {
            let at = *places.entry(passage.file).or_insert_with(|| {
                by_file.push(OfFile {
                    path: entry.path.clone(),
                    kind: entry.kind,
                    passages: Vec::new(),
                });
                by_file.len() - 1
            });
            let passages = &mut by_file[at].passages;
            if passages.len() < CLOSELY_OF_A_FILE {
                passages.push((*candidate, passage.first, passage.last));
                looked_at += 1;
            }
        }
    }
    drop(known);
    let mut files: Vec<(f32, OfFile, RankedFile)> = Vec::new();
    let mut buffer = Vec::new();
    for mut of_file in by_file {
        if stop.is_cancelled() && !files.is_empty() {
            ranked.stopped = true;
            break;
        }
        if read(root, &of_file.path, settings.max_file_bytes, &mut buffer).is_err() {
            continue;
        }
        let text = String::from_utf8_lossy(&buffer);
        let lines: Vec<&str> = text.lines().take(MOST_LINES).collect();
        let tests = own::inline_tests(&lines);
        let mut places: Vec<Shown> = std::mem::take(&mut of_file.passages)
            .into_iter()
            .filter_map(|(candidate, first, last)| shown(&mut lens, &lines, candidate, first, last))
            .collect();
        for place in &mut places {
            let inside = &lines[place.first as usize - 1..(place.last as usize).min(lines.len())];
            place.score *= names.factor(Tongue::of(&of_file.path.to_string_lossy()), inside);
            let is_test = tests
                .iter()
                .any(|(first, last)| (*first..=*last).contains(&place.first));
            if is_test {
                place.score *= Kind::worth_within_code(asked.drift);
            }
        }
        places.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.first.cmp(&b.first)));
        // What only the path speaks for says less than what has words of its own.
        let has_own = places.iter().any(|place| place.has_own);
        places.retain(|place| place.has_own || !has_own);
        let breadth = breadth(places.len(), lines.len());
        ranked.places += places.len();
        places.truncate(settings.max_per_file.min(PER_FILE));
        let best = places.first().map_or(0.0, |place| place.score);
        let second = places.get(1).map_or(0.0, |place| place.score);
        let path = root.shown(&of_file.path);
        files.push((
            (best + SECOND * second) * breadth,
            of_file,
            RankedFile {
                path,
                lines: text.lines().count(),
                places,
            },
        ));
    }
    files.sort_by(|a, b| {
        // However well its name fits, where nothing stands there is no answer.
        let by_text = a.2.is_blank().cmp(&b.2.is_blank());
        let by_worth = by_text.then(b.0.total_cmp(&a.0));
        by_worth.then_with(|| a.2.path.cmp(&b.2.path))
    });
    let mut left = most;
    for (_, of_file, mut file) in files {
        // Of files further down only the best place is worth its room.
        let room = if ranked.files.len() < 3 {
            left
        } else {
            left.min(1)
        };
        file.places.truncate(room);
        left -= file.places.len();
        if file.places.is_empty() {
            break;
        }
        if read(root, &of_file.path, settings.max_file_bytes, &mut buffer).is_ok() {
            name_places(&mut file, of_file.kind, &String::from_utf8_lossy(&buffer));
        }
        ranked.files.push(file);
    }
    if let Some(best) = ranked.files.first() {
        (ranked.lacking, ranked.covered) = judge(&mut lens, &asked, &sought, best);
    }
    ranked
}

/// What a file is worth by how many places may answer, and how many lines it has.
fn breadth(places: usize, lines: usize) -> f32 {
    (1.0 + places as f32).powf(BREADTH) * (lines.max(1) as f32).powf(LENGTH)
}

/// Says what the places of a file stand in. Its text is read again for that: to keep the texts of all
/// files that may be shown would take too much memory.
fn name_places(file: &mut RankedFile, kind: Kind, text: &str) {
    let lines: Vec<&str> = text.lines().take(MOST_LINES).collect();
    let frame = Frame::new(&file.path, kind, text, &lines);
    for place in &mut file.places {
        place.within = frame.around(Spot {
            first: place.first,
            last: place.last,
            top: place.top,
        });
    }
}

/// Which of the needed words the best file does not have in its best place, and how much of all
/// needed words it has, in hundredths: rare ones count more.
fn judge(
    lens: &mut Lens<'_>,
    asked: &Asked,
    sought: &[Sought],
    best: &RankedFile,
) -> (Vec<String>, u32) {
    let Some(place) = best.places.first() else {
        return (Vec::new(), 0);
    };
    let around = [best.path.as_str()]
        .into_iter()
        .chain(place.within.iter().map(String::as_str));
    let text: Vec<&str> = match best.is_blank() {
        // A name alone says nothing of what was asked.
        true => Vec::new(),
        false => around
            .chain(place.text.iter().map(|(_, line)| line.as_str()))
            .collect(),
    };
    let has = lens.look(&text).has;
    let says_changes = Kind::of(&best.path).is_prose();
    let (mut all, mut had, mut lacking, mut whole) = (0.0_f32, 0.0_f32, Vec::new(), true);
    for ((concept, one), has) in asked.concepts.iter().zip(sought).zip(has) {
        if matches!(concept.sort, Sort::Weak | Sort::Part) {
            continue;
        }
        all += one.full;
        // Of what is new in a version, code and settings that name one say nothing.
        let of_another = concept.sort == Sort::Version && asked.drift.change && !says_changes;
        let has = if one.is_guessed || of_another {
            0.0
        } else {
            has
        };
        had += has.min(one.full);
        if has < one.full * ENOUGH {
            lacking.push(concept.shown.clone());
            whole &= !matches!(concept.sort, Sort::Name | Sort::Version);
        }
    }
    let covered = (had * 100.0 / all.max(f32::MIN_POSITIVE)) as u32;
    // Without the very name or version that was asked for it is about something else.
    (lacking, if whole { covered } else { covered.min(HALF) })
}

fn shown(
    lens: &mut Lens<'_>,
    lines: &[&str],
    candidate: Candidate,
    first: u32,
    last: u32,
) -> Option<Shown> {
    // The file may have become shorter since it was read.
    let last = (last as usize).min(lines.len());
    let first = (first as usize).min(last).max(1);
    let text = lines.get(first - 1..last)?;
    let Closer {
        factor,
        lines: weights,
        ..
    } = lens.look(text);
    let mut order: Vec<usize> = (0..text.len()).filter(|at| weights[*at] > 0.0).collect();
    order.sort_by(|a, b| weights[*b].total_cmp(&weights[*a]).then(a.cmp(b)));
    order.truncate(BEST_LINES);
    let top = (first + order.first().copied().unwrap_or(0)) as u64;
    let number = |at: usize| (first + at) as u64;
    let mut best: Vec<u64> = order.iter().map(|at| number(*at)).collect();
    best.sort_unstable();
    let has_own = !best.is_empty();
    if !has_own {
        // Found by its path alone.
        best.push(first as u64);
    }
    Some(Shown {
        first: first as u64,
        last: last as u64,
        within: Vec::new(),
        top,
        best,
        text: text
            .iter()
            .enumerate()
            .map(|(at, line)| (number(at), head_of(line).to_owned()))
            .collect(),
        score: candidate.score * factor,
        has_own,
    })
}

/// As much of a line as is kept.
fn head_of(line: &str) -> &str {
    &line[..line.floor_char_boundary(LINE_BYTES)]
}

fn counts(known: &Known, wanted: &impl Fn(&Path) -> bool) -> Ranked {
    let mut ranked = Ranked {
        unreadable: known.passed.unreadable,
        links: known.passed.links,
        special: known.passed.special,
        left_out: known.passed.left_out,
        ..Ranked::default()
    };
    for (_, entry) in known
        .state
        .entries()
        .filter(|(_, entry)| wanted(&entry.path))
    {
        match entry.status {
            Status::Text => ranked.searched += 1,
            Status::Binary => ranked.binary += 1,
            Status::TooBig => ranked.too_big += 1,
            Status::Unreadable => ranked.unreadable += 1,
            Status::LeftOut | Status::Cut => ranked.left_out += 1,
        }
    }
    ranked
}
