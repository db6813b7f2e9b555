//! What a session says that another process needs, and what keeps others off.

use std::sync::Arc;

use super::*;
use crate::{
    actor::{Frame, Notice, Oracle, System},
    journal::{Memory, shared::Shared},
    llm::Scripted,
    model::{Attempt, QueryId, SessionName, Submission, Turn},
    testkit::{Obstacle, Obstructed, Panics, Shaky, TestOracle, let_pass},
};

const DONE: &str = "Fine.\n<signal type=\"context_sufficient\"><sources_found>1</sources_found>\
                    <confidence>0.9</confidence></signal>";

fn key() -> SessionKey {
    SessionKey::local(SessionName::new("s").unwrap())
}

async fn left(oracle: &Oracle, anyway: bool) -> Result<(), AskError> {
    oracle.router.leave(&key(), anyway).await.map(drop)
}

async fn presence(oracle: &Oracle) -> Presence {
    oracle.router.presence(&key()).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_set_aside_leaves_for_another_process() {
    let journal = Obstructed::new(Arc::new(Memory::new()));
    let oracle = TestOracle::new(Scripted::new().reply(DONE))
        .journal(Arc::new(journal.clone()))
        .settings(|settings| settings.idle_timeout = Duration::ZERO);
    let system = System::start(oracle.args().unwrap()).await.unwrap();
    let oracle = system.oracle();
    let session = oracle.session(key());
    session.answer(Submission::new("hi")).await.unwrap();
    let_pass(Duration::from_secs(60)).await;
    let sid = journal.find(key()).await.unwrap().unwrap().sid;
    journal.set(Obstacle::Unreadable(sid));
    // It finds out when it comes to life, and says so from then on.
    let came_to_life = session.answer(Submission::new("and?")).await;
    assert!(came_to_life.is_err());
    let refused = session.answer(Submission::new("and?")).await.unwrap_err();
    assert!(
        matches!(refused, AskError::Refused(Refusal::Quarantined { .. })),
        "{refused}"
    );
    assert_eq!(presence(oracle).await, Presence::Here);
    left(oracle, false).await.unwrap();
    assert_eq!(presence(oracle).await, Presence::Away);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_waits_to_be_brought_back_leaves_if_it_has_to() {
    let panics = Panics::times(1);
    let oracle = TestOracle::new(Scripted::new().reply(DONE))
        .policy(move |policy| policy.turn = Arc::new(Shaky(panics)))
        .settings(|settings| settings.restart_pause = Duration::from_secs(3_600));
    let system = System::start(oracle.args().unwrap()).await.unwrap();
    let oracle = system.oracle();
    oracle
        .session(key())
        .submit(Submission::new("hi"))
        .await
        .unwrap();
    let_pass(Duration::from_secs(60)).await;
    let busy = left(oracle, false).await.unwrap_err();
    assert!(matches!(busy, AskError::Refused(Refusal::Busy)), "{busy}");
    assert_eq!(presence(oracle).await, Presence::Here);
    left(oracle, true).await.unwrap();
    assert_eq!(presence(oracle).await, Presence::Away);
}

#[tokio::test(start_paused = true)]
async fn a_query_that_was_accepted_in_between_is_not_cut_off_by_who_wants_the_session_at_rest() {
    let journal: Arc<dyn Journal> = Arc::new(Memory::new());
    let script = Scripted::new().reply(DONE).slowly(Duration::from_secs(5));
    let oracle = TestOracle::new(script).journal(Arc::clone(&journal));
    let system = System::start(oracle.args().unwrap()).await.unwrap();
    let session = system.oracle().session(key());
    let watch = session.ask(Submission::new("hi")).await.unwrap();
    let taken = take(&*journal, &key(), Take::AtRest).await;
    assert!(matches!(taken, Err(TakeError::Busy { process: None })));
    let answer = watch.answer().await.unwrap();
    assert!(answer.text.starts_with("Fine."), "{answer:?}");
}

#[tokio::test]
async fn what_is_kept_is_not_taken_by_who_asks_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let open = || Shared::open(folder.path(), |why| panic!("{why}"));
    let (mine, other) = (open().await.unwrap(), open().await.unwrap());
    let kept = keep_off(&mine);
    take(&mine, &key(), Take::AtRest).await.unwrap();
    for letter in [Letter::Ask, Letter::Leave { anyway: true }] {
        let until = Instant::now() + LEAVE;
        let came = post(&other, &key(), &letter, until).await.unwrap();
        assert!(matches!(came, Came::Answer(Answer::Later)));
        let process = Some(std::process::id());
        let elsewhere = Err(journal::Error::Elsewhere { process });
        assert_eq!(other.claim(key()).await, elsewhere);
    }
    drop(kept);
    take(&other, &key(), Take::AtRest).await.unwrap();
}

#[tokio::test]
async fn who_is_about_to_let_go_of_a_session_is_not_to_be_ended() {
    let folder = tempfile::tempdir().unwrap();
    let open = || Shared::open(folder.path(), |why| panic!("{why}"));
    let (mine, other) = (open().await.unwrap(), open().await.unwrap());
    let _kept = keep_off(&mine);
    take(&mine, &key(), Take::AtRest).await.unwrap();
    let until = Instant::now() + Duration::from_secs(1);
    let refused = take_until(&other, &key(), Take::AtRest, until).await;
    let said = format!(
        "process {} is about to let it go, or deletes it: try again",
        std::process::id()
    );
    assert_eq!(refused.unwrap_err().to_string(), said);
}

#[tokio::test]
async fn nothing_comes_to_life_here_for_a_session_that_is_at_work_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let open = || Shared::open(folder.path(), |why| panic!("{why}"));
    let system = |journal: Shared| {
        let oracle = TestOracle::new(Scripted::new().stall("Let me see"));
        System::start(oracle.journal(Arc::new(journal)).args().unwrap())
    };
    let there = system(open().await.unwrap()).await.unwrap();
    let here = system(open().await.unwrap()).await.unwrap();
    let works = there.oracle().session(key());
    works.submit(Submission::new("hi")).await.unwrap();
    let router = &here.oracle().router;
    let mut heard = here.oracle().session(key()).subscribe();
    router.recover(&key()).await.unwrap();
    // Whoever comes to life here for nothing ends what others hear.
    let frame = Frame {
        session: key(),
        query: QueryId(1),
        turn: Turn(1),
        attempt: Attempt(1),
        offset: 0,
        text: "still heard".into(),
    };
    router.bus.show(frame.clone());
    assert_eq!(heard.next().await, Some(Notice::Frame(Arc::new(frame))));
}
