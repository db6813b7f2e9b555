//! Measures how well `code_search` answers the questions in `tests/data/questions`, whose README
//! defines the scores: one call in the mode `words` per question, over real projects. Prints each
//! group's scores beside their bars, sums by project, kind and style, and the misses of `tune`.
//!
//! Run `python3 tests/data/questions/fetch.py /tmp/questions`, then `cargo bench --bench questions
//! -- /tmp/questions`. Further arguments are `final` (sums only), or words to select rows by;
//! `show` prints their results.
#![expect(
    clippy::unwrap_used,
    reason = "a measurement that cannot run should stop where it failed"
)]
#![expect(clippy::disallowed_methods, reason = "real time is what is measured")]
#![expect(clippy::print_stdout, reason = "a measurement shows its figures")]

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use oracle_agent::{
    llm::offline::SURE,
    model::tool::SearchData,
    testkit::tool_context,
    tool::{CodeSearchSettings, FnTool, ProjectRoot, Tool as _, ToolOutput, code_search},
};
use serde::Deserialize as _;
use serde_json::json;

const QUESTIONS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/questions");
/// Projects whose questions were written together; each group has its own bars.
const GROUPS: [(&str, &[&str]); 4] = [
    ("first group", &["axum", "fastify", "sphinx"]),
    ("second group", &["tokio", "eslint", "django", "rdkafka"]),
    ("third group", &["diesel", "rxjs", "scrapy", "libgit2"]),
    ("fourth group", &["rustls", "webpack", "celery", "rocksdb"]),
];

fn main() {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with("--"))
        .collect();
    let Some((folder, options)) = arguments.split_first() else {
        println!("say where fetch.py put the projects: see the head of benches/questions.rs");
        return;
    };
    let is_final = options.iter().any(|option| option == "final");
    let show = options.iter().any(|option| option == "show");
    let wanted: Vec<&String> = options
        .iter()
        .filter(|option| !["final", "show"].contains(&option.as_str()))
        .collect();
    let split = if is_final { "final" } else { "tune" };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for (group, projects) in GROUPS {
        let mut scores = Vec::new();
        for project in projects.iter().copied() {
            let rows: Vec<Row> = rows(project)
                .into_iter()
                .filter(|row| row.split == split)
                .filter(|row| wanted.iter().all(|word| row.line.contains(*word)))
                .collect();
            if rows.is_empty() {
                continue;
            }
            let root = Path::new(folder).join(project);
            scores.extend(runtime.block_on(ask(root, rows, show && !is_final)));
        }
        // All of its rows may belong to the other split.
        if scores.is_empty() {
            continue;
        }
        if !is_final {
            misses(&scores);
        }
        sums(&format!("{split}, {group}"), &scores);
    }
}

struct Row {
    line: String,
    id: String,
    project: &'static str,
    split: String,
    kind: String,
    style: String,
    question: String,
    places: Vec<(String, u64, u64)>,
}

fn rows(project: &'static str) -> Vec<Row> {
    let text = fs::read_to_string(format!("{QUESTIONS}/{project}.tsv")).unwrap();
    let rows = text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    rows.map(|line| {
        let fields: Vec<&str> = line.split('\t').collect();
        let places = fields
            .get(5)
            .into_iter()
            .flat_map(|places| places.split(' '));
        Row {
            line: line.to_owned(),
            id: fields[0].to_owned(),
            project,
            split: fields[1].to_owned(),
            kind: fields[2].to_owned(),
            style: fields[3].to_owned(),
            question: fields[4].to_owned(),
            places: places
                .filter(|place| !place.is_empty())
                .map(place)
                .collect(),
        }
    })
    .collect()
}

fn place(text: &str) -> (String, u64, u64) {
    let (path, lines) = text.rsplit_once(':').unwrap();
    let (first, last) = lines.split_once('-').unwrap();
    (
        path.to_owned(),
        first.parse().unwrap(),
        last.parse().unwrap(),
    )
}

struct Score {
    row: Row,
    coverage: f64,
    took: Duration,
    /// Rank of the first right file, from 0.
    rank: Option<usize>,
    files: Vec<String>,
    touches: bool,
    cited: usize,
    held: usize,
    /// Characters of the text for the model.
    text: usize,
}

async fn ask(root: PathBuf, rows: Vec<Row>, show: bool) -> Vec<Score> {
    let settings = CodeSearchSettings {
        deadline: Duration::from_secs(60),
        ..CodeSearchSettings::default()
    };
    let tool = code_search(ProjectRoot::open(&root).unwrap(), settings);
    let mut scores = Vec::new();
    // The first question builds the index, so it is none of the rows.
    search(&tool, "where does it begin?").await;
    for row in rows {
        let start = Instant::now();
        let output = search(&tool, &row.question).await;
        let took = start.elapsed();
        if show {
            println!("── {} {}\n{}\n", row.id, row.question, output.text);
        }
        scores.push(score(&root, row, &output, took));
    }
    scores
}

async fn search(tool: &FnTool, question: &str) -> ToolOutput {
    let arguments = json!({"query": question, "mode": "words"});
    tool.call(arguments, tool_context()).await.unwrap()
}

fn score(root: &Path, row: Row, output: &ToolOutput, took: Duration) -> Score {
    let data = SearchData::deserialize(output.data.as_ref().unwrap()).unwrap();
    let held = data
        .places
        .iter()
        .filter(|place| holds(root, &place.path, place.start, place.end))
        .count();
    let mut files: Vec<String> = Vec::new();
    for place in &data.places {
        if !files.contains(&place.path) {
            files.push(place.path.clone());
        }
    }
    let right = |path: &String| row.places.iter().any(|place| place.0 == *path);
    let touches = data.places.iter().take(3).any(|found| {
        let mut places = row.places.iter();
        places.any(|place| place.0 == found.path && place.1 <= found.end && found.start <= place.2)
    });
    Score {
        rank: files.iter().position(right),
        touches,
        cited: data.places.len(),
        held,
        coverage: data.coverage,
        took,
        files,
        text: output.text.chars().count(),
        row,
    }
}

fn holds(root: &Path, path: &str, first: u64, last: u64) -> bool {
    let Ok(bytes) = fs::read(root.join(path)) else {
        return false;
    };
    let ends = bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
    let open = u64::from(bytes.last().is_some_and(|last| *last != b'\n'));
    (1..=last).contains(&first) && last <= ends + open
}

fn is_displaced(score: &Score) -> bool {
    score.coverage < SURE
}

fn misses(scores: &[Score]) {
    for score in scores {
        let row = &score.row;
        let files = score.files.iter().take(5).cloned().collect::<Vec<_>>();
        let took = score.took.as_millis();
        let say = |what: &str| {
            println!(
                "{what:<9} {} {}/{} {took} ms {:.2} | {}\n          found {}",
                row.id,
                row.kind,
                row.style,
                score.coverage,
                row.question,
                files.join(" ")
            );
        };
        match score.rank {
            _ if row.kind == "none" => {
                if !is_displaced(score) {
                    say("too sure");
                }
            }
            Some(0) => {
                if is_displaced(score) {
                    say("unsure");
                }
            }
            Some(rank) => say(&format!("rank {}", rank + 1)),
            None => say("missed"),
        }
        if score.held < score.cited {
            say("no such");
        }
    }
}

#[derive(Default)]
struct ScoreTotals {
    rows: usize,
    first: usize,
    three: usize,
    touches: usize,
    unsure: usize,
    none: usize,
    none_gives_way: usize,
    cited: usize,
    held: usize,
}

impl ScoreTotals {
    fn add(&mut self, score: &Score) {
        self.cited += score.cited;
        self.held += score.held;
        let unsure = usize::from(is_displaced(score));
        if score.row.kind == "none" {
            self.none += 1;
            self.none_gives_way += unsure;
            return;
        }
        self.rows += 1;
        self.first += usize::from(score.rank == Some(0));
        self.three += usize::from(score.rank.is_some_and(|rank| rank < 3));
        self.touches += usize::from(score.touches);
        self.unsure += unsure;
    }
}

fn sums(split: &str, scores: &[Score]) {
    let mut sums: BTreeMap<String, ScoreTotals> = BTreeMap::new();
    for score in scores {
        let row = &score.row;
        for of in [
            format!("project {}", row.project),
            format!("kind {}", row.kind),
            format!("style {}", row.style),
            "total".to_owned(),
        ] {
            sums.entry(of).or_default().add(score);
        }
    }
    println!(
        "\n{:<20} first  three  lines  unsure  of | none gives way",
        split
    );
    for (of, sum) in &sums {
        println!(
            "{of:<20} {:>5}  {:>5}  {:>5}  {:>6}  {:>2} | {} of {}",
            sum.first, sum.three, sum.touches, sum.unsure, sum.rows, sum.none_gives_way, sum.none
        );
    }
    let Some(total) = sums.get("total") else {
        return;
    };
    let bar = |name: &str, part: usize, of: usize, bar: usize| {
        let percent = part as f64 * 100.0 / of.max(1) as f64;
        let verdict = if part * 100 >= bar * of {
            "holds"
        } else {
            "MISSED"
        };
        println!("{name:<28} {percent:>5.1} % ({part} of {of}), bar {bar} %: {verdict}");
    };
    println!();
    bar("right file first", total.first, total.rows, 66);
    bar("right file among three", total.three, total.rows, 78);
    bar("places exist", total.held, total.cited, 100);
    bar("no answer: given up", total.none_gives_way, total.none, 90);
    let text: usize = scores.iter().map(|score| score.text).sum();
    println!(
        "text: {} characters on the average",
        text / scores.len().max(1)
    );
    let mut times: Vec<Duration> = scores.iter().map(|score| score.took).collect();
    times.sort_unstable();
    if let (Some(middle), Some(longest)) = (times.get(times.len() / 2), times.last()) {
        println!(
            "time: median {} ms, longest {} ms",
            middle.as_millis(),
            longest.as_millis()
        );
    }
}
