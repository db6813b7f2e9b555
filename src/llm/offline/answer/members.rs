//! The answer to what a type has: its members, a line each, as outlines tell them.

use super::{
    super::{
        members::{Member, Members, types},
        protocol::{Percent, Stand, inert, inert_path},
        question::Aspect,
        quote::{in_sentence, listing},
        uses::Spot,
    },
    Case, Said, uses,
};

/// Most members that are listed.
const MOST: usize = 60;

/// None if that was not asked, or no outline tells it.
pub(super) fn compose(case: &Case<'_>) -> Option<Said> {
    let asked_name = case.question.member_of()?;
    let members = Members::of(case.conversation, asked_name);
    let is_of_methods = case.question.aspect == Some(Aspect::Methods);
    let is_asked = |one: &&Member| !is_of_methods || one.is_method();
    let asked: Vec<&Member> = members.all.iter().filter(is_asked).collect();
    let first = asked.first()?;
    let name = inert(asked_name);
    let what = match (is_of_methods, asked.len()) {
        (true, 1) => "one method".to_owned(),
        (true, many) => format!("{many} methods"),
        (false, 1) => "one member".to_owned(),
        (false, many) => format!("{many} members"),
    };
    let mut paths: Vec<&str> = asked.iter().map(|one| &*one.path).collect();
    paths.dedup();
    let files = match paths.len() {
        1 => in_sentence(&inert_path(&first.path)),
        many => format!("{many} files"),
    };
    let lines = asked.iter().take(MOST);
    let lines = listing(lines.map(|one| (&*one.path, one.line, one.text.as_str())));
    let more = asked.len().saturating_sub(MOST);
    let behind = match more {
        0 => String::new(),
        more => format!("\n\nThere are {more} more."),
    };
    let are_all = members.are_all(case.evidence, asked_name);
    let several = several(case, asked_name);
    let is_known = are_all && is_of_methods && several.is_none();
    let least = if is_known { "" } else { "at least " };
    let behind = match is_of_methods {
        true => behind,
        false => format!(
            "{behind}\n\nFields and variants may be missing: outlines list functions alone."
        ),
    };
    let body = match &several {
        None => format!(
            "`{name}` has {least}{what} here, by the outline of {files}:\n\n{lines}{behind}"
        ),
        Some(several) => format!(
            "There are several by that name: {several}. Together they have {least}{what} here, by the outline of \
             {files}:\n\n{lines}{behind}"
        ),
    };
    let missing = match (more, are_all) {
        _ if several.is_some() => Some(format!("which `{name}` is meant: there are several")),
        (0, true) if !is_of_methods => Some(format!(
            "the fields or variants of `{name}`: outlines list functions alone"
        )),
        (0, true) => None,
        (0, false) => Some(format!(
            "what else `{name}` has: not all outlines of it were seen to their end"
        )),
        (more, _) => Some(format!("{more} more that `{name}` has")),
    };
    let stand = match missing {
        None => Stand::Sufficient {
            sources_found: paths.len(),
            source_types: vec!["code"],
        },
        Some(missing) => Stand::Partial {
            missing,
            caveat: None,
        },
    };
    Some((body, stand, Percent(75)))
}

/// Where the types of this name are defined, if several files define one.
fn several(case: &Case<'_>, name: &str) -> Option<String> {
    let types = types(name, case.evidence);
    let first = types.first()?;
    types
        .iter()
        .any(|one| one.path != first.path)
        .then(|| uses::listed(&types))
}

/// The only definition of the type of which the fields are asked for.
pub(super) fn with_fields<'a>(case: &Case<'a>) -> Option<Spot<'a>> {
    let types = types(case.question.fields_of()?, case.evidence);
    match *types {
        [only] => Some(only),
        _ => None,
    }
}

/// What is missing where no outline told it, or no definition.
pub(super) fn missing(case: &Case<'_>) -> Option<String> {
    if let Some(asked) = case.question.fields_of() {
        let (name, types) = (inert(asked), types(asked, case.evidence));
        return Some(match *types {
            [] => format!("what `{name}` has: I saw no definition of a type of that name"),
            _ => format!(
                "which `{name}` is meant: there are several by that name: {}",
                uses::listed(&types)
            ),
        });
    }
    let name = case.question.member_of()?;
    let what = match case.question.aspect {
        Some(Aspect::Methods) => "the methods of",
        _ => "what is in",
    };
    Some(format!(
        "{what} `{}`: no outline that I saw lists them",
        inert(name)
    ))
}
