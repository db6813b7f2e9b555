//! The answer to what a project states of itself: its version, its license, who is behind it, what it depends
//! on, how large it is.

use super::{
    super::{
        interest::{Fact, Interest},
        manifest::{self, Told},
        protocol::{Percent, Stand, inert, shortened},
        quote::{in_sentence, place, quote},
        rank::Passage,
        source::FileKind,
        term::TermSet,
    },
    Case, Said, overview,
};

/// Most files that are quoted.
const MOST_QUOTED: usize = 3;
/// Longest value that is told, in characters.
const LONGEST: usize = 80;
/// Words that ask for lines, which nobody counts.
const LINES: [&str; 6] = ["lines", "loc", "zeilen", "lignes", "líneas", "lineas"];

/// None if no fact was asked for, or the project states none.
pub(super) fn compose(case: &Case<'_>) -> Option<Said> {
    let Interest::Facts(fact) = case.question.interest else {
        return None;
    };
    match fact {
        _ if !is_about_project(case) => None,
        Fact::Size => size(case),
        Fact::Version
        | Fact::License
        | Fact::People
        | Fact::Dependencies
        | Fact::Needs(_)
        | Fact::Features => stated(case, fact),
    }
}

/// Whether what the question names besides is the project itself.
fn is_about_project(case: &Case<'_>) -> bool {
    let terms = &case.question.terms;
    let mut named = TermSet::needed(terms).of(terms);
    named.all(|term| manifest::is_of(&term.shown, case.evidence))
}

fn size(case: &Case<'_>) -> Option<Said> {
    let size = &case.evidence.size;
    if size.is_empty() {
        return None;
    }
    let body = format!(
        "There are {}, without those that are hidden or ignored.\n\n{}",
        inert(size),
        overview::folders(case)
    );
    let lower = case.question.plain.to_lowercase();
    let mut words = lower.split(|c: char| !c.is_alphanumeric());
    let stand = match words.any(|word| LINES.contains(&word)) {
        true => Stand::Partial {
            missing: "the number of lines: only files are counted".to_owned(),
            caveat: None,
        },
        false => Stand::Sufficient {
            sources_found: 1,
            source_types: vec!["code"],
        },
    };
    Some((body, stand, Percent(80)))
}

fn stated(case: &Case<'_>, fact: Fact) -> Option<Said> {
    let all: Vec<Told<'_>> = manifest::all_stated(fact, case.evidence).collect();
    let first = all.first()?;
    let shown: Vec<Passage> = all.iter().take(MOST_QUOTED).map(passage).collect();
    let mut lead = match fact {
        Fact::Version => version(first),
        Fact::License => license(&all),
        Fact::People => format!("Who is behind it is said in {}.", at(first)),
        Fact::Dependencies => format!("What it depends on is declared in {}.", at(first)),
        Fact::Needs(_) => format!("It needs {}, by {}.", said(first), at(first)),
        Fact::Features => format!(
            "Its features are declared in {}: those of `default` are on unless they are turned off.",
            at(first)
        ),
        Fact::Size => return None,
    };
    let others = || all.iter().filter(|other| !other.value().is_empty());
    if fact == Fact::Version
        && let Some(other) =
            others().find(|other| !other.is_log() && other.value() != first.value())
    {
        lead += &format!(" {} says {}.", at(other), said(other));
    }
    if first.statement.is_cut {
        lead += " More of it stands below what is shown.";
    }
    let quotes = shown.iter().map(|passage| quote(passage, case.evidence));
    let blocks: Vec<String> = [lead].into_iter().chain(quotes).collect();
    let stand = match fact == Fact::Version && first.is_log() {
        true => Stand::Partial {
            missing: "a version in a manifest: this is the newest one in a log of changes"
                .to_owned(),
            caveat: None,
        },
        false => Stand::Sufficient {
            sources_found: shown.len(),
            source_types: vec!["docs"],
        },
    };
    Some((blocks.join("\n\n"), stand, Percent(85)))
}

fn version(first: &Told<'_>) -> String {
    match first.is_log() {
        true => format!(
            "No manifest at its top names a version; the newest in {} is {}.",
            at(first),
            said(first)
        ),
        false => format!("The version is {}, by {}.", said(first), at(first)),
    }
}

/// What manifests call it says more than the beginning of its text.
fn license(all: &[Told<'_>]) -> String {
    let text = all.iter().find(|told| told.is_text());
    let named = all
        .iter()
        .find(|told| !told.is_text() && !told.value().is_empty());
    match (named, text) {
        (Some(named), Some(text)) => format!(
            "Its license is {}, by {}; the text is in {}.",
            said(named),
            at(named),
            at(text)
        ),
        (Some(named), None) => format!("Its license is {}, by {}.", said(named), at(named)),
        (None, Some(text)) if !text.value().is_empty() => {
            format!("Its license is in {}: {}.", at(text), said(text))
        }
        (None, _) => all.first().map_or_else(String::new, |first| {
            format!("Its license is in {}.", at(first))
        }),
    }
}

fn said(told: &Told<'_>) -> String {
    format!("“{}”", shortened(&inert(told.value()), LONGEST))
}

fn at(told: &Told<'_>) -> String {
    in_sentence(&place(&passage(told)))
}

fn passage(told: &Told<'_>) -> Passage {
    let lines = told.statement.lines;
    Passage {
        kind: FileKind::Docs,
        score: 1,
        ..Passage::at(told.path, lines, lines.0)
    }
}
