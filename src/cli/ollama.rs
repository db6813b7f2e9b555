//! The model of an Ollama server on this machine, used if no model was chosen.
//!
//! A configured model is a choice, and so is a provider's key in the environment. Without either,
//! the server at Ollama's address lists its models; if none runs, that costs a refused connection.
//! The offline model stays second in the chain: many models cannot call tools, and an answer
//! without key or settings is promised.

use std::{net::TcpStream, time::Duration};

use reqwest::Url;
use tokio::time::timeout;

use super::{runtime::on_runtime, terminal::Terminal};
use crate::{
    app::{self, Providers},
    llm::{OFFLINE, Remote},
};
use oracle_config::{ChainReason, Config, Environment, Loaded, ModelChain, ModelChoice};

const NAME: &str = "ollama";
const CONNECT: Duration = Duration::from_millis(300);
const LISTING: Duration = Duration::from_secs(2);

/// Puts Ollama's model first in the chain and reports that, if no other model was chosen.
pub(super) fn with_local_model(
    mut loaded: Loaded,
    environment: &Environment,
    terminal: &mut Terminal,
) -> Loaded {
    if loaded.choice.because != ChainReason::NoKey {
        return loaded;
    }
    let Some(model) = find_model(&loaded.config, environment) else {
        return loaded;
    };
    // A name that is invalid in a chain cannot be used.
    let Ok(chain) = ModelChain::new([model.as_str(), OFFLINE]) else {
        return loaded;
    };
    let because = ChainReason::Running(NAME.to_owned());
    terminal.say(format_args!(
        "using {model}, {because}; to use only the built-in model, pass `--model offline`"
    ));
    loaded.config.model.chain = Some(chain.clone());
    loaded.choice = ModelChoice { chain, because };
    loaded
}

/// The chat model that changed last, as `ollama/NAME`. Errors are ignored: the user did not ask for
/// Ollama.
fn find_model(config: &Config, environment: &Environment) -> Option<String> {
    let facts = app::prices(config, environment).ok()?;
    let providers = Providers::new(config, environment, &facts);
    let provider = providers.find(NAME).ok()??;
    if !is_reachable(&provider.base_url) {
        return None;
    }
    let remote = Remote::new(providers.settings(&provider, &[]).ok()?).ok()?;
    let listed = on_runtime(async { Ok(timeout(LISTING, remote.list_models()).await) });
    let models = listed.ok()?.ok()?.ok()?.into_iter();
    // Ollama lists the model that changed last first.
    let mut names = models.map(|model| model.name);
    let model = names.find(|model| may_chat(model))?;
    Some(format!("{NAME}/{model}"))
}

fn is_reachable(base_url: &str) -> bool {
    let url = Url::parse(base_url).ok();
    let addresses = url.and_then(|url| url.socket_addrs(|| None).ok());
    let mut addresses = addresses.iter().flatten();
    addresses.any(|address| TcpStream::connect_timeout(address, CONNECT).is_ok())
}

/// Embedding models are in the same list, and differ only by name.
fn may_chat(model: &str) -> bool {
    let name = model.to_ascii_lowercase();
    let vectors = ["embed", "bge-", "minilm", "rerank", "paraphrase"];
    !vectors.iter().any(|word| name.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn embedding_models_are_skipped() {
        for (model, asked) in [
            ("qwen3:8b", true),
            ("llama3.2:latest", true),
            ("nomic-embed-text:latest", false),
            ("mxbai-embed-large", false),
            ("all-minilm:33m", false),
            ("BGE-m3", false),
        ] {
            assert_eq!(may_chat(model), asked, "{model}");
        }
    }
}
