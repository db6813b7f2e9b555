//! What is asked of tools for a name in something, as long as no place is known that defines it there.

use super::{
    super::{
        evidence::Evidence,
        question::{Qualified, Question},
        rank::{About, Lies, Passage, Ranking, lies, names},
        source::FileKind,
        toolbox::{Naming, Planned, Toolbox},
    },
    distinct,
};

/// Most files in which it is looked for at a time.
const MOST_FILES: usize = 2;

/// Where it may be: in the files that have what it lies in, then in those that define such a name. Lines that say both
/// are looked for, and what defines either, if it is not known.
pub(super) fn proving(
    question: &Question,
    evidence: &Evidence,
    ranking: &Ranking,
    tools: &Toolbox<'_>,
) -> Vec<Planned> {
    let (Some(qualified), Some(sought)) = (&question.qualified, question.sought()) else {
        return Vec::new();
    };
    let passages = ranking.passages.iter();
    let is_proven = |one: &Passage| lies(one, evidence, sought) != Lies::Elsewhere;
    if passages.clone().any(is_proven) {
        return Vec::new();
    }
    let defining = |name: &str| {
        let of_name = passages.clone().filter(|one| defines(one, name));
        of_name.map(|one| one.path.as_str()).collect::<Vec<_>>()
    };
    let (owners, named) = (owners(qualified, evidence), defining(&qualified.name));
    let owning = defining(&qualified.owner);
    let is_unknown = owners.is_empty() && owning.is_empty();
    let of_name = named.is_empty().then_some(&qualified.name);
    let of_owner = is_unknown.then_some(&qualified.owner);
    let searches = [of_name, of_owner].into_iter().flatten();
    let searches = searches.filter_map(|name| tools.search_name(name, Naming::Definition));
    let both = tools.search_name(&qualified.name, Naming::Of(&qualified.owner));
    let files = owners.into_iter().chain(owning).chain(named);
    let mut files: Vec<&str> = files
        .filter(|path| FileKind::of(path) != FileKind::Docs)
        .collect();
    let mut seen = Vec::new();
    files.retain(|path| {
        !seen.contains(path) && {
            seen.push(*path);
            true
        }
    });
    let reads = files.into_iter();
    let reads = reads.filter_map(|path| tools.read_symbol(path, &qualified.shown));
    distinct(
        both.into_iter()
            .chain(reads.take(MOST_FILES))
            .chain(searches),
    )
}

fn defines(passage: &Passage, wanted: &str) -> bool {
    matches!(&passage.about, Some(About::Definition(name)) if name == wanted)
}

/// The files of places in what it lies in.
fn owners<'a>(qualified: &Qualified, evidence: &'a Evidence) -> Vec<&'a str> {
    let is_in = |name: &String| names(name, &qualified.owner) != Lies::Elsewhere;
    let places = evidence.places.iter();
    let places = places.filter(|place| place.within.iter().any(is_in));
    places.map(|place| place.path.as_str()).collect()
}
