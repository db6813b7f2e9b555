//! A remote model, called as Oracle does.

use std::time::Duration;

use oracle_agent::llm::{Dialect, ProviderSettings, Remote, Streaming};

pub(crate) fn remote(
    url: &str,
    dialect: Dialect,
    streaming: Streaming,
) -> Result<Remote, Box<dyn std::error::Error + Send + Sync>> {
    Ok(Remote::new(ProviderSettings {
        name: "server".into(),
        dialect,
        base_url: url.into(),
        key: None,
        headers: Vec::new(),
        authorities: None,
        streaming,
        structured_output: None,
        models: Vec::new(),
        connect: Duration::from_secs(5),
        first_byte: Duration::from_secs(5),
    })?)
}
