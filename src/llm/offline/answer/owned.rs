//! A name that is asked for in something: whether the definition that was found lies there.

use super::{
    super::{
        protocol::inert,
        question::Qualified,
        rank::{About, Lies, Passage, lies, names},
        source::FileKind,
    },
    Case, Elsewhere,
};

mod member;

/// Whether a passage defines the name in what it is asked for in.
pub(super) fn is_found(case: &Case<'_>, best: &Passage) -> bool {
    let sought = case.question.sought().filter(|one| one.owner.is_some());
    sought.is_some_and(|sought| lies(best, case.evidence, sought) != Lies::Elsewhere)
}

/// The name as the question has it, if the best place defines it in that very type.
pub(super) fn shown<'a>(case: &'a Case<'_>, best: &Passage) -> Option<&'a str> {
    let (sought, qualified) = (case.question.sought()?, case.question.qualified.as_ref()?);
    let is_type = lies(best, case.evidence, sought) < Lies::InFile;
    is_type.then_some(&*qualified.shown)
}

/// That none was seen there, if one was seen elsewhere or the definition is asked for.
pub(super) fn told(case: &Case<'_>) -> Option<Elsewhere> {
    let qualified = case.question.qualified.as_ref();
    // A module may be the project itself, or have on offer what lies elsewhere.
    let is_type = |one: &&Qualified| one.owner.starts_with(char::is_uppercase);
    let qualified = qualified.filter(is_type)?;
    let passages = case.ranking.passages.iter();
    if passages.clone().any(|one| is_found(case, one)) {
        return None;
    }
    let is_named = |one: &Passage| matches!(&one.about, Some(About::Definition(name)) if *name == qualified.name);
    // What leads may be one of that name in something else.
    let leads = passages.clone().next().is_some_and(is_named);
    if !leads && is_member(case, qualified) {
        return None;
    }
    let (name, owner) = (inert(&qualified.name), inert(&qualified.owner));
    let told = match passages.clone().any(is_named) {
        true => format!("I saw `{name}` defined here, but not in `{owner}`."),
        false if case.question.asks_for_definition() => {
            format!("I saw no definition of `{}` here.", inert(&qualified.shown))
        }
        false => return None,
    };
    Some(Elsewhere {
        told,
        behind: "",
        missing: format!("a definition of `{name}` in `{owner}`"),
    })
}

/// Whether a place in it declares the name: as a field, a variant, a constant or an attribute.
fn is_member(case: &Case<'_>, qualified: &Qualified) -> bool {
    let is_owner = |name: &String| names(name, &qualified.owner) != Lies::Elsewhere;
    let places = case.evidence.places.iter();
    let places = places.filter(|place| FileKind::of(&place.path) != FileKind::Docs);
    let mut places = places.filter(|place| place.within.iter().any(is_owner));
    places.any(|place| {
        let lines = case.evidence.files.get(&place.path).into_iter();
        let lines = lines.flat_map(|lines| lines.range(place.lines.0..=place.lines.1));
        let lines: Vec<&str> = lines.map(|(_, line)| line.as_str()).collect();
        let is_own = place.within.last().is_some_and(is_owner);
        lines
            .iter()
            .any(|line| member::is_given(line, &qualified.name))
            || (is_own && member::is_declared(&lines, &qualified.name))
    })
}
