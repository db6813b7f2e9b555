//! A model behind an address, as Oracle calls it, in OpenAI's dialect.

use std::time::Duration;

use oracle_agent::llm::{Dialect, ProviderSettings, Remote, Streaming};

/// The one at this address, up to and with its `/v1`.
pub(crate) fn remote(
    url: &str,
    streaming: Streaming,
) -> Result<Remote, Box<dyn std::error::Error + Send + Sync>> {
    Ok(Remote::new(ProviderSettings {
        name: "server".into(),
        dialect: Dialect::OpenAi,
        base_url: url.into(),
        key: None,
        headers: Vec::new(),
        authorities: None,
        streaming,
        models: Vec::new(),
        connect: Duration::from_secs(5),
        first_byte: Duration::from_secs(5),
    })?)
}
