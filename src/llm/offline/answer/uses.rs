//! The answer to where a name is used: its uses with what is around them, and where it is defined.

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

/// None if no use was asked for, or nothing has the name.
pub(super) fn compose(case: &Case<'_>) -> Option<Said> {
    let name = case.question.used_name()?;
    let uses = Uses::of(case.evidence, name);
    let (spots, verb) = match (uses.used.is_empty(), uses.mentioned.is_empty()) {
        (false, _) => (&uses.used, "used"),
        (true, false) => (&uses.mentioned, "only mentioned"),
        (true, true) => (&uses.defined, "only defined"),
    };
    let quoted = quoted(spots);
    let first = quoted.first()?;
    let name = inert(name);
    let others = match spots.len() - 1 {
        0 => String::new(),
        1 => " and in one other place".to_owned(),
        many => format!(" and in {many} other places"),
    };
    let mut blocks = vec![format!("`{name}` is {verb} in {}{others}.", place(*first))];
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
    if verb != "only defined"
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
            caveat: None,
        },
    };
    Some((blocks.join("\n\n"), stand, Percent(75)))
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

fn place(spot: Spot<'_>) -> String {
    in_sentence(&format!("{}:{}", inert_path(spot.path), spot.line))
}

fn passage(case: &Case<'_>, spot: Spot<'_>) -> Passage {
    let lines = case.evidence.files.get(spot.path);
    let span = lines.map_or((spot.line, spot.line), |lines| {
        enclosing(spot.path, lines, spot.line)
    });
    Passage::at(spot.path, span, spot.line)
}
