//! The answer to a plain question: the best places of a project, with their lines.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    excerpt,
    kind::FileKind,
    passages::{MAX_LINES, Shard},
    question::Question,
    rank::{Candidate, PassageScore, PassageScorer, candidates, resolved_terms},
};
use crate::tool::outline;

/// Maximum passages to examine closely, in all and of one file: a long changelog would displace all
/// others.
const MAX_EXAMINED: usize = 70;
const MAX_EXAMINED_PER_FILE: usize = 20;
/// Weight of a file's second best place.
const SECOND_PLACE_WEIGHT: f32 = 0.12;
/// Exponents of the bonus for many places in a file, and of the penalty for its length.
const BREADTH_EXPONENT: f32 = 0.12;
const LENGTH_EXPONENT: f32 = -0.04;
/// Maximum places in a file.
const PER_FILE: usize = 2;
/// Maximum lines in a place that are marked as matches.
const BEST_LINES: usize = 4;
const LINE_BYTES: usize = 8 * 1024;

#[derive(Debug, Default)]
pub(super) struct RankedPlaces {
    pub(super) places: Vec<RankedPlace>,
    pub(super) all: usize,
    pub(super) coverage: f64,
    pub(super) missing_terms: Vec<String>,
    /// How many words say what the question is about, and those of them that no file has.
    pub(super) words: usize,
    pub(super) absent: Vec<String>,
    pub(super) excerpt: Option<(u32, u32, String)>,
    pub(super) read_as: Vec<String>,
    pub(super) stopped: bool,
}

#[derive(Debug)]
pub(super) struct RankedPlace {
    pub(super) path: String,
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) within: Vec<String>,
    pub(super) description: String,
    pub(super) best: Vec<u64>,
    pub(super) lines: Vec<String>,
    score: f32,
    file: PathBuf,
    top: u32,
}

/// Answers a question from files that are `wanted`; `read` returns a file's display path and text.
pub(super) fn best(
    shards: &[Arc<Shard>],
    question: &str,
    most: usize,
    wanted: impl Fn(&Path) -> bool,
    mut read: impl FnMut(&Path) -> Option<(String, String)>,
    stop: impl Fn() -> bool,
) -> RankedPlaces {
    let question = Question::read(question);
    let resolved_terms = resolved_terms(shards, &question);
    let mut answer = RankedPlaces::default();
    for one in &resolved_terms {
        match one.correction() {
            Some(correction) => answer.read_as.push(correction),
            None if one.is_unknown() && !one.is_weak => answer.absent.push(one.shown.clone()),
            None => {}
        }
    }
    answer.words = resolved_terms.iter().filter(|one| !one.is_weak).count();
    let found = candidates(shards, &question, &resolved_terms, 8 * MAX_EXAMINED, wanted);
    let mut lens = PassageScorer::new(&resolved_terms, &question.run);
    let mut files: Vec<(f32, Vec<RankedPlace>)> = Vec::new();
    for of_file in by_file(shards, found) {
        if stop() && !files.is_empty() {
            answer.stopped = true;
            break;
        }
        let shard = &shards[of_file[0].shard];
        let entry = &shard.files[shard.passages[of_file[0].passage].file as usize];
        let Some((path, text)) = read(&entry.path) else {
            continue;
        };
        let lines: Vec<&str> = text.lines().take(MAX_LINES).collect();
        let of_tests =
            FileKind::Test.worth(question.preference) / FileKind::Code.worth(question.preference);
        let place = |one: Candidate| {
            let passage = shard.passages[one.passage];
            // The file may have become shorter since it was indexed.
            let last = (passage.last as usize).min(lines.len());
            let first = (passage.first as usize).min(last).max(1);
            let inside = lines.get(first - 1..last).unwrap_or(&[]);
            let PassageScore { factor, lines, .. } = lens.score_lines(inside);
            let mut order: Vec<usize> = (0..inside.len()).collect();
            order.retain(|at| lines[*at] > 0.0);
            order.sort_by(|a, b| lines[*b].total_cmp(&lines[*a]).then(a.cmp(b)));
            order.truncate(BEST_LINES);
            let top = first + order.first().copied().unwrap_or(0);
            let mut best: Vec<u64> = order.iter().map(|at| (first + at) as u64).collect();
            best.sort_unstable();
            let cut = |line: &&str| line[..line.floor_char_boundary(LINE_BYTES)].to_owned();
            let mut score = one.score * factor;
            if passage.is_test && entry.kind == FileKind::Code {
                score *= of_tests;
            }
            RankedPlace {
                path: path.clone(),
                first: first as u64,
                last: last as u64,
                top: top as u32,
                file: entry.path.clone(),
                within: Vec::new(),
                description: String::new(),
                best,
                lines: inside.iter().map(cut).collect(),
                score,
            }
        };
        let mut places: Vec<RankedPlace> = of_file.into_iter().map(place).collect();
        places.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.first.cmp(&b.first)));
        // Matches in the text count more than matches in the path alone.
        if places.iter().any(|place| !place.best.is_empty()) {
            places.retain(|place| !place.best.is_empty());
        }
        answer.all += places.len();
        let breadth = (1.0 + places.len() as f32).powf(BREADTH_EXPONENT)
            * (lines.len().max(1) as f32).powf(LENGTH_EXPONENT);
        let second = places.get(1).map_or(0.0, |place| place.score);
        let worth = (places[0].score + SECOND_PLACE_WEIGHT * second) * breadth;
        places.truncate(PER_FILE);
        files.push((worth, places));
    }
    files.sort_by(|(a, of_a), (b, of_b)| {
        b.total_cmp(a).then_with(|| of_a[0].path.cmp(&of_b[0].path))
    });
    let places = files.into_iter().flat_map(|(_, places)| places);
    answer.places.extend(places.take(most));
    for (at, found) in answer.places.iter_mut().enumerate() {
        if let Some((path, text)) = read(&found.file) {
            let symbols = outline::outline(&path, &text);
            let (place, top) = ((found.first as u32, found.last as u32), found.top);
            let symbol = excerpt::symbol(&symbols, top, place);
            let lines: Vec<&str> = text.lines().take(MAX_LINES).collect();
            found.within = symbol.map_or_else(Vec::new, |symbol| names(&symbols, symbol));
            found.description = excerpt::description(&path, &lines, &symbols, symbol, top);
            if at == 0 {
                answer.excerpt = Some(excerpt::excerpt(&lines, &symbols, symbol, top, place));
            }
        }
    }
    if let Some(best) = answer.places.first() {
        let around = [&best.path].into_iter().chain(&best.within);
        let lines: Vec<&str> = around.chain(&best.lines).map(String::as_str).collect();
        (answer.coverage, answer.missing_terms) = lens.coverage(&lines);
    }
    answer
}

fn by_file(shards: &[Arc<Shard>], found: Vec<Candidate>) -> Vec<Vec<Candidate>> {
    let mut files: Vec<Vec<Candidate>> = Vec::new();
    let mut places: HashMap<(usize, u32), usize> = HashMap::new();
    let mut left = MAX_EXAMINED;
    for one in found {
        if left == 0 {
            break;
        }
        let file = shards[one.shard].passages[one.passage].file;
        let at = *places.entry((one.shard, file)).or_insert_with(|| {
            files.push(Vec::new());
            files.len() - 1
        });
        if files[at].len() < MAX_EXAMINED_PER_FILE {
            files[at].push(one);
            left -= 1;
        }
    }
    files
}

fn names(symbols: &[outline::Symbol], inner: &outline::Symbol) -> Vec<String> {
    let names = outline::lineage(symbols, inner)
        .flat_map(|symbol| [Some(&symbol.name), symbol.owner.as_ref()]);
    let mut names: Vec<String> = names.flatten().map(|name| name.to_string()).collect();
    names.reverse();
    names
}
