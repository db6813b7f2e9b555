//! Which files are there, by maps of the places in which they may lie. Pure.

use super::{conversation::Asked, source::FileKind, toolbox::REPO_MAP};
use crate::model::ToolStatus;

/// What maps of the places told.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// The files that are there: those at the top first, tests and what is of others last.
    pub(super) paths: Vec<String>,
    /// How many more there are, whose names were not shown.
    pub(super) more: u64,
    /// The folders of those, with how many lie in each and below it.
    pub(super) folders: Vec<(String, u64)>,
    /// How many there are in all, as the maps count them.
    pub(super) total: u64,
    /// The places that were looked at.
    pub(super) looked: Vec<String>,
    /// Whether not all files were looked at.
    pub(super) is_cut: bool,
}

/// None if no place was looked at.
pub(super) fn seen(places: &[String], asked: &[Asked<'_>]) -> Option<Seen> {
    let mut seen = Seen::default();
    for asked in asked.iter().filter(|asked| asked.call.name == REPO_MAP) {
        let arguments = asked.call.parsed().ok();
        let place = arguments.and_then(|one| Some(one.get("path")?.as_str()?.to_owned()));
        let place = place.filter(|place| places.contains(place));
        let (Some(place), Some(result)) = (place, asked.result) else {
            continue;
        };
        match result.status {
            ToolStatus::Ok => seen.take(&result.content),
            ToolStatus::Failed if result.content.starts_with("there is no ") => {}
            ToolStatus::Failed | ToolStatus::Denied | ToolStatus::Refused | ToolStatus::Unknown => {
                continue;
            }
        }
        seen.looked.push(place);
    }
    let of_others = |path: &String| !matches!(FileKind::of(path), FileKind::Code | FileKind::Docs);
    let depth = |path: &String| path.matches('/').count();
    seen.paths
        .sort_by_cached_key(|path| (of_others(path), depth(path), path.clone()));
    seen.paths.dedup();
    (!seen.looked.is_empty()).then_some(seen)
}

impl Seen {
    /// Takes a map: its size, then a line for each folder with the names of its files or their number.
    fn take(&mut self, map: &str) {
        let head = map.lines().next().unwrap_or_default();
        let total = head
            .split_once(' ')
            .and_then(|(count, _)| count.parse::<u64>().ok());
        self.total += total.unwrap_or(0);
        let folders = map.lines().skip(1).take_while(|line| !line.is_empty());
        for (folder, names) in folders.filter_map(|line| line.split_once("/ ")) {
            let count = names.split_once(" file").and_then(|(count, rest)| {
                let is_count = rest.is_empty() || rest == "s";
                count.parse::<u64>().ok().filter(|_| is_count)
            });
            match (count, folder) {
                (Some(count), _) => {
                    self.more += count;
                    self.folders.push((folder.to_owned(), count));
                }
                (None, ".") => self.paths.extend(names.split(", ").map(str::to_owned)),
                (None, folder) => {
                    let names = names.split(", ").map(|name| format!("{folder}/{name}"));
                    self.paths.extend(names);
                }
            }
        }
        let last = map.lines().last().unwrap_or_default();
        self.is_cut |=
            last.contains("stopped at the deadline") || last.contains("there are more files than");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{CallId, ToolCall, ToolResult};

    #[test]
    fn maps_tell_what_is_there() {
        let places = ["{Makefile}".to_owned(), ".mk".to_owned()];
        let none = "there is no `.mk`: find the right path";
        for (name, place, status, content, found) in [
            (
                "some",
                "{Makefile}",
                ToolStatus::Ok,
                "6 files in files like `{Makefile}`, 0 with an outline\nb/c/ Makefile\n./ Makefile\ntests/ Makefile\n\
                 lib/ 3 files\n\nno symbols found",
                Some("Makefile b/c/Makefile tests/Makefile +3"),
            ),
            (
                "none",
                "{Makefile}",
                ToolStatus::Ok,
                "0 files in files like `{Makefile}`, 0 with an outline\n\n\nno symbols found",
                Some(" +0"),
            ),
            (
                "not by its name",
                ".mk",
                ToolStatus::Failed,
                none,
                Some(" +0"),
            ),
            ("nobody knows", ".mk", ToolStatus::Failed, "no room", None),
            (
                "another place",
                "src",
                ToolStatus::Ok,
                "1 file\n./ Makefile",
                None,
            ),
        ] {
            let call = ToolCall {
                id: CallId::new("c"),
                name: REPO_MAP.to_owned(),
                arguments: format!(r#"{{"path": "{place}"}}"#),
            };
            let result = ToolResult {
                call: call.id.clone(),
                status,
                content: content.to_owned(),
            };
            let asked = Asked {
                call: &call,
                result: Some(&result),
            };
            let seen = seen(&places, &[asked]);
            let got = seen.map(|seen| format!("{} +{}", seen.paths.join(" "), seen.more));
            assert_eq!(got.as_deref(), found, "{name}");
        }
    }
}
