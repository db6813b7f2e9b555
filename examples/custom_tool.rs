//! A custom tool: the model calls it, Oracle runs it, and its result goes back to the model.
//!
//! `cargo run --example custom_tool`
#![expect(clippy::print_stdout, reason = "an example shows its result")]

use std::time::Duration;

use oracle_agent::{
    actor::Oracle,
    llm::Scripted,
    model::{Submission, ToolApproval, ToolEffect, ToolNeed, ToolRepeat, ToolSpec},
    tool::{FnTool, schema_of},
};
use serde_json::json;

/// What the model has to send. The schema that it gets is made from this.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Text {
    /// The text to count.
    text: String,
}

/// A tool that counts words. Invalid arguments are reported back to the model.
fn word_count() -> FnTool {
    let spec = ToolSpec {
        name: "word_count".into(),
        description: "Counts the words of a text.".into(),
        schema: schema_of::<Text>(),
        serves: ToolNeed::General,
        effect: ToolEffect::ReadOnly,
        repeat: ToolRepeat::Safe,
        approval: ToolApproval::NotNeeded,
    };
    FnTool::new(spec, async |given: Text, _| {
        let count = given.text.split_whitespace().count();
        Ok(count.to_string().into())
    })
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A script replaces the model, so that the example needs no key.
    let model = Scripted::new()
        .calls("Counting.", [("word_count", json!({ "text": "to be or not to be" }))])
        .reply("It has six words.\n\n<signal type=\"context_sufficient\"><sources_found>1</sources_found><confidence>0.95</confidence></signal>");
    let builder = Oracle::builder()
        .backend(model)
        .model("scripted/scripted")
        .tool(word_count());
    let system = builder.start().await?;
    let session = system.oracle().session("words")?;
    let watch = session
        .ask(Submission::new("How many words has the line?"))
        .await?;
    println!("{}", watch.answer().await?.text);
    system.shut_down(Duration::from_secs(1)).await;
    Ok(())
}
