//! The answer to who made commits, and how many each.

use super::{
    super::{
        super::{
            evidence::Authors,
            protocol::{Percent, Stand, shortened},
            term::TermSet,
        },
        Case, Said, names,
    },
    LONGEST_NAME, known, sought,
};

pub(super) fn compose(case: &Case<'_>, authors: &Authors) -> Said {
    let terms = &case.question.terms;
    let about = sought(case);
    let lacking = names(TermSet::needed(terms).minus(about).of(terms));
    let about = match names(about.of(terms)) {
        none if none.is_empty() => String::new(),
        about => format!(" about {about}"),
    };
    let of = format!("{about}{}", case.question.bounds.told());
    let mut body = lead(authors, &of);
    let lines = authors.first.iter();
    let lines: Vec<String> = lines
        .map(|(count, author)| format!("- {}: {count}", name(author)))
        .collect();
    if authors.people > 1 {
        body.push_str(&format!("\n\n{}", lines.join("\n")));
        let more = authors.people.saturating_sub(authors.first.len() as u64);
        if more > 0 {
            body.push_str(&format!("\n- … and {more} more"));
        }
    }
    let mut missing: Vec<String> = Vec::new();
    if authors.is_cut {
        missing.push("older commits, which were not looked at".to_owned());
    }
    if !lacking.is_empty() {
        missing.push(format!("commits that have {lacking}"));
    }
    if missing.is_empty() {
        let stand = Stand::Sufficient {
            sources_found: authors.first.len(),
            source_types: vec!["history"],
        };
        return (body, stand, Percent(80));
    }
    let missing = missing.join("; ");
    body.push_str(&format!("\n\nMissing: {missing}."));
    let stand = Stand::Partial {
        missing,
        caveat: None,
    };
    (body, stand, Percent(50))
}

/// Who made most, and of how many.
fn lead(authors: &Authors, of: &str) -> String {
    let most = authors.first.first().map_or(0, |(count, _)| *count);
    let best = authors.first.iter().filter(|(count, _)| *count == most);
    let best: Vec<String> = best.map(|(_, author)| name(author)).collect();
    let all = authors.commits;
    match (authors.people, all, best.as_slice()) {
        (1, 1, [author]) => format!("The only commit{of} is by {author}."),
        (1, _, [author]) => format!("All {all} commits{of} are by {author}."),
        (people, _, [author]) if may_have_equals(authors, most) => format!(
            "Nobody made more commits{of} than {author}: {most} of {all}. {}:",
            shown(authors, people)
        ),
        (people, _, [author]) => format!(
            "{author} made the most commits{of}: {most} of {all}. {}:",
            shown(authors, people)
        ),
        (people, _, several) => format!(
            "{}{} authors made the most commits{of}, {most} each of {all}. {}:",
            if may_have_equals(authors, most) {
                "At least "
            } else {
                ""
            },
            several.len(),
            shown(authors, people)
        ),
    }
}

/// Whether others may have made as many who are not in the list: each of them made one at least.
fn may_have_equals(authors: &Authors, most: u64) -> bool {
    let shown: u64 = authors.first.iter().map(|(count, _)| count).sum();
    let others = authors.people.saturating_sub(authors.first.len() as u64);
    let is_last = authors.first.last().is_some_and(|(last, _)| *last == most);
    let theirs = authors.commits.saturating_sub(shown);
    is_last && others > 0 && theirs >= most.saturating_add(others - 1)
}

/// Which authors the list has.
fn shown(authors: &Authors, people: u64) -> String {
    match authors.first.len() {
        some if (some as u64) < people => format!("The first {some} of {people} authors"),
        _ => format!("All {people} authors"),
    }
}

fn name(author: &str) -> String {
    shortened(&known(author), LONGEST_NAME)
}
