//! `note_search` and `note_read` in a real system: the model's calls and the results it reads.

use std::{fs, sync::Arc, time::Duration};

use oracle_agent::{
    kernel::Command,
    llm::Scripted,
    model::{
        CallId, Outcome, Part, SessionKey, SessionName, Submission, ToolStatus,
        record::ApprovalVerdict,
    },
    testkit::TestOracle,
    tool::{Notes, NotesSettings, ProjectRoot, note_read, note_search, note_write},
};
use serde_json::json;
use tempfile::TempDir;

use super::done;

const ADR: &str = "# 3. Use SQLite\n\nDate: 2025-06-01\n\n## Status\n\nAccepted\n\n## Context\n\nRecords have to last.\n\n\
                   ## Decision\n\nThe journal is kept in SQLite.\n";

fn project() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let adr = folder.path().join("doc/adr");
    fs::create_dir_all(&adr).unwrap();
    fs::write(adr.join("0003-use-sqlite.md"), ADR).unwrap();
    fs::write(
        folder.path().join("guide.md"),
        "# Guide\n\nThe journal, see [why](doc/adr/0003-use-sqlite.md).\n",
    )
    .unwrap();
    folder
}

async fn results(script: &Scripted) -> Vec<(ToolStatus, String)> {
    let folder = project();
    let root = ProjectRoot::open(folder.path()).unwrap();
    let notes = Arc::new(Notes::of_project(root, NotesSettings::default()));
    let oracle = TestOracle::new(script.clone())
        .tool(note_search(Arc::clone(&notes)))
        .tool(note_read(notes));
    let oracle = oracle.start().await.unwrap();
    let key = SessionKey::local(SessionName::new("s").unwrap());
    let session = oracle.oracle().session_by_key(key);
    let answer = session
        .answer(Submission::new("Why is the journal kept in SQLite?"))
        .await
        .unwrap();
    assert_eq!(answer.outcome, Outcome::Answered);
    oracle.shut_down(Duration::from_secs(1)).await;
    let requests = script.requests();
    let parts = requests
        .last()
        .unwrap()
        .messages
        .iter()
        .flat_map(|message| &message.parts);
    parts
        .filter_map(|part| match part {
            Part::ToolResult(result) => Some((result.status, result.content.clone())),
            Part::Text { .. } | Part::ToolCall(_) | Part::Opaque { .. } => None,
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_model_finds_a_decision_and_reads_it() {
    let script = Scripted::new()
        .calls(
            "Looking.",
            [(
                "note_search",
                json!({"query": "Why is the journal kept in SQLite?"}),
            )],
        )
        .calls(
            "Reading.",
            [(
                "note_read",
                json!({"note": "0003-use-sqlite", "section": "Decision"}),
            )],
        )
        .reply(done("Because of it."));
    let [found, read] = &results(&script).await[..] else {
        panic!("two results");
    };
    assert_eq!((found.0, read.0), (ToolStatus::Ok, ToolStatus::Ok));
    let first = "doc/adr/0003-use-sqlite.md:15: The journal is kept in SQLite.\n  \
                 in \"3. Use SQLite › Decision\", lines 13–15\n";
    assert!(found.1.starts_with(first), "{}", found.1);
    let want = "doc/adr/0003-use-sqlite.md (lines 13–15 of 15)\n13: ## Decision\n14: \n\
                15: The journal is kept in SQLite.\n";
    assert!(read.1.starts_with(want), "{}", read.1);
}

#[tokio::test(start_paused = true)]
async fn model_receives_errors_of_its_note_calls() {
    let script = Scripted::new()
        .calls(
            "Looking.",
            [
                ("note_search", json!({"query": ""})),
                ("note_read", json!({"note": "doc/adr/0003-use-sqlit.md"})),
            ],
        )
        .reply(done("Not found."));
    let results = results(&script).await;
    let told = [
        "`query` has only common words or letters: name what to search for",
        "no note `doc/adr/0003-use-sqlit.md`: perhaps one of `doc/adr/0003-use-sqlite.md`",
    ];
    for ((status, content), says) in results.iter().zip(told) {
        assert_eq!(*status, ToolStatus::Failed, "{content}");
        assert!(content.starts_with(says), "{content}");
    }
    assert_eq!(results.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn note_is_written_only_after_approval() {
    for (verdict, written) in [
        (ApprovalVerdict::Approved, true),
        (ApprovalVerdict::Denied, false),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let notes = Notes::open_to_write(folder.path(), None, NotesSettings::default()).unwrap();
        let note = folder.path().join("ideas/cache.md");
        let script = Scripted::new()
            .calls(
                "May I?",
                [(
                    "note_write",
                    json!({"note": "ideas/cache", "text": "# Cache"}),
                )],
            )
            .reply(done("That is it."));
        let oracle = TestOracle::new(script.clone()).tool(note_write(notes.into()).unwrap());
        let oracle = oracle.start().await.unwrap();
        let session = oracle.session("s").unwrap();
        session
            .submit(Submission::new("Note that down, please"))
            .await
            .unwrap();
        let waiting = session.wait_for("approval.requested").await.unwrap();
        assert!(!note.exists(), "nobody has agreed yet");
        let call = CallId::new(waiting.payload["call"].as_str().unwrap());
        session
            .command(Command::AnswerApproval { call, verdict })
            .await
            .unwrap();
        session.wait_for("query.finished").await.unwrap();
        let text = fs::read_to_string(&note).ok();
        assert_eq!(
            text.as_deref(),
            written.then_some("# Cache\n"),
            "{verdict:?}"
        );
        oracle.shut_down(Duration::from_secs(1)).await;
    }
}
