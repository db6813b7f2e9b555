//! What the offline model answers over a project on a disk, with the tools that a session has (spec 11, 12):
//! conversations, each a row with what its last answer has to say.

use std::time::Duration;

use oracle_agent::{
    actor::Oracle,
    model::{SessionName, Submission},
};
use tempfile::TempDir;

use crate::files::project;

mod commits;
mod names;
mod notes;
mod of_project;
mod shown;
mod spelt;

/// The last answer of each conversation, and how it ended.
async fn answers(folder: &TempDir, conversations: &[&[&str]]) -> Vec<(String, &'static str)> {
    let system = Oracle::builder()
        .project(folder.path())
        .start()
        .await
        .unwrap();
    let mut answers = Vec::new();
    for (number, questions) in conversations.iter().enumerate() {
        let name = SessionName::new(&format!("s{number}")).unwrap();
        let session = system.oracle().session(name);
        let mut last = (String::new(), "");
        for question in *questions {
            let run = session.ask(Submission::new(*question)).await.unwrap();
            let answer = run.answer().await.unwrap();
            last = (answer.text, answer.outcome.name());
        }
        answers.push(last);
    }
    system.shut_down(Duration::from_secs(1)).await;
    answers
}

/// A conversation, how its last query ends, and what its last answer says.
type Row<'a> = (&'a [&'a str], &'a str, &'a [&'a str]);

async fn says(files: &[(&str, &str)], rows: &[Row<'_>]) {
    let folder = project(files);
    let conversations: Vec<&[&str]> = rows.iter().map(|row| row.0).collect();
    let answers = answers(&folder, &conversations).await;
    for ((questions, outcome, parts), (answer, ended)) in rows.iter().zip(answers) {
        assert_eq!(ended, *outcome, "{questions:?}: {answer}");
        for part in *parts {
            assert!(
                answer.contains(part),
                "{questions:?}: no {part:?} in {answer}"
            );
        }
    }
}
