//! The answer of a query as its record has it (spec 6, 8).

use super::query::Query;
use crate::model::ForcedBy;

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
    let [after_text, alone] = by.marks();
    let text = accumulated(query);
    if text.is_empty() {
        alone.to_owned()
    } else {
        format!("{text}\n\n{after_text}")
    }
}
