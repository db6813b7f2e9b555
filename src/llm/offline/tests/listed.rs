//! Questions whose answer is a list of what notes have, and answers from notes that no repository has to confirm.

use super::*;

const TASKS: &str = "\
daily/2025-03-01.md:7: TODO: ask for an offer
  in \"1 March 2025\" · lines 5–7 · 2025-03-01

meetings/a.md:12: - [ ] Ben: rotate the keys
  in \"Weekly › To do\" · lines 11–13 · meeting · 2025-02-03

2 open tasks in 2 notes; 9 sections in 3 notes searched";

const LINKS: &str = "\
daily/2025-03-05.md:3: See also [[beacon]].
  in \"5 March 2025\"

1 note links to `projects/beacon.md`; 9 sections in 3 notes searched";

const MEETINGS: &str = "\
meetings/b.md:3: - Ann started.
  in \"Weekly\" · lines 1–3 · meeting · 2025-02-10

meetings/a.md:3: - Budget.
  in \"Old\" · lines 1–3 · meeting · 2025-02-03

all that fits is shown; 9 sections in 3 notes searched";

const MARKED: &str = "\
src/a.rs:3: // TODO: evict

notes.md:7: TODO: ask

…4 more matches in 2 files; narrow the query; 9 files searched";

/// The tools of a folder of notes, with what they take.
fn tools_of_notes() -> Vec<ToolSpec> {
    let text = json!({"type": "string"});
    let tasks = json!({"enum": ["open", "done", "all"]});
    let mut all = interests::all_tools();
    for tool in &mut all {
        if tool.name == "note_search" {
            tool.schema = json!({"properties": {"query": text, "tasks": tasks, "links_to": text, "tag": text,
                "status": text, "kind": text, "from": text, "to": text}});
        }
    }
    all
}

fn asked(question: &str, notes: &str, files: &str) -> (String, Run) {
    let mut run = Run::new(tools_of_notes());
    run.say(Role::User, question);
    let text = run.finish(|call| match call.name.as_str() {
        "note_search" => (ToolStatus::Ok, notes.to_owned()),
        "note_read" => (
            ToolStatus::Ok,
            listing("meetings/b.md", "# Weekly\n\n- Ann started.\n"),
        ),
        "code_search" => (ToolStatus::Ok, files.to_owned()),
        "history_search" => (
            ToolStatus::Failed,
            "the project is no git repository, so there is none: go on".to_owned(),
        ),
        _ => (ToolStatus::Failed, "there is no such file".to_owned()),
    });
    (text, run)
}

#[test]
fn lists_are_asked_for_and_told() {
    const NONE: &str = "all matches shown; 9 files searched";
    for (name, question, notes, files, call, signal, holds) in [
        (
            "open ones",
            "what are my open tasks?",
            TASKS,
            NONE,
            r#"note_search {"query":"","tasks":"open"}"#,
            "context_sufficient",
            &[
                "There are 2 open to-dos in 2 notes:\n\n1 March 2025 (2025-03-01)\n- daily/2025-03-01.md:7: TODO: ask for an offer",
                "Weekly › To do (2025-02-03)\n- meetings/a.md:12: Ben: rotate the keys",
            ][..],
        ),
        (
            "of somebody",
            "Welche offenen Aufgaben hat Ben?",
            TASKS,
            NONE,
            r#"note_search {"query":"Ben","tasks":"open"}"#,
            "context_sufficient",
            &["meetings/a.md:12"],
        ),
        (
            "none of somebody",
            "what does Zed have to do?",
            "no open task with `Zed` in the notes, 9 open in all; 9 sections in 3 notes searched",
            NONE,
            r#"note_search {"query":"Zed","tasks":"open"}"#,
            "context_sufficient",
            &["There is no open to-do with “Zed” in the notes; there are 9 open ones in all."],
        ),
        (
            "not all of them",
            "which tasks are done?",
            "a.md:1: - [x] this\n  in \"A\"\n\n60 done tasks in 1 note, of which 59 are not shown: narrow the query; 1 section",
            NONE,
            r#"note_search {"query":"","tasks":"done"}"#,
            "partial_answer",
            &[
                "- a.md:1: this (done)",
                "<missing>59 are not shown</missing>",
            ],
        ),
        (
            "lines of code that are marked",
            "open TODOs",
            "no open task in the notes; 3 sections in 1 note searched",
            MARKED,
            r#"note_search {"query":"","tasks":"open"}"#,
            "partial_answer",
            &[
                "There is no open to-do in the notes.",
                "There is 1 line with TODO or FIXME in the files. 4 more were found and are not shown.\n- src/a.rs:3: // TODO: evict",
            ],
        ),
        (
            "links",
            "what links to beacon?",
            LINKS,
            NONE,
            r#"note_search {"links_to":"beacon","query":""}"#,
            "context_sufficient",
            &[
                "1 note links to projects/beacon.md:\n\n5 March 2025\n- daily/2025-03-05.md:3: See also [[beacon]].",
            ],
        ),
        (
            "decisions that stand so",
            "which decisions are still proposed?",
            "adr/4.md:12: Nomad stays.\n  in \"No Kubernetes › Decision\" · lines 11–12 · decision · proposed · 2024-09-02\n\nall",
            NONE,
            r#"note_search {"kind":"decision","query":"","status":"proposed"}"#,
            "context_sufficient",
            &[
                "There is 1 decision that is proposed:\n\n- adr/4.md:11: No Kubernetes (decision, proposed, 2024-09-02)",
            ],
        ),
        (
            "a tag",
            "which notes are tagged incident?",
            "a.md:5: Outage\n  in \"Outage\" · lines 5–9\n\na.md:9: More\n  in \"Outage › More\" · lines 9–9\n\nall",
            NONE,
            r#"note_search {"query":"","tag":"incident"}"#,
            "context_sufficient",
            &["There is 1 note with the tag “incident”:\n\n- a.md:5: Outage"],
        ),
        (
            "the newest meeting",
            "what was discussed in the last meeting?",
            MEETINGS,
            NONE,
            r#"note_search {"kind":"meeting","query":""}"#,
            "context_sufficient",
            &[
                "The newest meeting is of 2025-02-10: “Weekly”.\n\nmeetings/b.md:1-3\n```markdown\n# Weekly\n\n- Ann started.",
            ],
        ),
    ] {
        let (text, run) = asked(question, notes, files);
        assert_eq!(run.calls.first().map(String::as_str), Some(call), "{name}");
        for piece in holds {
            assert!(text.contains(piece), "{name}: no {piece:?} in {text}");
        }
        assert_eq!(ends_with(&text), signal, "{name}: {text}");
    }
}

#[test]
fn what_only_sounds_like_a_list_is_looked_up() {
    let none = "no open task in the notes; 1 section in 1 note searched";
    let (text, run) = asked(
        "what are the pending tasks in the scheduler?",
        none,
        "src/s.rs:3: pending tasks scheduler",
    );
    assert!(run.calls[1].starts_with("code_search"), "{:#?}", run.calls);
    assert!(text.contains("src/s.rs:3"), "{text}");
}

#[test]
fn decisions_are_those_of_the_days_that_were_asked_for() {
    const DECIDED: &str = "\
meetings/b.md:3: - Ann started.
  in \"Weekly › Decisions\" · lines 1–3 · decision · 2025-01-14

all that fits is shown; 9 sections in 3 notes searched";
    for (question, call) in [
        (
            "what was decided on 14 January 2025?",
            r#"note_search {"from":"2025-01-14","kind":"decision","query":"","to":"2025-01-14"}"#,
        ),
        (
            "what did we decide in January 2025?",
            r#"note_search {"from":"2025-01-01","kind":"decision","query":"","to":"2025-01-31"}"#,
        ),
        (
            "what did we decide about Tokyo in January 2025?",
            r#"note_search {"from":"2025-01-01","query":"Tokyo","to":"2025-01-31"}"#,
        ),
    ] {
        let (text, run) = asked(question, DECIDED, "No matches.");
        assert_eq!(
            run.calls.first().map(String::as_str),
            Some(call),
            "{question}"
        );
        // All of the section, and not its best line alone.
        let whole = "meetings/b.md:1-3\n```markdown\n# Weekly\n\n- Ann started.\n```";
        assert!(text.contains(whole), "{question}: {text}");
    }
}

#[test]
fn who_decided_and_what_holds_no_longer_is_told() {
    const STORE: &str = "\
adr/1.md:2: We use Postgres.
  in \"Use Postgres › Decision\" · lines 1–2 · decision · superseded · 2024-02-10
  words found: Postgres

adr/5.md:4: deciders: [Ann, Ben]
adr/5.md:9: We move from Postgres.
  in \"Move › Decision\" · lines 8–9 · decision · accepted · 2025-01-15
  words found: Postgres
  in place of: adr/1.md

all that fits is shown; 9 sections in 3 notes searched";
    let (text, _) = asked("who decided about Postgres?", STORE, "No matches.");
    for piece in [
        "The closest match is in adr/5.md:9 (decision, accepted, 2025-01-15). The people are named in adr/5.md:4: “deciders: [Ann, Ben]”.",
        " adr/1.md is superseded.",
    ] {
        assert!(text.contains(piece), "no {piece:?} in {text}");
    }
}

#[test]
fn where_there_is_no_repository_a_change_log_is_enough() {
    const LOG: &str = "\
CHANGELOG.md (lines 3–4 of 9): 2.0.0
CHANGELOG.md:4: - XML export removed

all 1 place shown; 1 file searched; the best place has 100 % of what was asked";
    for (name, found, signal, aside) in [
        ("a change log", LOG.to_owned(), "context_sufficient", false),
        (
            "code",
            LOG.replace("CHANGELOG.md", "src/a.rs"),
            "partial_answer",
            true,
        ),
    ] {
        let (text, _) = asked("when was the XML export removed?", "nothing", &found);
        assert!(text.starts_with("The closest match"), "{name}: {text}");
        assert_eq!(ends_with(&text), signal, "{name}: {text}");
        assert_eq!(text.contains("no git repository"), aside, "{name}: {text}");
    }
}

#[test]
fn a_folder_of_notes_is_told_by_its_index_and_its_folders() {
    const MAP: &str = "\
9 files, 4 with an outline
./ CHANGELOG.md, index.md
adr/ 1.md, 2.md, 3.md
daily/ 7 files

CHANGELOG.md:1: Changelog

1 of 9 symbols";
    for question in ["what is this?", "give me an overview"] {
        let mut run = Run::new(tools_of_notes());
        run.say(Role::User, question);
        let text = run.finish(|call| match call.name.as_str() {
            "repo_map" => (ToolStatus::Ok, MAP.to_owned()),
            "file_read" => (
                ToolStatus::Ok,
                listing(
                    "index.md",
                    "---\ntitle: Home\n---\n# Home\n\nNotes of the team.\n",
                ),
            ),
            _ => (ToolStatus::Failed, "no".to_owned()),
        });
        for piece in [
            "What it says of itself is in index.md:4-6.",
            "Its folders of notes:\n- at the top: 2 notes\n- adr/: 3 notes\n- daily/: 7 files",
        ] {
            assert!(text.contains(piece), "{question}: no {piece:?} in {text}");
        }
        assert_eq!(ends_with(&text), "context_sufficient", "{question}: {text}");
    }
}
