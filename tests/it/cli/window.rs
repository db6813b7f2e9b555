//! A conversation that outgrows the context window configured for its provider.

use oracle_agent::mock::{Mock, Settings};

use super::{Workspace, ask::json_lines};

/// Context window of the small model in tokens. The prompt takes about a third of it, a reply a
/// quarter.
const WINDOW: u64 = 14_000;
const REPLY: usize = 13_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn configured_context_window_triggers_a_summary() {
    for dialect in ["openai", "anthropic"] {
        let mock = Mock::start(Settings {
            turns: 1.try_into().unwrap(),
            size: REPLY,
            ..Settings::default()
        });
        let mock = mock.await.unwrap();
        let base = match dialect {
            "openai" => "/v1",
            _ => "",
        };
        let config = format!(
            "[[providers]]\nname = \"local\"\ndialect = \"{dialect}\"\nbase_url = \"{}{base}\"\n\
             [[providers.models]]\nname = \"small\"\ncontext_window = {WINDOW}\n\
             [model]\nchain = \"local/small\"\n",
            mock.url()
        );
        let place = Workspace::new(&[("o.toml", &config)]);
        let mut kinds = Vec::new();
        for question in ["where is it?", "and who calls that?", "why?", "since when?"] {
            let line = "ask --events --session s --config o.toml";
            let output = place.oracle(line).arg(question).output();
            let err = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(0), "{dialect}: {err}");
            let lines = json_lines(&output.stdout);
            kinds.extend(lines.iter().filter_map(|line| {
                let kind = line["type"].as_str()?;
                kind.starts_with("budget.context.").then(|| kind.to_owned())
            }));
        }
        let wanted = ["warning", "compacting", "compacted"];
        for kind in wanted.map(|kind| format!("budget.context.{kind}")) {
            assert!(kinds.contains(&kind), "{dialect}: {kinds:?}");
        }
        let asked = mock.requests();
        let summaries = asked.iter().filter(|asked| {
            let body = asked.json().to_string();
            body.contains("Summarise this part of a conversation") && body.contains("[user]")
        });
        assert_eq!(summaries.count(), 1, "{dialect}");
        assert_eq!(mock.stats().breaches, [].into(), "{dialect}");
    }
}
