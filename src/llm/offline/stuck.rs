//! The reply when nothing was found: what was tried, what stands in the way, what might help.
//!
//! Pure.

use serde_json::Value;

use super::{
    answer::{Case, names},
    conversation::{Asked, Standing},
    evidence::Evidence,
    interest::Interest,
    protocol::{Percent, Stand, inert, inert_path, shortened},
    term::Term,
    toolbox::{HISTORY_SEARCH, Toolbox, is_for},
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
    let asked = &case.conversation.asked;
    let blocker = blocker(case, &about);
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

fn blocker(case: &Case<'_>, about: &str) -> String {
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
        (false, _) => with_limits(
            format!("no file that was searched has {about}"),
            case.evidence,
        ),
    }
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
        .or_else(|| text("focus"));
    let what = match (sought, text("path").or_else(|| text("note"))) {
        (Some(sought), _) => format!(" for “{}”", shortened(&inert(&as_asked(sought, terms)), 80)),
        (None, Some(path)) => format!(" of {}", shortened(&inert(path), 80)),
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

/// Whether a result tells that there is nothing, and not what there is besides.
fn says_nothing(content: &str) -> bool {
    let last = content.trim_end().lines().last().unwrap_or_default();
    last.is_empty() || last.starts_with("nothing ") || last.starts_with("no ")
}

/// What was looked for, in the words of the question: searches are given stems of them.
fn as_asked(sought: &str, terms: &[Term]) -> String {
    let stands_for = |term: &Term, word: &str| term.literal() == word || is_for(word, &term.shown);
    let whole = |word: &str| terms.iter().find(|term| stands_for(term, word));
    let of_words = || {
        let words = sought.split(' ');
        let words = words.map(|word| whole(word).map_or(word, |term| &term.shown));
        words.collect::<Vec<_>>().join(" ")
    };
    whole(sought).map_or_else(of_words, |term| term.shown.clone())
}

fn said(content: &str) -> String {
    let first = content
        .lines()
        .find(|line| !line.trim().is_empty())
        .unwrap_or("no reason given");
    format!("“{}”", shortened(&inert(first), 100))
}
