//! Questions about what changed, which change logs answer.

use super::*;

const LOG: &str = "# Changelog\n\n## [Unreleased]\n\n## [2.0.0] - 2024-05-01\n\n### Changed\n\n- Vaults open faster.\n\n\
    ### Removed\n\n- Removed `Vault::peek`.\n\n## [1.9.1] - 2024-02-01\n\n- Fixed a leak of `Door`.\n\n\
    ## [1.9.0] - 2024-01-01\n\n### Added\n\n- Added `Door`.\n\n## [1.8.0] - 2023-01-01\n\n- Added `Vault`.\n";
const LONG: &str = "docs/news.rst";

/// A long version, of which not all is shown.
fn long() -> &'static str {
    let part = |name: &str| {
        let lines: Vec<String> = (0..50).map(|at| format!("* {name} {at}")).collect();
        format!("{name}\n-----\n\n{}\n\n", lines.join("\n"))
    };
    let text = format!(
        "Scrapy 2.11.1 (2024-02-14)\n==========================\n\n* a\n\nScrapy 2.11.0 (2023-09-18)\n\
         ==========================\n\n{}{}Scrapy 2.10.0\n=============\n\n* b\n",
        part("Alpha"),
        part("Beta ")
    );
    Box::leak(text.into_boxed_str())
}

fn tools_of_logs() -> Vec<ToolSpec> {
    let mut tools = tools();
    let (text, number) = (json!({"type": "string"}), json!({"type": "integer"}));
    tools[0].schema["properties"]["path"] = text;
    tools[1].schema["properties"]["start_line"] = number.clone();
    tools[1].schema["properties"]["end_line"] = number;
    tools
}

/// A search with the lines around each match, and readings of some lines, as the tools of the project make them.
fn answer(project: &Project, call: &ToolCall) -> (ToolStatus, String) {
    let arguments = call.parsed().unwrap();
    let number = |name: &str| arguments[name].as_u64().map(|number| number as usize);
    let text = |name: &str| arguments[name].as_str().unwrap_or("");
    if call.name == "file_read" {
        let content = project.0[text("path")];
        let all: Vec<&str> = content.lines().collect();
        let around = number("around");
        let first = number("start_line").or(around).unwrap_or(1);
        let last = number("end_line")
            .or(around)
            .unwrap_or(all.len())
            .min(all.len());
        let shown: Vec<String> = (first..=last)
            .map(|at| format!("{at}: {}", all[at - 1]))
            .collect();
        let head = format!("{} (lines {first}–{last} of {})", text("path"), all.len());
        return (ToolStatus::Ok, format!("{head}\n{}", shown.join("\n")));
    }
    if text("mode") != "regex" {
        return (ToolStatus::Ok, "nothing found; 2 files searched".to_owned());
    }
    let wanted = Regex::new(text("query")).unwrap();
    let blocks = project.0.iter().filter_map(|(path, content)| {
        let all: Vec<&str> = content.lines().collect();
        let is_match = |at: usize| all.get(at).is_some_and(|line| wanted.is_match(line));
        let shown = (0..all.len()).filter_map(|at| {
            let beside = is_match(at + 1) || at.checked_sub(1).is_some_and(is_match);
            let mark = if is_match(at) { ':' } else { '-' };
            (is_match(at) || beside).then(|| format!("{path}{mark}{}{mark} {}", at + 1, all[at]))
        });
        let shown: Vec<String> = shown.collect();
        (!shown.is_empty()).then(|| shown.join("\n"))
    });
    let blocks: Vec<String> = blocks.collect();
    let last = "all matches shown; 2 files searched";
    (ToolStatus::Ok, format!("{}\n\n{last}", blocks.join("\n\n")))
}

#[test]
fn change_logs_tell_what_changed_when() {
    let log: &[(&str, &str)] = &[("CHANGELOG.md", LOG)];
    let news: &[(&str, &str)] = &[(LONG, long())];
    for (name, files, question, signal, holds, lacks) in [
        (
            "a version with all its parts",
            log,
            "what changed in 2.0.0?",
            "context_sufficient",
            &[
                "2.0.0 (2024-05-01) is in CHANGELOG.md:5-13.",
                "### Changed",
                "- Vaults open faster.",
                "### Removed\n\n- Removed `Vault::peek`.\n```",
            ][..],
            "1.9.1",
        ),
        (
            "two numbers that no heading has alone",
            news,
            "what changed in 2.11?",
            "context_sufficient",
            &[
                "2.11.0 (2023-09-18) is in docs/news.rst:6-",
                "Alpha\n-----\n\n* Alpha 0\n",
                "more lines (docs/news.rst:",
                "Beta\n-----\n\n* Beta  0\n",
            ],
            "2.11.1",
        ),
        (
            "all that are called so",
            log,
            "what changed in v1?",
            "context_sufficient",
            &[
                "No heading is just 1;",
                "- 1.9.1 (2024-02-01), CHANGELOG.md:15: Fixed a leak of 'Door'.\n- 1.9.0",
            ],
            "2.0.0",
        ),
        (
            "a version that is not there",
            log,
            "what changed in 1.9.5?",
            "partial_answer",
            &[
                "I found no heading of 1.9.5",
                "Next to it: 2.0.0 (2024-05-01), CHANGELOG.md:5; 1.9.1",
            ],
            "closest match",
        ),
        (
            "several",
            log,
            "what changed between 1.8.0 and 1.9.1?",
            "context_sufficient",
            &[
                "There are 2 versions behind 1.8.0, up to 1.9.1, the newest first:",
                "- 1.9.0 (2024-01-01), CHANGELOG.md:19: Added 'Door'.",
            ],
            "2.0.0",
        ),
        (
            "all behind one",
            log,
            "what changed since 1.9.0?",
            "context_sufficient",
            &[
                "There are 2 versions behind 1.9.0",
                "- 2.0.0 (2024-05-01), CHANGELOG.md:5: Vaults",
            ],
            "1.8.0",
        ),
        (
            "nothing behind one",
            log,
            "what changed since 2.0.0?",
            "partial_answer",
            &["I found no versions behind 2.0.0."],
            "closest match",
        ),
        (
            "the newest that has anything",
            log,
            "what's new?",
            "context_sufficient",
            &["The newest version is 2.0.0 (2024-05-01), in CHANGELOG.md:5-13."],
            "Not released",
        ),
        (
            "since when there is something",
            log,
            "in which version was Door introduced?",
            "context_sufficient",
            &["In 1.9.0 (2024-01-01), CHANGELOG.md:23:", "- Added `Door`."],
            "1.9.1",
        ),
        (
            "how long there was something",
            log,
            "when was Vault::peek removed?",
            "context_sufficient",
            &["In 2.0.0 (2024-05-01), CHANGELOG.md:13:"],
            "nothing about commits",
        ),
        (
            "what no entry says",
            log,
            "when was Door removed?",
            "partial_answer",
            &[
                "I found no entry that says that 'Door' was removed; the newest that names it is in 1.9.1",
            ],
            "closest match",
        ),
    ] {
        let name = &format!("{name}: {question}");
        let project = Project(files.iter().copied().collect());
        let mut run = Run::new(tools_of_logs());
        run.say(Role::User, question);
        let text = run.finish(|call| answer(&project, call));
        assert_eq!(ends_with(&text), signal, "{name}: {text}");
        for piece in holds {
            let piece = piece.replace("'Door' was", "`Door` was");
            assert!(text.contains(&piece), "{name}: no {piece:?} in {text}");
        }
        assert!(!text.contains(lacks), "{name}: {text}");
    }
}

#[test]
fn what_is_not_released_is_told_if_there_is_anything() {
    let log = LOG.replace(
        "## [Unreleased]\n",
        "## [Unreleased]\n\n- Doors can be locked.\n",
    );
    let project = Project(BTreeMap::from([("CHANGELOG.md", &*log.leak())]));
    let mut run = Run::new(tools_of_logs());
    run.say(Role::User, "release notes");
    let text = run.finish(|call| answer(&project, call));
    let open = text.find("Not released so far is what CHANGELOG.md:3-5 says.");
    let newest = text.find("The newest version is 2.0.0");
    assert!(open.is_some() && open < newest, "{text}");
}

#[test]
fn without_a_change_log_others_are_asked() {
    let project = project();
    let mut run = Run::new(tools_of_logs());
    run.say(Role::User, "what changed in 2.0.0?");
    let text = run.finish(|call| project.answer(call));
    assert_eq!(ends_with(&text), "stuck", "{text}");
}

#[test]
fn the_same_is_asked_of_other_versions() {
    let project = Project(BTreeMap::from([("CHANGELOG.md", LOG)]));
    for (questions, begins) in [
        (
            &["what changed in 2.0.0?", "and in 1.9.1?"][..],
            "1.9.1 (2024-02-01) is in CHANGELOG.md:15-17.",
        ),
        (
            &[
                "what changed in 2.0.0?",
                "and in 1.9.1?",
                "what about 1.8.0?",
            ],
            "1.8.0 (2023-01-01) is in",
        ),
        (
            &["what's new?", "and since 1.9.0?"],
            "There are 2 versions behind 1.9.0, the newest first:",
        ),
    ] {
        let mut run = Run::new(tools_of_logs());
        let mut text = String::new();
        for question in questions {
            run.say(Role::User, question);
            text = run.finish(|call| answer(&project, call));
        }
        assert!(text.starts_with(begins), "{questions:?}: {text}");
        assert_eq!(ends_with(&text), "context_sufficient", "{text}");
    }
}

#[test]
fn what_was_there_before_a_heading_of_additions_names_it_is_not_told_to_be_added() {
    let log = "# Changelog\n\n## 1.5.0\n\n### New features\n\n- CrawlerProcess got an option to stop early.\n\n\
               ## 1.0.0\n\n- `CrawlerProcess` starts faster.\n";
    let project = Project(BTreeMap::from([("CHANGELOG.md", log)]));
    let mut run = Run::new(tools_of_logs());
    run.say(Role::User, "when was CrawlerProcess added?");
    let text = run.finish(|call| answer(&project, call));
    assert_eq!(ends_with(&text), "partial_answer", "{text}");
    let says = "I found no entry that says that `CrawlerProcess` was added; the oldest that names it is in 1.0.0";
    assert!(text.contains(says), "{text}");
}
