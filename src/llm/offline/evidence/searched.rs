//! How much a search for a text found, shown or not, by what its last line says of that. Pure.

use super::own;
use crate::model::ToolCall;

/// The search of which is known how it counts.
const COUNTING: &str = "code_search";

/// A search for a text or a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct Searched {
    /// What was looked for, as it was put.
    pub(in super::super) query: String,
    /// How many lines have it, shown or not.
    pub(in super::super) found: u64,
    /// How many of those were not shown.
    pub(in super::super) unshown: u64,
    /// The last line that was shown of one file alone.
    pub(in super::super) reaches: Option<u32>,
    /// Whether it ended before it had looked everywhere.
    pub(in super::super) is_stopped: bool,
}

impl Searched {
    /// None if this is no such search.
    pub(super) fn of(call: &ToolCall, content: &str) -> Option<Self> {
        if call.name != COUNTING {
            return None;
        }
        let arguments = call.parsed().ok()?;
        let query = arguments.get("query")?.as_str()?;
        let last = content.lines().last().unwrap_or("");
        let unshown = last
            .split("; ")
            .find_map(|note| note.strip_prefix('…')?.split_once(" more match"))
            .and_then(|(count, _)| count.parse().ok())
            .unwrap_or(0);
        Some(Self {
            query: query.to_owned(),
            found: shown(content).saturating_add(unshown),
            unshown,
            reaches: reaches(content),
            is_stopped: last.contains("; stopped at the deadline"),
        })
    }
}

/// How many lines were shown as what was found.
fn shown(content: &str) -> u64 {
    let blocks = own::blocks(content);
    let found = blocks.iter().filter_map(|block| {
        let path = own::path_of(block)?;
        let lines = block.iter().filter_map(|line| own::line_of(line, path));
        Some(lines.filter(|(mark, ..)| *mark == ':').count() as u64)
    });
    found.sum()
}

/// The last line that was found, if all of them are of one file.
fn reaches(content: &str) -> Option<u32> {
    let blocks = own::blocks(content);
    let mut of_files = blocks.iter().filter_map(|block| {
        let path = own::path_of(block)?;
        let lines = block.iter().filter_map(|line| own::line_of(line, path));
        let found = lines.filter(|(mark, ..)| *mark == ':');
        Some((path, found.map(|(_, at, _)| at).max()?))
    });
    let (first, mut last) = of_files.next()?;
    for (path, at) in of_files {
        if path != first {
            return None;
        }
        last = last.max(at);
    }
    Some(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::CallId;

    #[test]
    fn what_a_search_found_is_what_it_showed_and_what_it_did_not() {
        let lines = "a.rs-1- // x\na.rs:2: x();\n--\na.rs:9: x();\n\nb.rs:3: x();\n\n";
        for (name, tool, last, found) in [
            (
                "all",
                "code_search",
                "all matches shown; 9 files searched",
                Some((3, false)),
            ),
            (
                "not all",
                "code_search",
                "…2768 more matches in 271 files; narrow the query; 402 files searched",
                Some((2_771, false)),
            ),
            (
                "not all files",
                "code_search",
                "…1 more match in 1 file; narrow the query; 9 files searched; stopped at the deadline after 9 files",
                Some((4, true)),
            ),
            ("another tool", "vault_search", "all matches shown", None),
        ] {
            let call = ToolCall {
                id: CallId::new("c"),
                name: tool.to_owned(),
                arguments: r#"{"query": "x"}"#.to_owned(),
            };
            let searched = Searched::of(&call, &format!("{lines}{last}"));
            let got = searched.map(|searched| (searched.found, searched.is_stopped));
            assert_eq!(got, found, "{name}");
        }
    }
}
