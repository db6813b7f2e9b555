//! The last reply: where it is, the best passages with their places, and how good that is.
//!
//! Extractive and honest: it quotes and points, says which words it found nowhere, and says so when
//! it found nothing. Always ends with a signal of its own, outside any fence. Pure.

use super::{
    conversation::Conversation,
    evidence::Evidence,
    lexicon::Chat,
    protocol::{Percent, Stand, inert, shortened, signal},
    question::{Kind, Question},
    quote::{place, quote},
    rank::{About, Passage, Ranking},
    source::FileKind,
    stuck,
    term::{Term, TermSet},
};

/// Most passages quoted, of all files and of one.
const MOST_QUOTED: usize = 4;
const MOST_OF_A_FILE: usize = 2;

/// So many are quoted for their score alone; more only for words that they add.
const ENOUGH_QUOTED: usize = 3;

/// Most other places that are named.
const MOST_ELSEWHERE: usize = 5;

/// All that an answer is made of.
#[derive(Debug)]
pub(super) struct Case<'a> {
    pub(super) conversation: &'a Conversation<'a>,
    pub(super) question: &'a Question,
    pub(super) evidence: &'a Evidence,
    pub(super) ranking: &'a Ranking,
    pub(super) means: Means,
}

/// Whether there was anything to search with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Means {
    Tools,
    None,
}

/// The whole text of the reply, signal included.
pub(super) fn compose(case: &Case<'_>) -> String {
    let terms = &case.question.terms;
    let quotable: Vec<Passage> = case
        .ranking
        .passages
        .iter()
        .filter(|passage| passage.hit > 0)
        .cloned()
        .collect();
    let quoted = select(&quotable, terms);
    let (body, stand, confidence) = match (case.question.kind, quoted.is_empty()) {
        (Kind::Chat(chat), _) => chatter(chat),
        (Kind::Deed, _) => deed(case, &quoted),
        (Kind::Lookup, true) if terms.is_empty() => wordless(),
        (Kind::Lookup, true) => stuck::compose(case),
        (Kind::Lookup, false) => found(case, &quoted),
    };
    format!("{body}\n\n{}", signal(&stand, confidence))
}

type Said = (String, Stand, Percent);

fn chatter(chat: Chat) -> Said {
    let text = match chat {
        Chat::Identity => {
            "I am Oracle's offline model. I look things up in your files and quote what I find, with \
             its place. Ask me where something is, or what is said about it; for explanations and \
             changes, configure a model."
        }
        Chat::Thanks => "You are welcome.",
        Chat::Farewell => "Goodbye.",
        Chat::Greeting => "Hello! What shall I look up for you?",
        Chat::Acknowledgement => "All right. What shall I look up next?",
    };
    let stand = Stand::Sufficient {
        sources_found: 0,
        source_types: vec![],
    };
    (text.to_owned(), stand, Percent(90))
}

fn wordless() -> Said {
    let text = "The question names nothing that I could look for. Name a file, a function, the \
                text of an error or a topic.";
    let missing = "a word to look for: the question has none of its own".to_owned();
    (
        text.to_owned(),
        Stand::Partial {
            missing,
            caveat: None,
        },
        Percent(60),
    )
}

fn deed(case: &Case<'_>, quoted: &[&Passage]) -> Said {
    let only = "I can only read and quote; writing, changing or running something takes a model.";
    let terms = &case.question.terms;
    let body = if quoted.is_empty() {
        let after = match names(terms.iter()) {
            about if about.is_empty() => String::new(),
            about => format!(" With one I would begin with {about}, of which I found nothing."),
        };
        format!("{only}{after}")
    } else {
        let would = "With one I would begin at these places.";
        format!("{only} {would}\n\n{}", places(case, quoted))
    };
    let missing =
        "the deed itself: the offline model reads, and a configured model is needed to act";
    let caveat =
        unfound(terms, case.ranking.found).map(|words| format!("nothing found about {words}"));
    (
        body,
        Stand::Partial {
            missing: missing.to_owned(),
            caveat,
        },
        Percent(60),
    )
}

fn found(case: &Case<'_>, quoted: &[&Passage]) -> Said {
    let terms = &case.question.terms;
    let needed = TermSet::needed(terms);
    let lead = quoted.first().map(|best| leading(best)).unwrap_or_default();
    let gaps = gaps(terms, case.ranking.found, quoted);
    let note = gaps
        .as_ref()
        .map(|gaps| format!(" Missing: {gaps}."))
        .unwrap_or_default();
    let body = format!("{lead}{note}\n\n{}", places(case, quoted));
    match gaps {
        None => {
            let stand = Stand::Sufficient {
                sources_found: cited_files(quoted).len(),
                source_types: source_types(quoted),
            };
            (body, stand, sureness(needed, quoted))
        }
        Some(missing) => {
            let share = 35 * needed.and(together(quoted)).len() / needed.len().max(1);
            let caveat =
                Some("these are quotes found by their words, not an explanation".to_owned());
            (
                body,
                Stand::Partial { missing, caveat },
                Percent(30 + share),
            )
        }
    }
}

/// Surer if one place has all the words, and if it defines what was asked for.
fn sureness(needed: TermSet, quoted: &[&Passage]) -> Percent {
    let Some(best) = quoted.first() else {
        return Percent(0);
    };
    let lacking = needed.minus(best.all_terms()).len();
    let together = match lacking {
        0 => 20,
        few if few * 2 <= needed.len() => 5,
        _ => 0,
    };
    let defined = if best.about.is_some() { 15 } else { 0 };
    Percent(55 + together + defined)
}

fn leading(best: &Passage) -> String {
    let place = place(best);
    match &best.about {
        Some(About::Definition(name)) => {
            format!("The closest match is the definition of `{name}` in {place}.")
        }
        Some(About::Section(title)) => {
            let title = shortened(&inert(title), 80);
            format!("The closest match is the section “{title}” in {place}.")
        }
        None => format!("The closest match is in {place}."),
    }
}

/// What the question asks for and the quotes do not have, in words. Words that are all somewhere
/// but far from one another are a gap too, if they are more than a third: such places have little to
/// do with the question.
fn gaps(terms: &[Term], found: TermSet, quoted: &[&Passage]) -> Option<String> {
    let needed = TermSet::needed(terms);
    let cited = quoted
        .iter()
        .fold(TermSet::default(), |set, p| set.or(p.all_terms()));
    let apart = needed.and(found).minus(together(quoted));
    let scattered = apart.len() * 3 > needed.len() || !apart.minus(cited).is_empty();
    let nowhere = unfound(terms, found).map(|words| format!("{words} found nowhere"));
    let apart = scattered.then(|| {
        format!(
            "{} only in other files than the rest",
            names(apart.of(terms))
        )
    });
    let gaps: Vec<String> = [nowhere, apart].into_iter().flatten().collect();
    (!gaps.is_empty()).then(|| gaps.join("; "))
}

/// What the quotes of the best file have.
fn together(quoted: &[&Passage]) -> TermSet {
    let best = quoted.first().map(|best| best.path.as_str());
    let of_it = quoted
        .iter()
        .filter(|passage| Some(passage.path.as_str()) == best);
    of_it.fold(TermSet::default(), |set, passage| {
        set.or(passage.all_terms())
    })
}

fn unfound(terms: &[Term], found: TermSet) -> Option<String> {
    let missing = TermSet::needed(terms).minus(found);
    (!missing.is_empty()).then(|| names(missing.of(terms)))
}

/// Terms as they may stand in a sentence.
pub(super) fn names<'a>(terms: impl Iterator<Item = &'a Term>) -> String {
    let names: Vec<String> = terms
        .map(|term| format!("“{}”", shortened(&inert(&term.shown), 60)))
        .collect();
    names.join(", ")
}

/// The quotes, and where else there is something.
fn places(case: &Case<'_>, quoted: &[&Passage]) -> String {
    let mut blocks: Vec<String> = quoted
        .iter()
        .map(|passage| quote(passage, case.evidence))
        .collect();
    let mut elsewhere: Vec<String> = Vec::new();
    for passage in &case.ranking.passages {
        let known = quoted.iter().any(|q| q.path == passage.path)
            || elsewhere
                .iter()
                .any(|place| place.starts_with(&passage.path));
        if !known && elsewhere.len() < MOST_ELSEWHERE {
            elsewhere.push(match passage.hit {
                0 => passage.path.clone(),
                hit => format!("{}:{hit}", passage.path),
            });
        }
    }
    if !elsewhere.is_empty() {
        blocks.push(format!("See also {}.", elsewhere.join(", ")));
    }
    blocks.join("\n\n")
}

fn cited_files<'a>(quoted: &[&'a Passage]) -> Vec<&'a str> {
    let mut files: Vec<&str> = quoted.iter().map(|passage| passage.path.as_str()).collect();
    files.sort_unstable();
    files.dedup();
    files
}

fn source_types(quoted: &[&Passage]) -> Vec<&'static str> {
    let kinds = |wanted: &str| {
        quoted.iter().any(|passage| {
            wanted
                == match passage.kind {
                    FileKind::Docs => "docs",
                    FileKind::Code | FileKind::Test | FileKind::Vendored | FileKind::Lock => "code",
                }
        })
    };
    ["code", "docs"]
        .into_iter()
        .filter(|kind| kinds(kind))
        .collect()
}

/// What to quote: the best passage, those that add words of the question, and what is nearly as
/// good as the best.
pub(super) fn select<'a>(passages: &'a [Passage], terms: &[Term]) -> Vec<&'a Passage> {
    let needed = TermSet::needed(terms);
    let Some(best) = passages.first() else {
        return Vec::new();
    };
    let mut chosen = vec![best];
    let mut covered = best.all_terms();
    while chosen.len() < MOST_QUOTED {
        let free = || {
            passages.iter().filter(|p| {
                let of_file = chosen.iter().filter(|c| c.path == p.path).count();
                of_file < MOST_OF_A_FILE && !chosen.contains(p)
            })
        };
        let adds = |p: &&Passage| p.all_terms().and(needed).minus(covered).len();
        // The first of those that add most.
        let adding = free()
            .filter(|p| adds(p) > 0)
            .min_by_key(|p| std::cmp::Reverse(adds(p)));
        let good = free().find(|p| chosen.len() < ENOUGH_QUOTED && p.score * 2 >= best.score);
        let Some(next) = adding.or(good) else { break };
        covered = covered.or(next.all_terms());
        chosen.push(next);
    }
    chosen
}

#[cfg(test)]
mod tests;
