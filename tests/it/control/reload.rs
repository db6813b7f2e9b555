//! The verb `reload`: what takes effect at once, what waits for a restart, and what changes
//! nothing.

use std::sync::{Arc, Mutex};

use oracle_agent::{
    access::LimitReached,
    actor::{Oracle, System},
    config::{Config, ConfigFile, Sources, load},
    control::{Answer, Code, Controller, Verb},
    kernel::Command,
    llm::Scripted,
    model::{Principal, ProfileName, SessionKey, SessionName, Submission, TenantId, access::Role},
    testkit::{TestTool, advance_time},
};
use serde_json::json;

use super::done;

type Text = Arc<Mutex<String>>;

fn read(text: &str) -> Result<Config, Vec<String>> {
    let sources = Sources {
        file: Some(ConfigFile {
            path: "oracle.toml".into(),
            text: text.to_owned(),
        }),
        ..Sources::default()
    };
    let loaded = load(&sources).map(|loaded| loaded.config);
    loaded.map_err(|problems| problems.iter().map(ToString::to_string).collect())
}

async fn start(model: &Scripted, first: &str) -> (System, Text) {
    let text: Text = Arc::new(Mutex::new(first.to_owned()));
    let file = Arc::clone(&text);
    let system = Oracle::builder()
        .config(read(first).unwrap())
        .backend(model.clone())
        .tool(TestTool::new("look"))
        .reads(move || read(&file.lock().unwrap()))
        .start()
        .await
        .unwrap();
    (system, text)
}

const FIRST: &str = "[model]\nchain = 'scripted/one'\n";

fn admin() -> Principal {
    Principal {
        name: "anna".into(),
        tenant: TenantId::local(),
        role: Role::Admin,
        ..Principal::local()
    }
}

async fn reload(system: &System) -> Result<(Vec<String>, Vec<String>), (Code, String)> {
    let controller = Controller::new(system.oracle().clone());
    match controller.carry_out(&admin(), Verb::Reload {}).await {
        Ok(Answer::Reloaded(changes)) => Ok((changes.changed, changes.waiting)),
        Ok(other) => panic!("{other:?}"),
        Err(refused) => Err((refused.code, refused.message)),
    }
}

fn key(name: &str) -> SessionKey {
    SessionKey::local(SessionName::new(name).unwrap())
}

fn names(oracle: &Oracle) -> Vec<String> {
    let profiles = oracle.profiles();
    profiles.all().map(|(name, _)| name.to_string()).collect()
}

async fn recorded(system: &System) -> Vec<serde_json::Value> {
    // The record follows the answer asynchronously.
    advance_time(std::time::Duration::from_secs(1)).await;
    let log = system.oracle().session_by_key(key("system"));
    let events = log.events(oracle_agent::model::Seq(0)).await.unwrap();
    let reloads = events
        .into_iter()
        .filter(|event| event.kind == "control.reloaded");
    reloads.map(|event| event.payload).collect()
}

#[tokio::test(start_paused = true)]
async fn reload_applies_to_the_next_query_and_reports_what_needs_a_restart() {
    let replies = (0..9).map(|_| done("Fine."));
    let model = replies.fold(Scripted::new(), Scripted::reply);
    let (system, text) = start(&model, FIRST).await;
    let oracle = system.oracle();
    let session = oracle.session_by_key(key("s"));
    session.answer(Submission::new("one")).await.unwrap();
    *text.lock().unwrap() = format!(
        "[oracle]\nmax_turns = 7\n[prompt]\ninstructions = 'Be brief.'\n[server]\nmax_body = 2048\n\
         {}[[profiles]]\nname = 'bare'\ntools = []\n[tenants]\nmax_queued = 3\n",
        FIRST.replace("one", "two")
    );
    let want = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>();
    let changed = want(&[
        "model.chain",
        "oracle.max_turns",
        "profiles",
        "prompt.instructions",
        "tenants.max_queued",
    ]);
    let waiting = want(&["server.max_body"]);
    assert_eq!(
        reload(&system).await,
        Ok((changed.clone(), waiting.clone()))
    );
    // It applies to a live session, a new one, and one of the new profile.
    session.answer(Submission::new("two")).await.unwrap();
    let bare = oracle
        .session_by_key(key("bare"))
        .profile(ProfileName::new("bare").unwrap());
    bare.answer(Submission::new("three")).await.unwrap();
    let [before, after, bare] = &model.requests()[..] else {
        panic!("three calls")
    };
    assert_eq!((&*before.model, &*after.model), ("one", "two"));
    assert!(before.system.contains("at most 30 turns") && !before.system.contains("Be brief."));
    assert!(after.system.contains("at most 7 turns") && after.system.contains("Be brief."));
    assert_eq!((after.tools.len(), bare.tools.len()), (1, 0));
    assert_eq!(names(oracle), ["oracle", "bare"]);
    let account = oracle.tenants().account(&TenantId::local());
    let _messages = [(); 3].map(|()| account.message().unwrap());
    let full = account.message().unwrap_err();
    assert_eq!(full, LimitReached::Queued { limit: 3 });

    // A second reload reports the pending changes again.
    assert_eq!(reload(&system).await, Ok((Vec::new(), waiting.clone())));
    let record =
        |changed: &[String]| json!({ "changed": changed, "waiting": waiting, "by": "anna" });
    assert_eq!(recorded(&system).await, [record(&changed), record(&[])]);
}

#[tokio::test(start_paused = true)]
async fn invalid_configuration_changes_nothing_and_reports_every_problem() {
    let model = Scripted::new().reply(done("Fine.")).reply(done("Fine."));
    let (system, text) = start(&model, FIRST).await;
    let oracle = system.oracle();
    for (file, says) in [
        (
            "[oracle]\nmax_turns = 0\n[prompt]\ndri = 'x'\n",
            "oracle.toml:2: `oracle.max_turns` is `0`, expected a whole number from 1 to 100\n\
             oracle.toml:4: unknown key `prompt.dri` (set to `'x'`); did you mean `prompt.dir`?",
        ),
        (
            "[oracle]\nmax_turns = 3\n[prompt]\ncontext = '/nowhere/x'\n[[profiles]]\nname = 'p'\ntools = ['fly']\n",
            "cannot read the project's context `/nowhere/x`: No such file or directory (os error \
             2); check `prompt.context`\nprofile `p` names the unknown tool `fly`: use `look` in \
             its `tools` and `attachable`",
        ),
        (
            "[server.models]\n'gpt-4o' = 'nobody'\n",
            "`server.models` names the unknown profile `nobody` for `gpt-4o`: use `oracle` or the \
             name of one of the `[[profiles]]`",
        ),
        (
            "[server.models]\n'p' = 'oracle'\n[[profiles]]\nname = 'p'\n",
            "`server.models` has the name of the profile `p`: choose another name",
        ),
        (
            "[model]\nchain = ['own/one']\n[tenants.keys.ci]\ncost_usd_per_day = 1.5\n\
             [[providers]]\nname = 'own'\ndialect = 'openai'\nbase_url = 'http://h'\n",
            "the price of the model `own/one` is unknown, so that no budget of money can count it: \
             set its `input` and `output` in `[[providers.models]]` or in the file of \
             `budget.prices` (0 if it is free), or remove the budget",
        ),
    ] {
        *text.lock().unwrap() = file.to_owned();
        let (code, message) = reload(&system).await.unwrap_err();
        assert_eq!(code, Code::Configuration);
        let (head, problems) = message.split_once('\n').unwrap();
        assert_eq!(
            head,
            "the configuration is invalid, and nothing was changed:"
        );
        assert_eq!(problems, says);
    }
    let session = oracle.session_by_key(key("s"));
    session.answer(Submission::new("one")).await.unwrap();
    assert!(model.requests()[0].system.contains("at most 30 turns"));
    assert_eq!(names(oracle), ["oracle"]);
    assert_eq!(recorded(&system).await, [json!(null); 0]);
}

#[tokio::test(start_paused = true)]
async fn reload_to_an_unconnected_provider_waits_for_a_restart() {
    let model = Scripted::new().reply(done("Fine."));
    let (system, text) = start(&model, FIRST).await;
    *text.lock().unwrap() = "[oracle]\nmax_turns = 7\n[model]\nchain = 'ollama/x'\n\
                             [[profiles]]\nname = 'p'\nchain = ['offline', 'ollama/y']\n"
        .to_owned();
    let want = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>();
    let told = (
        want(&["oracle.max_turns"]),
        want(&["model.chain", "profiles"]),
    );
    assert_eq!(reload(&system).await, Ok(told));
    let session = system.oracle().session_by_key(key("s"));
    session.answer(Submission::new("one")).await.unwrap();
    assert_eq!(&*model.requests()[0].model, "one");
    assert!(model.requests()[0].system.contains("at most 7 turns"));
}

#[tokio::test(start_paused = true)]
async fn attached_tool_survives_a_reload() {
    let model = Scripted::new().reply(done("Fine."));
    let first = format!("{FIRST}[tools]\nattachable = ['look']\n");
    let (system, text) = start(&model, &first).await;
    let session = system
        .oracle()
        .create(key("s"), ProfileName::oracle(), None);
    let session = session.await.unwrap();
    let attach = Command::AttachTool {
        tool: "look".into(),
    };
    session.command(attach).await.unwrap();
    *text.lock().unwrap() = format!("{first}[oracle]\nmax_turns = 7\n");
    reload(&system).await.unwrap();
    session.answer(Submission::new("one")).await.unwrap();
    let request = &model.requests()[0];
    let tools: Vec<&str> = request.tools.iter().map(|tool| &*tool.name).collect();
    assert_eq!(tools, ["look"]);
    let accepted = session.events(oracle_agent::model::Seq(0)).await.unwrap();
    let accepted = accepted.iter().find(|event| event.kind == "query.accepted");
    assert_eq!(accepted.unwrap().payload["limits"]["max_turns"], 7);
}

#[tokio::test(start_paused = true)]
async fn user_key_may_not_reload() {
    let (system, _) = start(&Scripted::new(), FIRST).await;
    let controller = Controller::new(system.oracle().clone());
    let user = Principal {
        role: Role::User,
        ..admin()
    };
    let refused = controller.carry_out(&user, Verb::Reload {}).await;
    assert_eq!(refused.unwrap_err().code, Code::AdminOnly);
    assert_eq!(recorded(&system).await, [json!(null); 0]);
}
