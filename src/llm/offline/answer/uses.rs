//! The answer to where a name is used: its uses with what is around them, where it is defined, and how much
//! was not looked at.

use super::{
    super::{
        protocol::{Percent, Stand, inert, inert_path},
        quote::{in_sentence, quote},
        rank::Passage,
        source::enclosing,
        uses::{Spot, Uses},
    },
    Case, Said, cited_files, source_types,
};

/// Most uses that are quoted, and most others that are named.
const MOST_QUOTED: usize = 3;
const MOST_NAMED: usize = 12;

/// How sure that is if all lines with the name are known, and if not.
pub(super) const OF_ALL: Percent = Percent(75);
pub(super) const OF_SOME: Percent = Percent(60);

/// None if no use was asked for, or nothing has the name.
pub(super) fn compose(case: &Case<'_>) -> Option<Said> {
    let name = case.question.used_name()?;
    let uses = Uses::of(case.evidence, name);
    let (spots, verb) = match (uses.used.is_empty(), uses.mentioned.is_empty()) {
        (false, _) => (&uses.used, "used"),
        (true, false) => (&uses.mentioned, "mentioned"),
        (true, true) => (&uses.defined, "defined"),
    };
    let quoted = quoted(spots);
    let first = quoted.first()?;
    let name = inert(name);
    let others = match (spots.len() - 1, uses.is_cut()) {
        (0, _) => String::new(),
        (1, false) => " and in one other place".to_owned(),
        (1, true) => " and in at least one other place".to_owned(),
        (many, false) => format!(" and in {many} other places"),
        (many, true) => format!(" and in at least {many} other places"),
    };
    let place_of_first = place(*first);
    let lead = match (uses.used.is_empty(), uses.is_cut()) {
        (false, _) => format!("`{name}` is used in {place_of_first}{others}."),
        (true, false) => format!("`{name}` is only {verb} in {place_of_first}{others}."),
        (true, true) => format!(
            "I saw no use of `{name}`, but not all lines that have it. It is {verb} in \
             {place_of_first}{others}."
        ),
    };
    let mut blocks = vec![lead];
    let passages: Vec<Passage> = quoted.iter().map(|spot| passage(case, *spot)).collect();
    blocks.extend(passages.iter().map(|passage| quote(passage, case.evidence)));
    let rest: Vec<&Spot<'_>> = spots.iter().filter(|spot| !quoted.contains(spot)).collect();
    if !rest.is_empty() {
        let named: Vec<String> = rest
            .iter()
            .take(MOST_NAMED)
            .map(|spot| place(**spot))
            .collect();
        let more = match rest.len().saturating_sub(MOST_NAMED) {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        blocks.push(format!("Also in {}{more}.", named.join(", ")));
    }
    let unseen = unseen(uses.unshown, uses.is_stopped);
    blocks.extend(
        unseen
            .iter()
            .map(|unseen| format!("Not looked at: {unseen}.")),
    );
    if verb != "defined"
        && let Some(definition) = uses.defined.first()
    {
        blocks.push(format!("It is defined in {}.", place(*definition)));
    }
    let shown: Vec<&Passage> = passages.iter().collect();
    let stand = match uses.used.is_empty() {
        false => Stand::Sufficient {
            sources_found: cited_files(&shown).len(),
            source_types: source_types(&shown),
        },
        true => Stand::Partial {
            missing: format!("a place that uses `{name}`"),
            caveat: unseen.map(|unseen| format!("not looked at: {unseen}")),
        },
    };
    let sure = if uses.is_cut() { OF_SOME } else { OF_ALL };
    Some((blocks.join("\n\n"), stand, sure))
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
