//! The answer to who implements or extends a type: where that is defined, those that do with their places, and how
//! much was not looked at.

use super::{
    super::{
        kin::{Kin, Relation, Relative},
        protocol::{Stand, inert, shortened},
        quote::quote,
        rank::Passage,
        uses::Spot,
    },
    Case, Elsewhere, Said, cited_files, source_types,
    uses::{OF_ALL, OF_SOME, passage, place, unseen},
};

/// Most of them that are named, and that are quoted.
const MOST_NAMED: usize = 30;
const MOST_QUOTED: usize = 2;

/// Longest name of a type that is shown, in characters.
const LONGEST_NAME: usize = 60;

/// None if that was not asked, or nothing here implements or extends it.
pub(super) fn compose(case: &Case<'_>) -> Option<Said> {
    let name = case.question.used_name()?;
    let kin = Kin::of(case.evidence, name);
    let first = kin.of_it.first()?;
    let shown: Vec<Spot<'_>> = kin
        .defined
        .first()
        .into_iter()
        .chain(kin.of_it.iter().map(|one| &one.spot).take(MOST_QUOTED))
        .copied()
        .collect();
    let passages: Vec<Passage> = shown.iter().map(|spot| passage(case, *spot)).collect();
    let unseen = unseen(kin.unshown, kin.is_stopped);
    let mut blocks = vec![lead(&inert(name), &kin, first)];
    if kin.of_it.len() > 1 {
        blocks.push(list(&kin.of_it));
    }
    blocks.extend(passages.iter().map(|passage| quote(passage, case.evidence)));
    blocks.extend(unseen.map(|unseen| format!("Not looked at: {unseen}.")));
    let shown: Vec<&Passage> = passages.iter().collect();
    let stand = Stand::Sufficient {
        sources_found: cited_files(&shown).len(),
        source_types: source_types(&shown),
    };
    let sure = if kin.is_cut() { OF_SOME } else { OF_ALL };
    Some((blocks.join("\n\n"), stand, sure))
}

/// That nothing is known to implement or extend it. Where no type names what it implements, that says nothing.
pub(super) fn none_seen(case: &Case<'_>, quoted: &[&Passage]) -> Option<Elsewhere> {
    let name = inert(case.question.used_name()?);
    let is_untold = quoted.iter().any(|one| one.path.ends_with(".go"));
    (!is_untold).then(|| Elsewhere {
        told: format!("I saw nothing that implements or extends `{name}`."),
        behind: "",
        missing: format!("what implements or extends `{name}`"),
    })
}

fn lead(name: &str, kin: &Kin<'_>, first: &Relative<'_>) -> String {
    let has = |relation| kin.of_it.iter().any(|one| one.relation == relation);
    let done = match (has(Relation::Implements), has(Relation::Extends)) {
        (true, true) => "implemented or extended",
        (true, false) => "implemented",
        (false, _) => "extended",
    };
    let by = match (kin.of_it.len(), kin.is_cut()) {
        (1, false) => format!("{}.", told(first)),
        (1, true) => format!("{}, as far as I saw.", told(first)),
        (many, false) => format!("{many} types:"),
        (many, true) => format!("at least {many} types:"),
    };
    match kin.defined.first() {
        Some(defined) => format!(
            "`{name}` is defined in {} and {done} by {by}",
            place(*defined)
        ),
        None => format!("`{name}` is {done} by {by}"),
    }
}

fn list(of_it: &[Relative<'_>]) -> String {
    let named = of_it.iter().take(MOST_NAMED);
    let mut lines: Vec<String> = named.map(|one| format!("- {}", told(one))).collect();
    let more = of_it.len().saturating_sub(MOST_NAMED);
    if more > 0 {
        lines.push(format!("- and {more} more"));
    }
    lines.join("\n")
}

fn told(one: &Relative<'_>) -> String {
    let name = shortened(&inert(&one.name), LONGEST_NAME).replace('`', "'");
    format!("`{name}` in {}", place(one.spot))
}
