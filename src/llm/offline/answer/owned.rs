//! A name that is asked for in something: whether the definition that was found lies there.

use super::{
    super::{
        protocol::inert,
        question::Qualified,
        rank::{About, Lies, Passage, lies, names},
        source::FileKind,
        uses::{has_word, is_remark},
    },
    Case, Elsewhere,
};

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
    let is_known = passages.clone().any(|one| is_found(case, one)) || is_member(case, qualified);
    if is_known {
        return None;
    }
    let is_named = |one: &Passage| matches!(&one.about, Some(About::Definition(name)) if *name == qualified.name);
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

/// Whether a place in it has the name where none is called: as a field, a variant or a constant.
fn is_member(case: &Case<'_>, qualified: &Qualified) -> bool {
    let is_in = |name: &String| names(name, &qualified.owner) != Lies::Elsewhere;
    let places = case.evidence.places.iter();
    let places = places.filter(|place| place.within.iter().any(is_in));
    let mut places = places.filter(|place| FileKind::of(&place.path) != FileKind::Docs);
    places.any(|place| {
        let lines = case.evidence.files.get(&place.path).into_iter();
        let mut lines = lines.flat_map(|lines| lines.range(place.lines.0..=place.lines.1));
        lines.any(|(_, line)| declares(line, &qualified.name))
    })
}

fn declares(line: &str, name: &str) -> bool {
    has_word(line, name)
        && !is_remark(line)
        && !has_word(line, &format!(".{name}"))
        && !line.contains(&format!("{name}("))
        && !line.contains(&format!("->{name}"))
}
