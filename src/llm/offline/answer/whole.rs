//! The answer to "show me the code": all of what was quoted in part.

use super::{
    super::{
        protocol::{Percent, Stand, inert},
        quote::{in_sentence, place, quote},
        rank::{About, Passage},
        source,
    },
    Case, Said, members, source_types,
};

/// None if that was not asked, or there is nothing to show.
pub(super) fn compose(case: &Case<'_>, quoted: &[&Passage]) -> Option<Said> {
    let (whole, is_cut) = whole(case, quoted).filter(|_| !is_known(case, quoted))?;
    let of = match &whole.about {
        Some(About::Definition(name)) => format!("All of `{name}`"),
        Some(About::Section(_)) | None => "All of it".to_owned(),
    };
    let more = match is_cut {
        true => " It goes on below what is shown.",
        false => "",
    };
    let body = format!(
        "{of} is in {}.{more}\n\n{}",
        in_sentence(&place(&whole)),
        quote(&whole, case.evidence)
    );
    let stand = match case.question.fields_of().filter(|_| is_cut) {
        None => Stand::Sufficient {
            sources_found: 1,
            source_types: source_types(&[&whole]),
        },
        Some(name) => Stand::Partial {
            missing: format!("what `{}` has below what is shown", inert(name)),
            caveat: None,
        },
    };
    Some((body, stand, Percent(75)))
}

/// Whether it is asked how that works of which all was quoted before: there is nothing more to show.
pub(super) fn is_known(case: &Case<'_>, quoted: &[&Passage]) -> bool {
    let whole = whole(case, quoted).filter(|_| case.question.is_explained);
    let quoted = whole.map(|(whole, _)| quote(&whole, case.evidence));
    let answers = &case.conversation.answers;
    quoted.is_some_and(|quoted| answers.iter().any(|one| one.text.contains(&quoted)))
}

/// All that belongs to the best place, and whether it is cut.
fn whole(case: &Case<'_>, quoted: &[&Passage]) -> Option<(Passage, bool)> {
    let best = match case.question.fields_of() {
        Some(name) => &of_type(case, name)?,
        None => *quoted.first().filter(|_| case.question.is_whole)?,
    };
    let lines = case.evidence.files.get(&best.path)?;
    let (first, last, is_cut) = source::whole(&best.path, lines, best.hit);
    let whole = Passage {
        lines: (first, last),
        ..best.clone()
    };
    Some((whole, is_cut))
}

/// What defines the type of which the fields are asked for.
fn of_type(case: &Case<'_>, name: &str) -> Option<Passage> {
    let spot = members::with_fields(case)?;
    Some(Passage {
        about: Some(About::Definition(name.to_owned())),
        ..Passage::at(spot.path, (spot.line, spot.line), spot.line)
    })
}
