//! Prompt composition through its public interface: the rows of the reference design, and the
//! built-in files as a model gets them.

use std::{fs, sync::Arc};

use oracle_agent::{
    model::{QueryType, tool::ToolNeed},
    prompt::{ComposeInput, ComposedPrompt, Composer, Prompts, TOKEN_BUDGET, ToolLine, Variables},
};
use tempfile::TempDir;

mod files;
mod t011;
mod t040;

/// A folder of prompt files.
fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

fn composer(files: &[(&str, &str)], token_budget: u64) -> Composer {
    let folder = folder(files);
    Composer::new(Prompts::with_overlay(folder.path()).unwrap(), token_budget)
}

fn builtin() -> Composer {
    Composer::new(Prompts::builtin().unwrap(), TOKEN_BUDGET)
}

fn session() -> Variables {
    let tool = |name: &str, summary: &str, serves| ToolLine {
        name: name.to_owned(),
        summary: summary.to_owned(),
        serves,
    };
    Variables {
        sub_agents: Vec::new(),
        project_name: "Test".to_owned(),
        project_context: "A web service in Rust.".to_owned(),
        max_turns: Some(30),
        tools: vec![
            tool(
                "code_search",
                "Searches the code by regular expression.",
                ToolNeed::Code,
            ),
            tool("note_search", "Searches the notes.", ToolNeed::Vault),
            tool("web_search", "Searches the web.", ToolNeed::Web),
            tool(
                "thread_search",
                "Searches earlier sessions.",
                ToolNeed::General,
            ),
        ],
    }
}

fn compose(composer: &Composer, variables: &Variables, query_type: QueryType) -> ComposedPrompt {
    composer
        .compose(&ComposeInput::new(
            Arc::new(variables.prepare()),
            query_type,
        ))
        .unwrap()
}
