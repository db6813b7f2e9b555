//! The answer to an order: what it would take, and where it would begin.

use super::{
    super::{
        protocol::{Percent, Stand, inert, shortened},
        rank::Passage,
    },
    Case, Said, names, places, unfound,
};

/// Longest order that is said again, in characters.
const LONGEST_ORDER: usize = 120;

pub(super) fn compose(case: &Case<'_>, quoted: &[&Passage]) -> Said {
    let terms = &case.question.terms;
    let order = shortened(&inert(&case.question.plain), LONGEST_ORDER);
    let only = format!(
        "I can only read and quote. “{order}” takes a configured model, which would read, change \
         and check; what writes or runs something waits for your approval."
    );
    let body = match (quoted.is_empty(), names(terms.iter())) {
        (true, about) if about.is_empty() => only,
        (true, about) => format!("{only} It would begin with {about}, of which I found nothing."),
        (false, _) => format!("{only} It would begin here:\n\n{}", places(case, quoted)),
    };
    let missing =
        "the deed itself: the offline model reads, and a configured model is needed to act";
    let caveat =
        unfound(terms, case.ranking.found).map(|words| format!("nothing found about {words}"));
    let stand = Stand::Partial {
        missing: missing.to_owned(),
        caveat,
    };
    (body, stand, Percent(60))
}
