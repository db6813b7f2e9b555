//! The reply when nothing was found: what was tried, what stands in the way, what might help.
//!
//! Pure.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    answer::{Case, names},
    conversation::{Asked, Standing},
    evidence::Evidence,
    interest::Interest,
    lexicon::holds,
    protocol::{Percent, Stand, inert, inert_path, shortened},
    question::Shown,
    term::{Term, TermKind, TermSet},
    toolbox::{HISTORY_SEARCH, Toolbox, is_for_all, is_for_marked},
};
use crate::{
    llm::{Request, ToolChoice},
    model::ToolStatus,
};

/// That there may be commits that were not looked at.
pub(super) const STOPPED_HISTORY: &str = "the search of the history was stopped at its deadline";

/// Most attempts that are told.
const MOST_TOLD: usize = 8;

/// Whether there is anything to search with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Means {
    Tools,
    /// There is, but not in this turn, which is the last.
    NoTurn,
    None,
}

impl Means {
    pub(super) fn of(request: &Request, asked: &[Asked<'_>]) -> Self {
        match request.tool_choice {
            _ if !Toolbox::of(&request.tools, asked).can_search() => Self::None,
            ToolChoice::Auto => Self::Tools,
            ToolChoice::None => Self::NoTurn,
        }
    }
}

pub(super) fn compose(case: &Case<'_>) -> (String, Stand, Percent) {
    let about = match (names(case.question.terms.iter()), case.question.interest) {
        (none, Interest::History(_)) if none.is_empty() => "the latest changes".to_owned(),
        (none, Interest::Notes | Interest::Settled) if none.is_empty() => {
            "what was noted".to_owned()
        }
        (none, Interest::Overview) if none.is_empty() => "the project as a whole".to_owned(),
        (none, Interest::HowTo(chore)) if none.is_empty() => format!("how {}", chore.named()),
        (none, Interest::Facts(fact)) if none.is_empty() => fact.named().to_owned(),
        (about, _) => about,
    };
    let about = match &case.question.shown {
        Some(Shown::Folder(folder)) => format!("“{}”", inert_path(folder)),
        Some(Shown::File(_)) | None => about,
    };
    let asked = &case.conversation.asked;
    let blocker = blocker(case);
    let attempt = |asked| attempt(asked, &case.question.terms);
    let mut attempted: Vec<String> = Vec::new();
    // Two calls may differ in what is not told of them.
    for told in asked.iter().map(attempt) {
        if attempted.len() < MOST_TOLD && !attempted.contains(&told) {
            attempted.push(told);
        }
    }
    if attempted.is_empty() {
        attempted.push("looking at the conversation alone".to_owned());
    }
    let suggestions = suggestions(case);
    // Who is stuck once is given another turn, which tells it all.
    let body = match (case.conversation.standing, case.means) {
        (Standing::Going, Means::Tools) => {
            format!("I found nothing about {about} so far: {blocker}. I try it another way.")
        }
        _ => {
            let tried: Vec<String> = attempted
                .iter()
                .map(|attempt| format!("- {attempt}"))
                .collect();
            format!(
                "I found nothing about {about}: {blocker}.\n\nWhat I tried:\n{}\n\nWhat might help: {}.",
                tried.join("\n"),
                suggestions.join("; ")
            )
        }
    };
    (
        body,
        Stand::Stuck {
            attempted,
            blocker,
            suggestions,
        },
        Percent(80),
    )
}

fn blocker(case: &Case<'_>) -> String {
    let asked = &case.conversation.asked;
    let all_failed = asked.iter().all(|asked| !asked.worked());
    // That files were listed says nothing about what is in them.
    let mut searches = asked.iter().filter(|asked| is_search(asked)).peekable();
    let no_search_worked = searches.peek().is_some() && searches.all(|asked| !asked.worked());
    if let (Some(failed), Interest::History(_)) = (failed_history(case), case.question.interest) {
        return failed;
    }
    let of_history = matches!(case.question.interest, Interest::History(_));
    if of_history && case.evidence.history.is_stopped {
        return STOPPED_HISTORY.to_owned();
    }
    if let Some(refused) = refused(case) {
        return refused;
    }
    match (asked.is_empty(), case.means) {
        (true, Means::None) => "there are no tools to search the files with".to_owned(),
        (true, Means::NoTurn) => "no turn was left to search the files".to_owned(),
        (true, Means::Tools) => "no search was made".to_owned(),
        (false, _) if all_failed => "every call of a tool failed".to_owned(),
        (false, _) if no_search_worked => "every search failed".to_owned(),
        (false, _) if read_at_top(case).is_some() => read_at_top(case).unwrap_or_default(),
        // A search that found something is not told to have found nothing.
        (false, _) if is_told_of(case.evidence) => {
            "a search found something, but nothing that could be quoted".to_owned()
        }
        (false, _) if case.evidence.limits.had_nothing() => {
            let none = "there is no file here that could be searched".to_owned();
            with_limits(none, case.evidence)
        }
        (false, _) => {
            let absent = names(absent(case));
            let told = match absent.is_empty() {
                true => "no search found a place that could be quoted".to_owned(),
                false => format!("no file that was searched has {absent}"),
            };
            with_limits(told, case.evidence)
        }
    }
}

/// What the searches showed to be nowhere: looked for by itself, and in no line that is known.
fn absent<'a>(case: &'a Case<'_>) -> impl Iterator<Item = &'a Term> {
    let searches = case
        .conversation
        .asked
        .iter()
        .filter(|asked| asked.worked());
    let queries: Vec<String> = searches
        .filter_map(|asked| {
            let arguments = asked.call.parsed().ok()?;
            Some(arguments.get("query")?.as_str()?.to_owned())
        })
        .collect();
    let lines = case.evidence.files.values().flat_map(BTreeMap::values);
    let lines: Vec<String> = lines.map(|line| line.to_lowercase()).collect();
    let is_told = |term: &Term| case.evidence.absent.contains(&term.shown);
    let is_sought = move |term: &Term| {
        let mut queries = queries.iter();
        is_told(term) || queries.any(|query| stands_for(term, query))
    };
    let is_known = move |term: &Term| {
        let word = term.literal().to_lowercase();
        lines.iter().any(|line| line.contains(&word))
    };
    let terms = case.question.terms.iter();
    terms.filter(move |term| is_sought(term) && !is_known(term))
}

/// Whether a search for this looks for the term alone.
fn stands_for(term: &Term, query: &str) -> bool {
    term.literal() == query || is_for_all(query, &term.shown)
}

/// Why the file or the folder could not be looked at that the question names.
fn refused(case: &Case<'_>) -> Option<String> {
    let folder = case.question.shown.iter().find_map(|shown| match shown {
        Shown::Folder(folder) => Some(folder),
        Shown::File(_) => None,
    });
    let is_named = |path: &str| {
        let mut terms = case.question.terms.iter();
        terms.any(|term| term.kind == TermKind::Path && term.shown == path)
            || folder.is_some_and(|folder| folder == path)
    };
    let asked = case
        .conversation
        .asked
        .iter()
        .filter(|asked| !asked.worked());
    let refused = asked.filter(|asked| {
        let arguments = asked.call.parsed().unwrap_or(Value::Null);
        let path = arguments.get("path").and_then(Value::as_str);
        path.is_some_and(is_named)
    });
    let said = refused.filter_map(|asked| Some(first_line(&asked.result?.content)));
    said.map(|why| shortened(&inert(without_advice(why)), 200))
        .next()
}

/// Which files at the top did not say what a project says of itself; none if nothing of the kind was asked for, or no
/// file is known there.
fn read_at_top(case: &Case<'_>) -> Option<String> {
    if !matches!(
        case.question.interest,
        Interest::Facts(_) | Interest::HowTo(_)
    ) {
        return None;
    }
    let asked = case.conversation.asked.iter();
    let paths =
        asked.filter_map(|asked| Some(asked.call.parsed().ok()?.get("path")?.as_str()?.to_owned()));
    let mut read: Vec<String> = paths
        .filter(|path| case.evidence.files.contains_key(path))
        .map(|path| inert_path(&path))
        .collect();
    read.dedup();
    read.truncate(MOST_TOLD);
    match (read.is_empty(), case.evidence.top_files().is_empty()) {
        (false, _) => Some(format!(
            "I read {} and saw nothing of it there",
            listed(&read)
        )),
        (true, false) => Some("none of the files at the top is known to say it".to_owned()),
        (true, true) => None,
    }
}

/// "a, b and c".
fn listed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// A text with what was not looked at.
fn with_limits(text: String, evidence: &Evidence) -> String {
    match evidence.limits.told() {
        Some(told) => format!("{text} ({told})"),
        None => text,
    }
}

/// That the history could not be searched, with what was said of that; none if it could, or was not asked.
pub(super) fn failed_history(case: &Case<'_>) -> Option<String> {
    let mut asked = case.conversation.asked.iter();
    let failed = asked.find(|asked| asked.call.name == HISTORY_SEARCH && !asked.worked())?;
    let why = failed.result.map_or("", |result| &result.content);
    // What to do about it is behind that, and for a model to read.
    let why = why.split_once(": ").map_or(why, |(why, _)| why);
    Some(format!("the history could not be searched, {}", said(why)))
}

/// Whether there is no history at all, by what was said of that.
pub(super) fn has_no_repository(case: &Case<'_>) -> bool {
    failed_history(case).is_some_and(|failed| failed.contains("no git repository"))
}

fn is_search(asked: &Asked<'_>) -> bool {
    let arguments = asked.call.parsed().unwrap_or(Value::Null);
    arguments.get("query").is_some() || asked.call.name == HISTORY_SEARCH
}

/// Whether a search named places that have something of the question.
fn is_told_of(evidence: &Evidence) -> bool {
    evidence
        .judged
        .as_ref()
        .is_some_and(|judged| judged.covered > 0)
}

fn suggestions(case: &Case<'_>) -> Vec<String> {
    let means = match case.means {
        Means::None => "offer a tool for searching files",
        Means::NoTurn => "allow more turns",
        Means::Tools => "name a file, a function or the text of an error",
    };
    let strategy = match case.conversation.standing {
        Standing::Going => "search for each word and each part of a name by itself",
        Standing::Urged | Standing::Retried => "ask with other words",
    };
    [means, strategy, "configure a model"]
        .map(str::to_owned)
        .to_vec()
}

/// What a call was, and what came of it.
fn attempt(asked: &Asked<'_>, terms: &[Term]) -> String {
    let arguments = asked.call.parsed().unwrap_or(Value::Null);
    let text = |name: &str| arguments.get(name).and_then(Value::as_str);
    let sought = text("query")
        .or_else(|| text("text"))
        .or_else(|| text("line"))
        .or_else(|| text("focus"));
    let sought = match text("mode") {
        Some("regex") => sought.map(|pattern| by_pattern(pattern, terms)),
        _ => sought.map(|sought| Some(as_asked(sought, terms))),
    };
    let what = match (sought, text("path").or_else(|| text("note"))) {
        (Some(Some(sought)), _) => format!(" for “{}”", shortened(&inert(&sought), 80)),
        (Some(None), _) => String::new(),
        (None, Some(path)) => format!(" of {}", shortened(&inert(without_glob(path)), 80)),
        (None, None) => String::new(),
    };
    let came = match asked.result {
        None => "no result".to_owned(),
        Some(result) => match result.status {
            ToolStatus::Ok if says_nothing(&result.content) => "nothing".to_owned(),
            ToolStatus::Ok => "nothing about it".to_owned(),
            ToolStatus::Denied => "denied".to_owned(),
            ToolStatus::Refused => format!("refused, {}", said(&result.content)),
            ToolStatus::Failed => format!("failed, {}", said(&result.content)),
            ToolStatus::Unknown => "outcome unknown".to_owned(),
        },
    };
    format!("{}{what}: {came}", inert(&asked.call.name))
}

/// The file that is looked for in all folders, without the signs that say so.
fn without_glob(path: &str) -> &str {
    let inner = path.trim_start_matches('{').trim_end_matches('}');
    inner.trim_start_matches("**/")
}

/// Whether a result tells that there is nothing, and not what there is besides.
fn says_nothing(content: &str) -> bool {
    let last = content.trim_end().lines().last().unwrap_or_default();
    last.is_empty() || last.starts_with("nothing ") || last.starts_with("no ")
}

/// What was looked for, in the words of the question: searches are given stems of them.
fn as_asked(sought: &str, terms: &[Term]) -> String {
    let whole = |word: &str| terms.iter().find(|term| term.literal() == word);
    let of_words = || {
        let words = sought.split(' ');
        let words = words.map(|word| whole(word).map_or(word, |term| &term.shown));
        words.collect::<Vec<_>>().join(" ")
    };
    whole(sought).map_or_else(of_words, |term| term.shown.clone())
}

/// What a pattern of ours looks for, in the words of the question; none if those do not tell.
fn by_pattern(pattern: &str, terms: &[Term]) -> Option<String> {
    if is_for_marked(pattern) {
        return Some("TODO and FIXME".to_owned());
    }
    let has = |term: &&Term| pattern.contains(&regex::escape(&term.shown));
    let known = TermSet::needed(terms).of(terms).filter(has);
    let known: Vec<&str> = known.map(|term| &*term.shown).collect();
    (!known.is_empty()).then(|| known.join(" "))
}

fn said(content: &str) -> String {
    let why = without_advice(first_line(content));
    format!("“{}”", shortened(&inert(why), 100))
}

fn first_line(content: &str) -> &str {
    let mut lines = content.lines();
    lines
        .find(|line| !line.trim().is_empty())
        .unwrap_or("no reason given")
}

/// Without what a tool says to do about it, which is for a model to read.
fn without_advice(why: &str) -> &str {
    let is_advice = |rest: &str| {
        let first = rest.split_whitespace().next().unwrap_or_default();
        holds(
            "use name find give ask try call look allow read save",
            first,
        )
    };
    let advice = why
        .match_indices(": ")
        .find(|(at, sign)| is_advice(&why[at + sign.len()..]));
    advice.map_or(why, |(at, _)| &why[..at])
}
