//! The answer to where a name is used: its uses with what is around them, where it is defined, and how much
//! was not looked at.

use super::{
    super::{
        protocol::{Percent, Stand, inert_path},
        question::Aspect,
        quote::{in_sentence, quote},
        rank::Passage,
        source::enclosing,
        uses::Spot,
    },
    Case, Said, cited_files, source_types,
};

mod tested;
mod told;

use told::Told;

/// Most uses that are quoted, and most others that are named.
const MOST_QUOTED: usize = 3;
const MOST_NAMED: usize = 12;

/// How sure that is if all lines with the name are known, and if not.
pub(super) const OF_ALL: Percent = Percent(75);
pub(super) const OF_SOME: Percent = Percent(60);

/// None if no use was asked for, or nothing has the name.
pub(super) fn compose(case: &Case<'_>) -> Option<Said> {
    let uses = told::of(case)?;
    match case.question.aspect {
        Some(Aspect::Tests) => Some(tested::compose(case, &uses)),
        Some(Aspect::Methods | Aspect::Members | Aspect::Fields) | None => composed(case, &uses),
    }
}

fn composed(case: &Case<'_>, told: &Told<'_>) -> Option<Said> {
    let uses = &told.uses;
    let spots = told.spots();
    let (quoted, mut blocks) = (quoted(spots), vec![told.lead()]);
    let passages: Vec<Passage> = quoted.iter().map(|spot| passage(case, *spot)).collect();
    blocks.extend(passages.iter().map(|passage| quote(passage, case.evidence)));
    let rest = spots.iter().filter(|spot| !quoted.contains(spot));
    let rest: Vec<Spot<'_>> = rest.copied().collect();
    if !rest.is_empty() {
        blocks.push(format!("Also in {}.", listed(&rest)));
    }
    blocks.extend(told.beside());
    let unseen = unseen(uses.unshown, uses.is_stopped);
    blocks.extend(
        unseen
            .iter()
            .map(|unseen| format!("Not looked at: {unseen}.")),
    );
    if spots != &*uses.defined
        && !uses.is_perhaps_of_another
        && let Some(definition) = uses.defined.first()
    {
        blocks.push(format!("It is defined in {}.", place(*definition)));
    }
    let shown: Vec<&Passage> = passages.iter().collect();
    let stand = match told.missing() {
        None => Stand::Sufficient {
            sources_found: cited_files(&shown).len(),
            source_types: source_types(&shown),
        },
        Some(missing) => Stand::Partial {
            missing,
            caveat: unseen.map(|unseen| format!("not looked at: {unseen}")),
        },
    };
    let sure = if uses.is_cut() { OF_SOME } else { OF_ALL };
    Some((blocks.join("\n\n"), stand, sure))
}

/// Places by their names, of which only so many are told.
pub(super) fn listed(spots: &[Spot<'_>]) -> String {
    let named: Vec<String> = spots
        .iter()
        .take(MOST_NAMED)
        .map(|spot| place(*spot))
        .collect();
    let more = match spots.len().saturating_sub(MOST_NAMED) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    format!("{}{more}", named.join(", "))
}

/// "and in 3 other places".
fn and_others(count: usize, is_cut: bool) -> String {
    match (count - 1, is_cut) {
        (0, _) => String::new(),
        (1, false) => " and in one other place".to_owned(),
        (1, true) => " and in at least one other place".to_owned(),
        (many, false) => format!(" and in {many} other places"),
        (many, true) => format!(" and in at least {many} other places"),
    }
}

/// What was found and not shown, or not even looked for.
pub(super) fn unseen(unshown: u64, is_stopped: bool) -> Option<String> {
    let lines = match unshown {
        0 => None,
        1 => Some("one more line that was found".to_owned()),
        many => Some(format!("{many} more lines that were found")),
    };
    let files = "some files, as the search was stopped at its deadline";
    let files = is_stopped.then(|| files.to_owned());
    let unseen: Vec<String> = lines.into_iter().chain(files).collect();
    (!unseen.is_empty()).then(|| unseen.join("; "))
}

/// Other files first: where in one file it is used once, it is seen there again.
fn quoted<'a>(spots: &[Spot<'a>]) -> Vec<Spot<'a>> {
    let mut quoted: Vec<Spot<'a>> = Vec::new();
    for spot in spots {
        let known = quoted.iter().any(|known| known.path == spot.path);
        if !known && quoted.len() < MOST_QUOTED {
            quoted.push(*spot);
        }
    }
    quoted
}

pub(super) fn place(spot: Spot<'_>) -> String {
    in_sentence(&format!("{}:{}", inert_path(spot.path), spot.line))
}

pub(super) fn passage(case: &Case<'_>, spot: Spot<'_>) -> Passage {
    let lines = case.evidence.files.get(spot.path);
    let span = lines.map_or((spot.line, spot.line), |lines| {
        enclosing(spot.path, lines, spot.line)
    });
    Passage::at(spot.path, span, spot.line)
}
