//! Embeds Oracle with a tool from a closure, and prints the answer as the model writes it.
#![expect(clippy::print_stdout, reason = "an example shows its result")]

use std::io::Write as _;

use oracle_agent::prelude::*;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Place {
    city: String,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let weather = tool_fn("weather", "Tells the weather.", async |place: Place| {
        Ok(format!("sunny in {}, 24 °C", place.city))
    });
    // A script, so that no key is needed; otherwise for example `anthropic/claude-sonnet-5-5`.
    let builder = Oracle::builder().model("scripted/examples/embed.json");
    let system = builder.tool(weather).start().await?;

    let mut watch = system.oracle().session("trip")?.ask("How is Rome?").await?;
    while let Some(piece) = watch.text().try_next().await? {
        print!("{piece}");
        std::io::stdout().flush()?;
    }
    println!("\n({})", watch.answer().await?.outcome.name());
    system.shut_down(std::time::Duration::from_secs(1)).await;
    Ok(())
}
