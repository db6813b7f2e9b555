//! The last reply: where it is, the best passages with their places, and how good that is.
//!
//! Extractive and honest: it quotes and points, says which words it found nowhere, and says so when
//! it found nothing. Always ends with a signal of its own, outside any fence. Pure.

use super::{
    conversation::Conversation,
    evidence::{Evidence, Judged},
    interest::Interest,
    lexicon::Chat,
    protocol::{Percent, Stand, inert, shortened, signal},
    question::{Kind, Question},
    quote::{place, quote},
    rank::{About, Passage, Ranking},
    source::FileKind,
    stuck,
    term::{Term, TermSet},
};

mod deed;
mod history;
mod overview;

/// Most passages quoted, of all files and of one.
const MOST_QUOTED: usize = 4;
const MOST_OF_A_FILE: usize = 2;

/// So many are quoted for their score alone; more only for words that they add.
const ENOUGH_QUOTED: usize = 3;

/// So much of a question a place has to have to answer it, in hundredths.
const ENOUGH_COVERED: u32 = 65;

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
    let quoted = select(&quotable, terms, case.question.is_of_changes);
    let (body, stand, confidence) = match (case.question.kind, quoted.is_empty()) {
        (Kind::Chat(chat), _) => chatter(chat),
        (Kind::Deed, _) => deed::compose(case, &quoted),
        (Kind::Lookup, _) if tells_history(case) => history::compose(case, &quoted),
        (Kind::Lookup, _) if overview::is_known(case) => overview::compose(case),
        (Kind::Lookup, true) if is_wordless(case) => wordless(),
        (Kind::Lookup, true) => stuck::compose(case),
        (Kind::Lookup, false) => found(case, &quoted),
    };
    format!("{body}\n\n{}", signal(&stand, confidence))
}

/// What is said, how that stands, and how sure that is.
type Said = (String, Stand, Percent);

/// Whether the question names nothing, not even the whole or its history.
fn is_wordless(case: &Case<'_>) -> bool {
    case.question.interest == Interest::Places && case.question.terms.is_empty()
}

fn tells_history(case: &Case<'_>) -> bool {
    matches!(case.question.interest, Interest::History(_))
        && !case.evidence.history.commits.is_empty()
}

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

fn found(case: &Case<'_>, quoted: &[&Passage]) -> Said {
    let terms = &case.question.terms;
    let needed = TermSet::needed(terms);
    let lead = quoted.first().map(|best| leading(best)).unwrap_or_default();
    let elsewhere = not_elsewhere(case, quoted);
    let lead = match elsewhere {
        Some(what) => format!("I found {what} about it. {lead}"),
        None => lead,
    };
    let lead = misread(case) + &lead;
    let says = |best: &&Passage| best.terms.of(terms).any(Term::is_saying);
    let gaps = match &case.evidence.judged {
        _ if quoted.first().is_some_and(says) => None,
        Some(judged) => judged_gaps(judged),
        None => gaps(terms, case.ranking.found, quoted),
    };
    let note = gaps
        .as_ref()
        .map(|gaps| format!(" Missing: {gaps}."))
        .unwrap_or_default();
    let gaps = gaps.or_else(|| elsewhere.map(|what| format!("{what} says it: these are files")));
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

/// Which words were taken for others.
fn misread(case: &Case<'_>) -> String {
    let mut told: Vec<String> = Vec::new();
    for (word, read_as) in &case.evidence.read_as {
        let word = shortened(&inert(word), 60);
        let read_as = shortened(&inert(read_as), 60);
        let one = format!("“{word}” as “{read_as}…”");
        if !told.contains(&one) {
            told.push(one);
        }
    }
    match told.is_empty() {
        true => String::new(),
        false => format!("I read {}. ", told.join(", ")),
    }
}

/// What a question asked for besides the files, and what was not there.
fn not_elsewhere(case: &Case<'_>, quoted: &[&Passage]) -> Option<&'static str> {
    match case.question.interest {
        Interest::History(_) => Some("no commit"),
        Interest::Notes if quoted.iter().all(|passage| !passage.is_note) => Some("no note"),
        Interest::Places | Interest::Notes | Interest::Overview => None,
    }
}

fn leading(best: &Passage) -> String {
    let place = match &best.record {
        Some(record) => format!("{} ({})", place(best), inert(record)),
        None => place(best),
    };
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

/// The same, as a search judged it that knows how common each word is and what else it is called.
fn judged_gaps(judged: &Judged) -> Option<String> {
    let words: Vec<String> = judged
        .lacking
        .iter()
        .map(|word| format!("“{}”", shortened(&inert(word), 60)))
        .collect();
    (judged.covered < ENOUGH_COVERED).then(|| match words.is_empty() {
        true => "much of what was asked".to_owned(),
        false => format!("{} not found with the rest", words.join(", ")),
    })
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
            || elsewhere.iter().any(|place| {
                let path = place
                    .rsplit_once(':')
                    .map_or(place.as_str(), |(path, _)| path);
                path == passage.path || *place == passage.path
            });
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

/// What to quote for a question, which may be one of changes: the best passage, those that add words of the question, and what is nearly as
/// good as the best.
pub(super) fn select<'a>(
    passages: &'a [Passage],
    terms: &[Term],
    is_of_changes: bool,
) -> Vec<&'a Passage> {
    let needed = TermSet::needed(terms);
    let Some(best) = passages.first() else {
        return Vec::new();
    };
    // Other files first: which of them has it, people see sooner than any ranking does.
    let mut chosen = vec![best];
    let good = |passage: &&Passage| passage.score * 2 >= best.score;
    while chosen.len() < ENOUGH_QUOTED {
        let mut others = passages
            .iter()
            .filter(good)
            .filter(|passage| chosen.iter().all(|known| known.path != passage.path));
        // The last one is code beside documents, or a document beside code: either may say it.
        // What changed when, change logs say.
        let is_last = chosen.len() + 1 == ENOUGH_QUOTED && !is_of_changes;
        let alike = |passage: &&Passage| {
            chosen
                .iter()
                .all(|known| (known.kind == FileKind::Docs) == (passage.kind == FileKind::Docs))
        };
        let next = match is_last {
            true => others
                .clone()
                .find(|passage| !alike(passage))
                .or_else(|| others.next()),
            false => others.next(),
        };
        let Some(next) = next else { break };
        chosen.push(next);
    }
    let mut covered = chosen
        .iter()
        .fold(TermSet::default(), |set, p| set.or(p.all_terms()));
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
