//! What is read to tell a fact of the project: the files at its top that may state it.

use super::super::{
    evidence::Evidence,
    interest::Fact,
    manifest,
    toolbox::{Planned, Toolbox},
};

/// Most files that are read.
const MOST_READ: usize = 4;
/// As much of each as one call may show.
const LINES: u32 = 400;
/// As much as is read of one.
const MOST_LINES: u32 = 1_200;
/// What is tried where the files at the top are not known by name.
pub(super) const USUAL: [&str; 4] = ["Cargo.toml", "package.json", "pyproject.toml", "LICENSE"];
/// What gives a version in code, and where: projects whose manifest takes it from there.
const IN_CODE: &str = r#"(?i)(?:^|\s)_*version_*\b\s*(?::\s*\w+\s*)?(?:=|\s)\s*["']v?\d+\.\d+"#;
const CODE: &str = "{*version*,__init__.py}";

/// The files at the top that may state it; for a version that none of them states, what code says.
pub(super) fn again(fact: Fact, evidence: &Evidence, tools: &Toolbox<'_>) -> Vec<Planned> {
    let known = evidence.top_files();
    let telling = manifest::telling(fact, known.iter().copied());
    let files = match known.is_empty() {
        true => manifest::telling(fact, USUAL.into_iter()),
        false => telling,
    };
    let files = files.into_iter().take(MOST_READ);
    let reads: Vec<Planned> = files
        .filter_map(|path| {
            let first = next_line(fact, path, evidence)?;
            tools.read_lines(path, first, first + LINES - 1)
        })
        .collect();
    let is_stated = || manifest::all_stated(fact, evidence).next().is_some();
    match fact {
        Fact::Version if reads.is_empty() && !is_stated() => tools
            .search_lines(IN_CODE, CODE, "version")
            .into_iter()
            .collect(),
        _ => reads,
    }
}

/// From which line on a file is to be read: a long manifest says it further down. None if there is no need.
fn next_line(fact: Fact, path: &str, evidence: &Evidence) -> Option<u32> {
    let known = evidence.files.get(path);
    let read = known.and_then(|lines| (1..).take_while(|at| lines.contains_key(at)).last());
    match read {
        Some(last) if last >= LINES => {
            let is_stated = manifest::all_stated(fact, evidence).any(|told| told.path == path);
            (!is_stated && last < MOST_LINES).then_some(last + 1)
        }
        Some(_) | None => Some(1),
    }
}
