//! What a search did not look at, by what its last line says of that. Pure.

use super::told::notes;
use crate::model::ToolCall;

/// The search of which is known how it tells that.
const TELLING: &str = "code_search";

/// What a search left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in super::super) struct Limits {
    /// Files it looked at, as it tells it: `9 files`. Empty where it does not say.
    pub(in super::super) searched: String,
    /// Whether it ended before it had looked everywhere.
    pub(in super::super) is_stopped: bool,
    /// Whether what it found is in no order of worth.
    pub(in super::super) is_unranked: bool,
    /// Files that are there and that it could not know: `2 files beyond the index`.
    pub(in super::super) left_out: Option<String>,
    /// What it passed over, as it tells it: `2 binary, 1 unreadable`.
    pub(in super::super) skipped: Option<String>,
    /// Whether it was for a plain question.
    is_of_question: bool,
}

/// Whether a search was made before its index was ready, so that it may find better a little later.
pub(in super::super) fn is_early(content: &str) -> bool {
    let notes = notes(content);
    let mut behind = notes.iter().skip(1);
    behind.any(|note| note.starts_with("the index was not ready"))
}

impl Limits {
    /// Takes those of a search, unless they are known of one that says more: for a plain question.
    pub(super) fn take(&mut self, call: &ToolCall, content: &str, is_of_question: bool) {
        if let Some(limits) = Self::of(call, content)
            && (is_of_question || !self.is_of_question)
        {
            *self = Self {
                is_of_question,
                ..limits
            };
        }
    }

    /// None if this is no such search.
    fn of(call: &ToolCall, content: &str) -> Option<Self> {
        if call.name != TELLING {
            return None;
        }
        let mut limits = Self::default();
        for note in notes(content) {
            let is_number = note.starts_with(|c: char| c.is_ascii_digit());
            if let Some(searched) = note.strip_suffix(" searched").filter(|_| is_number) {
                searched.clone_into(&mut limits.searched);
            } else if note.starts_with("stopped at the deadline") {
                limits.is_stopped = true;
            } else if note.starts_with("the index was not ready") {
                limits.is_unranked = true;
            } else if let Some((left_out, _)) = note.split_once(": look there")
                && is_number
            {
                limits.left_out = Some(left_out.to_owned());
            } else if let Some(skipped) = note.strip_prefix("skipped: ") {
                limits.skipped = Some(skipped.to_owned());
            }
        }
        Some(limits)
    }

    /// Whether there was nothing to look at.
    pub(in super::super) fn had_nothing(&self) -> bool {
        self.searched == "0 files" && !self.is_stopped
    }

    /// What an answer from it may lack, if there may be better places.
    pub(in super::super) fn lacking(&self) -> Option<String> {
        match (self.is_stopped, self.is_unranked) {
            (true, _) => Some(format!("a look at all files: {}", self.stopped())),
            (false, true) => Some(
                "the best places: the index was not ready, so what was found first is shown"
                    .to_owned(),
            ),
            (false, false) => None,
        }
    }

    /// Why something may be there that was not found, in words that go on behind a colon.
    pub(in super::super) fn told(&self) -> Option<String> {
        let stopped = self.is_stopped.then(|| self.stopped());
        let skipped = self
            .skipped
            .as_ref()
            .map(|skipped| format!("not read: {skipped}"));
        let told: Vec<String> = stopped
            .into_iter()
            .chain(self.left_out.clone())
            .chain(skipped)
            .collect();
        (!told.is_empty()).then(|| told.join("; "))
    }

    fn stopped(&self) -> String {
        match self.searched.is_empty() {
            true => "the search was stopped at its deadline".to_owned(),
            false => format!(
                "the search was stopped at its deadline after {}",
                self.searched
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::CallId;

    #[test]
    fn what_was_not_looked_at_is_read_from_the_last_line() {
        for (name, last, lacking, told) in [
            ("all", "all 1 place shown; 9 files searched", None, None),
            (
                "stopped",
                "…7 more matches in 2 files; narrow the query; 26958 files searched; stopped at the deadline after \
                 26958 files; the index was not ready, so the lines are not ranked by what they say",
                Some(
                    "a look at all files: the search was stopped at its deadline after 26958 files",
                ),
                Some("the search was stopped at its deadline after 26958 files"),
            ),
            (
                "in no order",
                "all matches shown; 9 files searched; the index was not ready, so the lines are not ranked by what \
                 they say",
                Some("the best places: the index was not ready, so what was found first is shown"),
                None,
            ),
            (
                "passed over",
                "nothing found for `x`; 9 files searched; 3 files beyond the index: look there with `literal`; \
                 skipped: 5 binary, 2 unreadable",
                None,
                Some("3 files beyond the index; not read: 5 binary, 2 unreadable"),
            ),
            (
                "what was asked for says nothing of it",
                "nothing found for `a; stopped at the deadline; 2 files searched`; 9 files searched",
                None,
                None,
            ),
        ] {
            let call = ToolCall {
                id: CallId::new("c"),
                name: "code_search".to_owned(),
                arguments: "{}".to_owned(),
            };
            let limits = Limits::of(&call, &format!("a.rs:1: x\n\n{last}")).unwrap();
            assert_eq!(limits.lacking().as_deref(), lacking, "{name}");
            assert_eq!(limits.told().as_deref(), told, "{name}");
            assert_ne!(limits.searched, "2 files", "{name}");
            let is_early_said = format!("nothing found for `x; the index was not ready`\n{last}");
            assert_eq!(is_early(&is_early_said), limits.is_unranked, "{name}");
        }
    }
}
