//! What is asked of tools for the uses of a name: its lines first, then what tells whose they are.

use super::{
    super::{
        evidence::Evidence,
        kin::Kin,
        question::{Aspect, Qualified, Question},
        toolbox::{Naming, Planned, Toolbox},
        uses::{Spot, Uses},
    },
    opening::places,
};

/// Most files that are looked at for what a name lies in, or for where their tests begin.
const MOST_FILES: usize = 3;
/// Most variables that are looked for among what is imported.
const MOST_IMPORTS: usize = 6;

/// The lines that say what the name lies in.
pub(super) fn said(question: &Question, tools: &Toolbox<'_>) -> Option<Planned> {
    let of = question.used_of()?;
    tools.search_name(&of.name, Naming::Of(&of.owner))
}

/// Its calls and what code has it, if not all lines that have a name were shown and few that were use it;
/// what the whole question has, if none has it but what defines it.
pub(super) fn again(question: &Question, evidence: &Evidence, tools: &Toolbox<'_>) -> Vec<Planned> {
    let Some(name) = question.used_name() else {
        return Vec::new();
    };
    if question.is_of_kin {
        return match Kin::of(evidence, name).is_empty() {
            true => places(question, tools),
            false => Vec::new(),
        };
    }
    let of = question.used_of();
    let uses = Uses::of_owned(evidence, name, of.as_ref().map(|of| &*of.owner));
    let narrower: Vec<Planned> = match uses.is_cut() && uses.are_few() {
        true => {
            let code = uses
                .language()
                .and_then(|ending| tools.search_name(name, Naming::In(ending)));
            let calls = tools.search_name(name, Naming::Calls);
            calls.into_iter().chain(code).collect()
        }
        false => Vec::new(),
    };
    match narrower.is_empty() && uses.is_empty() {
        true => places(question, tools),
        false => [
            narrower,
            definitions(of.as_ref(), &uses, tools),
            imports(evidence, of.as_ref(), &uses, tools),
            tests(question, &uses, tools),
        ]
        .concat(),
    }
}

/// What lies around the definitions of a name in something.
fn definitions(of: Option<&Qualified>, uses: &Uses<'_>, tools: &Toolbox<'_>) -> Vec<Planned> {
    let Some(of) = of else { return Vec::new() };
    let files = files(uses.defined.iter());
    let reads = files.filter_map(|path| tools.read_symbol(path, &of.shown));
    reads.take(MOST_FILES).collect()
}

/// Which of the variables that have it are modules of Python.
fn imports(
    evidence: &Evidence,
    of: Option<&Qualified>,
    uses: &Uses<'_>,
    tools: &Toolbox<'_>,
) -> Vec<Planned> {
    let Some(of) = of else { return Vec::new() };
    let lines = uses.unsure.iter().filter(|spot| spot.path.ends_with(".py"));
    let lines = lines.filter_map(|spot| evidence.files.get(spot.path)?.get(&spot.line));
    let mut names: Vec<&str> = Vec::new();
    for name in lines.flat_map(|line| receivers(line, &of.name)) {
        if !names.contains(&name) && names.len() < MOST_IMPORTS {
            names.push(name);
        }
    }
    let Some(told) = names.first().map(|first| format!("import {first}")) else {
        return Vec::new();
    };
    let pattern = format!(r"^\s*import\s(?:.*[\s.,])?(?:{})\b", names.join("|"));
    tools
        .search_lines(&pattern, "*.py", &told)
        .into_iter()
        .collect()
}

fn receivers<'a>(line: &'a str, name: &str) -> Vec<&'a str> {
    let places = line.match_indices(name).map(|(at, _)| &line[..at]);
    let named = places.filter_map(|before| before.strip_suffix('.'));
    let names = named.map(|before| {
        let start = before.rfind(|c: char| !c.is_alphanumeric() && c != '_');
        start.map_or(before, |at| {
            before[at..].trim_start_matches(|c: char| !c.is_alphanumeric() && c != '_')
        })
    });
    names
        .filter(|name| name.starts_with(|c: char| c.is_ascii_lowercase()) && name.is_ascii())
        .collect()
}

/// Where the tests begin in the files of Rust that have the name.
fn tests(question: &Question, uses: &Uses<'_>, tools: &Toolbox<'_>) -> Vec<Planned> {
    let is_asked = question.aspect == Some(Aspect::Tests);
    let spots = uses.defined.iter().chain(&uses.used).chain(&uses.unsure);
    let files = files(spots.filter(|_| is_asked)).filter(|path| path.ends_with(".rs"));
    let begin = r"^(?:#\[cfg\(test\)\]|mod tests\b)";
    let searches = files.filter_map(|path| tools.search_lines(begin, path, "mod tests"));
    searches.take(MOST_FILES).collect()
}

fn files<'a>(spots: impl Iterator<Item = &'a Spot<'a>>) -> impl Iterator<Item = &'a str> {
    let mut files: Vec<&str> = Vec::new();
    for spot in spots {
        if !files.contains(&spot.path) {
            files.push(spot.path);
        }
    }
    files.into_iter()
}

/// Whether something has the name whose uses are asked for, besides what defines it.
pub(super) fn has_uses(question: &Question, evidence: &Evidence) -> bool {
    let has_any = |name| match question.is_of_kin {
        true => !Kin::of(evidence, name).is_empty(),
        false => !Uses::of(evidence, name).is_empty(),
    };
    question.used_name().is_some_and(has_any)
}
