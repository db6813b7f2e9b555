//! The places as the model reads them: one a line, and a last line that says what is not shown.

use std::fmt::Write as _;

use super::{Found, Said};
use crate::{
    model::{SessionName, Utterance},
    tool::text::{clipped, counted, on_one_line, quoted},
};

/// Longest excerpt shown, in characters; whoever finds them keeps to less.
const EXCERPT: usize = 300;

/// What was found for `query`, seen from the session `here`.
pub(super) fn report(
    query: &str,
    of: Option<&SessionName>,
    here: &SessionName,
    found: &Found,
) -> String {
    if found.places.is_empty() {
        return nothing(query, of, found.whole);
    }
    // Writing to a string cannot fail.
    let mut text = String::new();
    for place in &found.places {
        let _ = writeln!(text, "{}", line(place, here));
    }
    let count = counted(found.places.len() as u64, "place", "places");
    let _ = match (found.more, found.whole) {
        (true, _) => write!(
            text,
            "\n{count} shown, the latest first; there are more: add words, name a session, or raise limit"
        ),
        (false, true) => write!(text, "\nall found: {count}, the latest first"),
        (false, false) => write!(
            text,
            "\n{count} shown, the latest first; older ones were not looked at: add words"
        ),
    };
    text
}

fn line(place: &Said, here: &SessionName) -> String {
    let Said {
        session, seq, at, ..
    } = place;
    let this = if session == here {
        " (this session)"
    } else {
        ""
    };
    let who = match place.said {
        Utterance::Question => "the user asked",
        Utterance::Addition => "added while it was answered",
        Utterance::Answer => "Oracle answered",
    };
    let excerpt = on_one_line(&place.excerpt);
    let (excerpt, cut) = clipped(&excerpt, EXCERPT);
    let tail = if cut { "…" } else { "" };
    format!("{session}{this}, event {seq}, {at}, {who}: {excerpt}{tail}")
}

fn nothing(query: &str, of: Option<&SessionName>, whole: bool) -> String {
    let query = quoted(query);
    let place = of.map_or_else(
        || "in an earlier conversation".to_owned(),
        |session| format!("in the session {session}"),
    );
    let older = if whole {
        ""
    } else {
        " among the latest places with these words"
    };
    format!(
        "Nobody has said all words of {query} {place}{older}. Words are compared as wholes: try \
         fewer, other forms of them, or other words."
    )
}
