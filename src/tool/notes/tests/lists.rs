//! What `note_search` lists: to-dos, links, decisions by how they stand, and what holds in the place of what.

use super::*;

fn vault() -> TempDir {
    folder(&[
        (
            "meetings/2025-01-14-plan.md",
            "---\ndate: 2025-01-14\nattendees: [Ann, Ben]\n---\n# Plan\n\n## Decisions\n- We move to Cockroach.\n- By June.\n\n\
             ## To do\n- [ ] Ann: write the record\n- [x] Ben: ask legal\n",
        ),
        (
            "daily/2025-03-01.md",
            "# Saturday\n\nTODO: ask for an offer\n\n```\n- [ ] code\n```\nSee [[gone]] and [[plan b]], ![[a.png]].\n",
        ),
        (
            "projects/light.md",
            "---\ntags: [house]\n---\n# Light\n\n1. [ ] paint it (Ben)\n",
        ),
        (
            "adr/0001-use-postgres.md",
            "---\nstatus: superseded\ndate: 2024-02-10\n---\n# Use Postgres\n\n## Decision\nWe use Postgres as the \
             store.\n\n## Consequences\nSuperseded by [[0005-move]].\n",
        ),
        (
            "adr/0005-move.md",
            "---\nstatus: accepted\ndate: 2025-01-15\ndeciders: [Ann, Ben]\n---\n# Move\n\n## Context\nTokyo.\n\n\
             ## Decision\nCockroach it is.\n",
        ),
        (
            "adr/0006-nomad.md",
            "---\nstatus: proposed\ndate: 2025-01-16\n---\n# Nomad\n\n## Decision\nNomad stays.\n",
        ),
    ])
}

async fn asked(arguments: serde_json::Value) -> String {
    let folder = vault();
    let tool = NoteSearch::new(notes(&folder));
    call(&tool, arguments).await.unwrap()
}

#[tokio::test]
async fn todos_are_listed_by_note_and_told_apart() {
    for (name, arguments, lines, count) in [
        (
            "open ones, the newest notes first",
            json!({"query": "", "tasks": "open"}),
            &[
                "daily/2025-03-01.md:3: TODO: ask for an offer",
                "meetings/2025-01-14-plan.md:12: - [ ] Ann: write the record",
                "projects/light.md:6: 1. [ ] paint it (Ben)",
            ][..],
            "3 open tasks in 3 notes; ",
        ),
        (
            "of somebody",
            json!({"query": "Ben", "tasks": "open"}),
            &["projects/light.md:6: 1. [ ] paint it (Ben)"],
            "1 open task with `Ben` in 1 note; ",
        ),
        (
            "by the tag of the note",
            json!({"query": "house", "tasks": "open"}),
            &["projects/light.md:6: 1. [ ] paint it (Ben)"],
            "1 open task with `house` in 1 note; ",
        ),
        (
            "by the heading",
            json!({"query": "plan", "tasks": "all"}),
            &[
                "meetings/2025-01-14-plan.md:12: - [ ] Ann: write the record",
                "meetings/2025-01-14-plan.md:13: - [x] Ben: ask legal",
            ],
            "2 tasks with `plan` in 1 note; ",
        ),
        (
            "done ones of some days",
            json!({"query": "", "tasks": "done", "from": "2025-01", "to": "2025-01"}),
            &["meetings/2025-01-14-plan.md:13: - [x] Ben: ask legal"],
            "1 done task in 1 note; ",
        ),
        (
            "none",
            json!({"query": "Zed", "tasks": "open"}),
            &[],
            "no open task with `Zed` in the notes, 3 open in all; ",
        ),
        (
            "what has most of the words",
            json!({"query": "Ben paint Zed", "tasks": "open"}),
            &["projects/light.md:6: 1. [ ] paint it (Ben)"],
            "1 open task with some of `Ben paint Zed`, none with all of it in 1 note; ",
        ),
        (
            "not all are shown",
            json!({"query": "", "tasks": "open", "max_results": 1}),
            &["daily/2025-03-01.md:3: TODO: ask for an offer"],
            "3 open tasks in 3 notes, of which 2 are not shown: narrow the query; ",
        ),
    ] {
        let found = asked(arguments).await;
        let places: Vec<&str> = found.lines().filter(|line| line.contains(".md:")).collect();
        assert_eq!(places, lines, "{name}: {found}");
        let last = found.lines().last().unwrap_or_default();
        assert!(last.starts_with(count), "{name}: {found}");
    }
    let block = asked(json!({"query": "Ann", "tasks": "open"})).await;
    let want = "meetings/2025-01-14-plan.md:12: - [ ] Ann: write the record\n  in \"Plan › To do\" · lines 11–13 · meeting · \
                2025-01-14\n\n";
    assert!(block.starts_with(want), "{block}");
}

#[tokio::test]
async fn links_are_listed_with_their_lines() {
    for (name, to, want) in [
        (
            "to a note",
            "0005-move",
            "adr/0001-use-postgres.md:11: Superseded by [[0005-move]].\n  in \"Use Postgres\"\n\n1 note links to \
             `adr/0005-move.md`; ",
        ),
        ("to none", "light", "no note links to `projects/light.md`; "),
        (
            "that lead nowhere, pictures aside",
            "broken",
            "daily/2025-03-01.md:8: See [[gone]] and [[plan b]], ![[a.png]].\n  in \"Saturday\"\n\n1 line with links to \
             notes that are not there; ",
        ),
    ] {
        let found = asked(json!({"query": "", "links_to": to})).await;
        assert!(found.starts_with(want), "{name}: {found}");
    }
    let folder = vault();
    let tool = NoteSearch::new(notes(&folder));
    let unknown = told(&tool, json!({"query": "", "links_to": "nobody"})).await;
    assert!(
        unknown.starts_with("there is no note `nobody`"),
        "{unknown}"
    );
}

#[tokio::test]
async fn decisions_are_found_by_how_they_stand() {
    for (name, arguments, first) in [
        (
            "by their status",
            json!({"query": "", "status": "Proposed", "kind": "decision"}),
            "adr/0006-nomad.md:",
        ),
        (
            "of some days, the decision itself first",
            json!({"query": "", "kind": "decision", "from": "2025-01-15", "to": "2025-01-15"}),
            "adr/0005-move.md:11: ## Decision\n",
        ),
        (
            "what holds before what it took the place of",
            json!({"query": "which store do we use?"}),
            "adr/0005-move.md:11: ## Decision\nadr/0005-move.md:12: Cockroach it is.\n  in \"Move › Decision\" · lines \
             11–12 · decision · accepted · 2025-01-15\n  in place of: adr/0001-use-postgres.md\n",
        ),
        (
            "who asks why is told that",
            json!({"query": "why did we choose Postgres as the store?"}),
            "adr/0001-use-postgres.md:",
        ),
        (
            "who decided",
            json!({"query": "who decided on Cockroach?", "path": "adr"}),
            "adr/0005-move.md:4: deciders: [Ann, Ben]\nadr/0005-move.md:12: Cockroach it is.\n",
        ),
    ] {
        let found = asked(arguments).await;
        assert!(found.starts_with(first), "{name}: {found}");
    }
}

#[tokio::test]
async fn lists_stay_within_the_bytes_that_a_result_may_have() {
    let line = format!("See [[gone]] {}\n", "and so on ".repeat(60));
    let tasks = "- [ ] a task\n".repeat(task::MOST + 1);
    let folder = folder(&[("a.md", &line.repeat(200)), ("b.md", &tasks)]);
    let settings = NotesSettings {
        max_output_bytes: 4_096,
        ..NotesSettings::default()
    };
    let root = ProjectRoot::open(folder.path()).unwrap();
    let most = settings.max_output_bytes;
    let tool = NoteSearch::new(Notes::of_project(root, settings).into());
    let links = call(
        &tool,
        json!({"query": "", "links_to": "broken", "max_results": 50}),
    );
    let links = links.await.unwrap();
    assert!(links.len() <= most, "{}", links.len());
    assert!(links.contains("a.md:2:"), "{links}");
    assert!(links.contains("are not shown"), "{links}");
    let tasks = call(&tool, json!({"query": "", "tasks": "open"}))
        .await
        .unwrap();
    let told = "of a note the first 2000 tasks are looked at";
    assert!(tasks.len() <= most && tasks.contains(told), "{tasks}");
}
