//! What is told besides of notes: who decided, and which decisions hold no longer.

use super::{
    super::{
        changelog::is_change_log,
        interest::Interest,
        lexicon::holds,
        protocol::{inert, inert_path, shortened},
        quote::in_sentence,
        rank::Passage,
    },
    Case,
};

/// Longest line that is quoted within a sentence, in characters.
const LONGEST_LINE: usize = 200;
/// What asks for people, and the keys of lines that name them.
const WHO: &str = "who wer qui quién quiénes";
const PEOPLE: &str = "\
    deciders decider decision-makers decision_makers decided_by participants attendees present entscheider teilnehmer \
    anwesend décideurs participantes asistentes";
/// So far down a note says who took part, in lines.
const HEAD: u32 = 40;
/// What records say of what holds no longer.
const OVER: [&str; 6] = [
    "superseded",
    "deprecated",
    "rejected",
    "obsolete",
    "replaced",
    "withdrawn",
];

/// Sentences behind the one that leads, each with a blank before it.
pub(super) fn about(case: &Case<'_>, quoted: &[&Passage]) -> String {
    let who = quoted.first().and_then(|best| people(case, best));
    let mut over: Vec<String> = Vec::new();
    for passage in quoted {
        let told = status(passage).map(|status| {
            let path = in_sentence(&inert_path(&passage.path));
            format!(" {path} is {status}.")
        });
        over.extend(told.filter(|told| !over.contains(told)));
    }
    who.into_iter().chain(over).collect()
}

/// How a decision stands that holds no longer.
fn status(passage: &Passage) -> Option<String> {
    let mut known = passage.record.as_ref()?.split(", ");
    let status = known.find(|known| OVER.iter().any(|over| known.starts_with(over)))?;
    Some(shortened(&inert(status), LONGEST_LINE))
}

/// The line of the best note that names those who decided or were there, if they are asked for.
fn people(case: &Case<'_>, best: &Passage) -> Option<String> {
    let words = case.question.plain.split(|c: char| !c.is_alphanumeric());
    let asks = words
        .into_iter()
        .any(|word| holds(WHO, &word.to_lowercase()));
    let is_of_notes = matches!(case.question.interest, Interest::Settled | Interest::Notes);
    if !asks || !is_of_notes {
        return None;
    }
    let lines = case.evidence.files.get(&best.path)?;
    let (at, line) = lines.range(1..=HEAD).find(|(_, line)| {
        let key = line
            .split_once(':')
            .map(|(key, _)| key.trim_matches([' ', '*', '-', '_']));
        key.is_some_and(|key| !key.is_empty() && holds(PEOPLE, &key.to_lowercase()))
    })?;
    let place = in_sentence(&format!("{}:{at}", inert_path(&best.path)));
    Some(format!(
        " The people are named in {place}: “{}”.",
        shortened(&inert(line.trim()), LONGEST_LINE)
    ))
}

/// Whether a change log or a dated note leads.
pub(super) fn tells_changes(quoted: &[&Passage]) -> bool {
    quoted.first().is_some_and(|best| {
        let name = best
            .path
            .rsplit('/')
            .next()
            .unwrap_or(&best.path)
            .to_lowercase();
        let has_day = |text: &str| {
            let digits = text.split(|c: char| !c.is_ascii_digit()).map(str::len);
            let parts: Vec<usize> = digits.collect();
            parts.windows(3).any(|own| own == [4, 2, 2])
        };
        is_change_log(&best.path) || has_day(&name) || best.record.as_deref().is_some_and(has_day)
    })
}
