//! The answer to where a name is tested: the tests that use it, or that none was seen that does.

use super::{
    super::super::{
        protocol::Stand,
        quote::quote,
        rank::Passage,
        uses::{Spot, is_of_tests},
    },
    Case, OF_ALL, OF_SOME, Said, Told, and_others, cited_files, listed, passage, place, quoted,
    source_types,
};

pub(super) fn compose(case: &Case<'_>, told: &Told<'_>) -> Said {
    let (uses, shown) = (&told.uses, told.shown());
    let is_test = |spot: &&Spot<'_>| is_of_tests(case.evidence, **spot);
    let certain: Vec<Spot<'_>> = uses.used.iter().filter(is_test).copied().collect();
    let all = uses.used.iter().chain(&uses.unsure);
    let in_tests: Vec<Spot<'_>> = all.filter(is_test).copied().collect();
    let Some(first) = in_tests.first() else {
        return none(case, told);
    };
    let others = and_others(in_tests.len(), uses.is_cut());
    let mut blocks = vec![format!(
        "`{shown}` is used by tests in {}{others}.",
        place(*first)
    )];
    let quoted = quoted(&in_tests);
    let passages: Vec<Passage> = quoted.iter().map(|spot| passage(case, *spot)).collect();
    blocks.extend(passages.iter().map(|passage| quote(passage, case.evidence)));
    let rest = in_tests.iter().filter(|spot| !quoted.contains(spot));
    let rest: Vec<Spot<'_>> = rest.copied().collect();
    if !rest.is_empty() {
        blocks.push(format!("Also in {}.", listed(&rest)));
    }
    if certain.len() < in_tests.len() {
        blocks.push(
            "I do not know the types of receivers: some of these may use another of that name."
                .to_owned(),
        );
    }
    let passages: Vec<&Passage> = passages.iter().collect();
    let stand = match certain.len() < in_tests.len() {
        false => Stand::Sufficient {
            sources_found: cited_files(&passages).len(),
            source_types: source_types(&passages),
        },
        true => Stand::Partial {
            missing: format!("the types of receivers: some tests may use another `{shown}`"),
            caveat: None,
        },
    };
    let sure = if uses.is_cut() { OF_SOME } else { OF_ALL };
    (blocks.join("\n\n"), stand, sure)
}

fn none(case: &Case<'_>, told: &Told<'_>) -> Said {
    let (uses, shown) = (&told.uses, told.shown());
    let not_all = match uses.is_cut() {
        true => ", but not all lines that have it",
        false => "",
    };
    let mut blocks = vec![format!("I saw no test that uses `{shown}`{not_all}.")];
    if let Some(spot) = uses.used.first().or(uses.unsure.first()) {
        blocks.push(format!("It is used in {}.", place(*spot)));
        blocks.push(quote(&passage(case, *spot), case.evidence));
    } else if let Some(spot) = uses.defined.first() {
        if !uses.is_perhaps_of_another {
            blocks.push(format!("It is defined in {}.", place(*spot)));
        }
        blocks.push(quote(&passage(case, *spot), case.evidence));
    }
    let stand = Stand::Partial {
        missing: format!("a test that uses `{shown}` by its name"),
        caveat: None,
    };
    (blocks.join("\n\n"), stand, OF_SOME)
}
