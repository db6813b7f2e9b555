//! `note_search` and `note_read` in a real system: the model's calls and the results it reads.

use std::{fs, future::pending, sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use oracle_agent::{
    llm::Scripted,
    model::{
        Outcome, Part, SessionKey, SessionName, Submission, ToolSpec, ToolStatus,
        record::ApprovalVerdict,
    },
    testkit::TestOracle,
    tool::{
        Notes, NotesSettings, ProjectRoot, Tool, ToolContext, ToolError, ToolOutput, note_read,
        note_search, note_write,
    },
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::Notify;

use super::{answer_to, done, last, memory};

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
            _ => None,
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
        session.command(answer_to(&waiting, verdict)).await.unwrap();
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

/// A tool that does its work and never answers.
struct Unanswered<T>(T, Arc<Notify>);

impl<T: Tool> Tool for Unanswered<T> {
    fn spec(&self) -> &ToolSpec {
        self.0.spec()
    }

    fn call(
        &self,
        arguments: Value,
        context: ToolContext,
    ) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        let (call, worked) = (self.0.call(arguments, context), Arc::clone(&self.1));
        Box::pin(async move {
            call.await?;
            worked.notify_one();
            pending().await
        })
    }
}

#[tokio::test(start_paused = true)]
async fn note_write_cut_off_by_a_crash_is_not_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let note = folder.path().join("log.md");
    fs::write(&note, "# Log\n\n- one\n").unwrap();
    let add = json!({"note": "log", "mode": "append", "text": "- paid invoice 4711"});
    let script = Scripted::new()
        .calls("May I?", [("note_write", add)])
        .reply(done("That is it."));
    let journal = memory();
    let tool = || {
        let notes = Notes::open_to_write(folder.path(), None, NotesSettings::default());
        note_write(notes.unwrap().into()).unwrap()
    };
    let build = || TestOracle::new(script.clone()).journal(journal.clone());
    let worked = Arc::new(Notify::new());
    let tool_of_first = Unanswered(tool(), Arc::clone(&worked));
    let oracle = build().tool(tool_of_first).start().await.unwrap();
    let session = oracle.session("s").unwrap();
    let submission = Submission::new("Note the invoice, please");
    session.submit(submission).await.unwrap();
    let waiting = session.wait_for("approval.requested").await.unwrap();
    let approval = answer_to(&waiting, ApprovalVerdict::Approved);
    session.command(approval).await.unwrap();
    worked.notified().await;
    oracle.die().await;
    let written = "# Log\n\n- one\n- paid invoice 4711\n";
    assert_eq!(fs::read_to_string(&note).unwrap(), written);
    let continued = format!("{written}- a line of a person\n");
    fs::write(&note, &continued).unwrap();
    let oracle = build().tool(tool()).start().await.unwrap();
    let session = oracle.session("s").unwrap();
    session.wait_for("query.finished").await.unwrap();
    assert_eq!(fs::read_to_string(&note).unwrap(), continued);
    assert_eq!(last(&session, "tool.finished").await["status"], "unknown");
}
