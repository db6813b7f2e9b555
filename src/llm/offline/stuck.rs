//! The reply when nothing was found: what was tried, what stands in the way, what might help.
//!
//! Pure.

use serde_json::Value;

use super::{
    answer::{Case, Means, names},
    conversation::{Asked, Standing},
    interest::Interest,
    protocol::{Percent, Stand, inert, shortened},
};
use crate::model::ToolStatus;

/// Most attempts that are told.
const MOST_TOLD: usize = 8;

pub(super) fn compose(case: &Case<'_>) -> (String, Stand, Percent) {
    let about = match (names(case.question.terms.iter()), case.question.interest) {
        (none, Interest::History(_)) if none.is_empty() => "the latest changes".to_owned(),
        (none, Interest::Notes) if none.is_empty() => "what was noted".to_owned(),
        (none, Interest::Overview) if none.is_empty() => "the project as a whole".to_owned(),
        (about, _) => about,
    };
    let asked = &case.conversation.asked;
    let blocker = blocker(case, &about);
    let mut attempted: Vec<String> = asked.iter().map(attempt).take(MOST_TOLD).collect();
    if attempted.is_empty() {
        attempted.push("looking at the conversation alone".to_owned());
    }
    let tried: Vec<String> = attempted
        .iter()
        .map(|attempt| format!("- {attempt}"))
        .collect();
    let suggestions = suggestions(case);
    let body = format!(
        "I found nothing about {about}: {blocker}.\n\nWhat I tried:\n{}\n\nWhat might help: {}.",
        tried.join("\n"),
        suggestions.join("; ")
    );
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
    let failed = asked.iter().filter(|asked| !asked.worked()).count();
    match (asked.is_empty(), case.means) {
        (true, Means::None) => "there are no tools to search the files with".to_owned(),
        (true, Means::Tools) => "no search was made".to_owned(),
        (false, _) if failed == asked.len() => "every call of a tool failed".to_owned(),
        (false, _) => format!("no file that was searched has {about}"),
    }
}

fn suggestions(case: &Case<'_>) -> Vec<String> {
    let means = match case.means {
        Means::None => "offer a tool for searching files",
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
fn attempt(asked: &Asked<'_>) -> String {
    let arguments = asked.call.parsed().unwrap_or(Value::Null);
    let text = |name: &str| arguments.get(name).and_then(Value::as_str);
    let sought = text("query")
        .or_else(|| text("text"))
        .or_else(|| text("focus"));
    let what = match (sought, text("path").or_else(|| text("note"))) {
        (Some(sought), _) => format!(" for “{}”", shortened(&inert(sought), 80)),
        (None, Some(path)) => format!(" of {}", shortened(&inert(path), 80)),
        (None, None) => String::new(),
    };
    let came = match asked.result {
        None => "no result".to_owned(),
        Some(result) => match result.status {
            ToolStatus::Ok => "nothing".to_owned(),
            ToolStatus::Denied => "denied".to_owned(),
            ToolStatus::Refused => format!("refused, {}", said(&result.content)),
            ToolStatus::Failed => format!("failed, {}", said(&result.content)),
            ToolStatus::Unknown => "outcome unknown".to_owned(),
        },
    };
    format!("{}{what}: {came}", inert(&asked.call.name))
}

fn said(content: &str) -> String {
    let first = content
        .lines()
        .find(|line| !line.trim().is_empty())
        .unwrap_or("no reason given");
    format!("“{}”", shortened(&inert(first), 100))
}
