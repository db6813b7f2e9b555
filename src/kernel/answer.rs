//! The answer that people get, and the texts of a forced end (spec 6, 8).

use super::query::Query;
use crate::model::ForcedBy;

const TRUNCATED: &str = "[Response truncated due to budget limit]";
const NOTHING: &str = "[Unable to complete: budget limit reached]";
const STOPPED: &str = "[Response stopped by operator]";

/// The visible texts of the query, joined by a blank line.
pub(super) fn accumulated(query: &Query) -> String {
    let texts = query.texts.oldest_first().into_iter();
    texts.map(|text| &**text).collect::<Vec<_>>().join("\n\n")
}

/// The text that is kept while its signal is asked for, else that of the last reply where it has any, else
/// the accumulated text.
pub(super) fn answer(query: &Query) -> String {
    match query.kept.as_ref().or(query.current.text.as_ref()) {
        Some(text) => text.to_string(),
        None => accumulated(query),
    }
}

/// What was accumulated, and why there is no more.
pub(super) fn forced(query: &Query, by: ForcedBy) -> String {
    let (after_text, alone) = match by {
        ForcedBy::Budget | ForcedBy::Loop | ForcedBy::Tokens | ForcedBy::Cost => {
            (TRUNCATED, NOTHING)
        }
        ForcedBy::Operator => (STOPPED, STOPPED),
    };
    let text = accumulated(query);
    if text.is_empty() {
        alone.to_owned()
    } else {
        format!("{text}\n\n{after_text}")
    }
}
