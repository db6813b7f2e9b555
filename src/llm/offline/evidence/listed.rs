//! Lists that a search of the notes made: lines as `path:line: text`, under those of one section `in "title ›
//! heading"`, and how many there are in the last line. Pure.

use super::own;
use crate::model::ToolCall;

/// The search that makes them, and the arguments by which it does.
const LISTING: &str = "note_search";
const BY: &[&str] = &["tasks", "links_to"];
/// Arguments by which it finds sections that are a list.
const OF_SECTIONS: &[&str] = &["tag", "status", "kind"];

/// What was listed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Listed {
    pub(in super::super) groups: Vec<Group>,
    /// What is said of how many there are: `9 open tasks in 6 notes`.
    pub(in super::super) count: String,
    /// How many there are besides, which the query left out: `9 open in all`.
    pub(in super::super) of_all: Option<String>,
    /// What was not shown or not looked at.
    pub(in super::super) lacking: Option<String>,
    /// That more sections fit than were shown, of a search for sections.
    pub(in super::super) unshown: Option<String>,
    /// Whether a list was asked for and made, however short.
    pub(in super::super) is_told: bool,
}

/// The lines of one section.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Group {
    pub(in super::super) path: String,
    /// Its headings, the title of its note first.
    pub(in super::super) within: String,
    /// When it is of, if that is known.
    pub(in super::super) day: Option<String>,
    pub(in super::super) lines: Vec<(u32, String)>,
}

/// Whether a call asked for such a list.
pub(super) fn is_list(call: &ToolCall) -> bool {
    has_any(call, BY)
}

fn has_any(call: &ToolCall, names: &[&str]) -> bool {
    let arguments = call.parsed().unwrap_or_default();
    call.name == LISTING && names.iter().any(|name| arguments.get(*name).is_some())
}

impl Listed {
    pub(super) fn take(&mut self, call: &ToolCall, content: &str) {
        self.is_told |= has_any(call, OF_SECTIONS);
        let last = content.lines().last().unwrap_or_default();
        if !is_list(call) {
            let more = last.split("; ").next().unwrap_or_default();
            let is_more = call.name == LISTING && more.contains(" more section");
            self.unshown = is_more.then(|| more.to_owned());
            return;
        }
        self.is_told = true;
        let (count, rest) = last.split_once("; ").unwrap_or((last, ""));
        let (count, unshown) = count.split_once(", of which ").unwrap_or((count, ""));
        let (count, of_all) = match count
            .strip_suffix(" in all")
            .and_then(|one| one.rsplit_once(", "))
        {
            Some((count, of_all)) => (count, Some(of_all)),
            None => (count, None),
        };
        count.clone_into(&mut self.count);
        self.of_all = of_all.map(str::to_owned);
        let unshown = unshown.split(':').next().filter(|one| !one.is_empty());
        let noted = |what: &str| rest.split("; ").find(|note| note.contains(what));
        let late = noted("not looked at in time")
            .and_then(|note| note.split(':').next())
            .map(|late| format!("{late} (notes)"));
        let beyond =
            noted("of a note the first ").map(|_| "the last to-dos of very long notes".to_owned());
        let unshown = unshown.map(str::to_owned);
        let lacking: Vec<String> = unshown.into_iter().chain(late).chain(beyond).collect();
        self.lacking = (!lacking.is_empty()).then(|| lacking.join("; "));
        self.groups
            .extend(own::blocks(content).iter().filter_map(|block| group(block)));
    }

    /// Whether there is anything of the kind, whatever was asked of it.
    pub(in super::super) fn has_any(&self) -> bool {
        let none = |count: &String| count.starts_with("0 ");
        !self.groups.is_empty() || self.of_all.as_ref().is_some_and(|count| !none(count))
    }

    pub(in super::super) fn lines(&self) -> usize {
        self.groups.iter().map(|group| group.lines.len()).sum()
    }
}

fn group(block: &[&str]) -> Option<Group> {
    let path = own::path_of(block)?;
    let lines = block.iter().filter_map(|line| own::line_of(line, path));
    let lines: Vec<(u32, String)> = lines.map(|(_, at, text)| (at, text.to_owned())).collect();
    let about = block.iter().find_map(|line| line.strip_prefix("  in \""))?;
    let (within, known) = about
        .rsplit_once("\" · ")
        .unwrap_or((about.trim_end_matches('"'), ""));
    let is_day = |part: &&str| {
        part.len() == 10
            && part
                .bytes()
                .all(|byte| byte.is_ascii_digit() || byte == b'-')
    };
    Some(Group {
        path: path.to_owned(),
        within: within.to_owned(),
        day: known.split(" · ").find(is_day).map(str::to_owned),
        lines,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::CallId;

    #[test]
    fn what_a_list_lacks_is_known_of_its_last_line() {
        let call = ToolCall {
            id: CallId::new("c"),
            name: LISTING.to_owned(),
            arguments: r#"{"query": "", "tasks": "open"}"#.to_owned(),
        };
        for (last, count, lacking) in [
            (
                "2 open tasks in 1 note; 9 sections in 3 notes searched",
                "2 open tasks in 1 note",
                None,
            ),
            (
                "90 open tasks in 4 notes, of which 40 are not shown: narrow the query; 2 not looked at in time: search \
                 again; 9 sections in 3 notes searched",
                "90 open tasks in 4 notes",
                Some("40 are not shown; 2 not looked at in time (notes)"),
            ),
            (
                "2000 open tasks in 1 note; of a note the first 2000 tasks are looked at; 9 sections in 3 notes searched",
                "2000 open tasks in 1 note",
                Some("the last to-dos of very long notes"),
            ),
        ] {
            let mut listed = Listed::default();
            listed.take(&call, last);
            assert_eq!(listed.count, count);
            assert_eq!(listed.lacking.as_deref(), lacking, "{last}");
        }
    }
}
