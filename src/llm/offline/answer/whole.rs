//! The answer to "show me the code": all of what was quoted in part.

use super::{
    super::{
        protocol::{Percent, Stand},
        quote::{in_sentence, place, quote},
        rank::{About, Passage},
        source,
    },
    Case, Said, source_types,
};

/// None if that was not asked, or there is nothing to show.
pub(super) fn compose(case: &Case<'_>, quoted: &[&Passage]) -> Option<Said> {
    let best = quoted.first().filter(|_| case.question.is_whole)?;
    let lines = case.evidence.files.get(&best.path)?;
    let (first, last, is_cut) = source::whole(&best.path, lines, best.hit);
    let whole = Passage {
        lines: (first, last),
        ..(*best).clone()
    };
    let of = match &best.about {
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
    let stand = Stand::Sufficient {
        sources_found: 1,
        source_types: source_types(&[&whole]),
    };
    Some((body, stand, Percent(75)))
}
