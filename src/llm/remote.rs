//! A provider reached over HTTP: makes one attempt of a call, in its dialect.
//!
//! The gateway owns retries, queues and the reply's deadline; here are only the deadlines of
//! connection and headers. Dropping a stream closes its connection.

use std::{fmt, sync::Arc, time::Duration};

use reqwest::{
    Method, Url,
    header::{ACCEPT, HeaderMap, HeaderValue},
};

use super::{
    Backend, DeltaStream, Dialect, ModelSettings, ProviderSettings, Request, Streaming, anthropic,
    decode::{Context, Decode},
    http::{Connection, SetupError},
    json_cache::JsonCache,
    openai::{self, Host},
};
use crate::model::{Capabilities, Fault};

mod exchange;
mod listing;

pub(crate) use listing::nearest;

/// A [`Backend`] for a provider's HTTP API. Clones share connections.
#[derive(Clone)]
pub struct Remote(Arc<Shared>);

struct Shared {
    name: Arc<str>,
    dialect: Dialect,
    streaming: Streaming,
    models: Vec<ModelSettings>,
    patience: Duration,
    host: Host,
    capabilities: Capabilities,
    connection: Connection,
    endpoint: Url,
    headers: HeaderMap,
    json_cache: JsonCache,
}

impl Remote {
    /// Prepares the connection; sends nothing.
    ///
    /// # Errors
    /// When no call can be made with these settings.
    pub fn new(settings: ProviderSettings) -> Result<Self, SetupError> {
        let connection = Connection::new(&settings)?;
        let endpoint = match settings.dialect {
            Dialect::OpenAi => connection.url(&["chat", "completions"]),
            Dialect::Anthropic => connection.versioned_url("v1", "messages"),
        };
        let accept = HeaderValue::from_static(match settings.streaming {
            Streaming::Always => "text/event-stream",
            Streaming::Never => "application/json",
        });
        let mut headers = connection.headers.clone();
        headers.insert(ACCEPT, accept);
        let mut capabilities = settings.dialect.capabilities(&settings.base_url);
        if let Some(schemas) = settings.structured_output {
            capabilities.schemas = schemas;
        }
        Ok(Self(Arc::new(Shared {
            name: settings.name.into(),
            dialect: settings.dialect,
            streaming: settings.streaming,
            models: settings.models,
            patience: settings.connect.saturating_add(settings.first_byte),
            host: Host::of(connection.host()),
            capabilities,
            connection,
            endpoint,
            headers,
            json_cache: JsonCache::default(),
        })))
    }

    /// Lists the provider's models in its own order. Unreported facts are `None`.
    ///
    /// # Errors
    /// The faults of any call. The listing has a deadline.
    pub async fn list_models(&self) -> Result<Vec<ModelSettings>, Fault> {
        let listed = listing::list(&self.0).await;
        listed.map_err(|fault| self.0.connection.secrets.clean_fault(fault))
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote")
            .field("name", &self.0.name)
            .field("dialect", &self.0.dialect)
            .field("place", &self.0.connection.place)
            .finish_non_exhaustive()
    }
}

impl Backend for Remote {
    fn provider(&self) -> &str {
        &self.0.name
    }

    fn capabilities(&self, model: &str) -> Capabilities {
        self.0.capabilities_of(model)
    }

    fn call(&self, request: Request) -> DeltaStream {
        exchange::stream(Arc::clone(&self.0), request)
    }
}

impl Shared {
    fn streams(&self) -> bool {
        matches!(self.streaming, Streaming::Always)
    }

    fn ask(&self, request: &Request) -> serde_json::Result<reqwest::Request> {
        let mut asked = reqwest::Request::new(Method::POST, self.endpoint.clone());
        *asked.headers_mut() = self.headers.clone();
        *asked.body_mut() = Some(self.body(request)?.into());
        Ok(asked)
    }

    fn model(&self, name: &str) -> Option<&ModelSettings> {
        self.models.iter().find(|model| model.name == name)
    }

    fn capabilities_of(&self, model: &str) -> Capabilities {
        let Some(known) = self.model(model) else {
            return self.capabilities;
        };
        let all = self.capabilities;
        Capabilities {
            images: known.images.unwrap_or(all.images),
            sampling: known.sampling.unwrap_or(all.sampling),
            forced_tools: known.forced_tools.unwrap_or(all.forced_tools),
            ..all
        }
    }

    fn body(&self, request: &Request) -> serde_json::Result<Vec<u8>> {
        let known = self.model(&request.model);
        let max_output = known.and_then(|model| model.max_output);
        let takes = self.capabilities_of(&request.model);
        let (name, cache, stream) = (&*self.name, &self.json_cache, self.streams());
        match self.dialect {
            Dialect::OpenAi => {
                openai::body(request, cache, name, self.host, takes, max_output, stream)
            }
            Dialect::Anthropic => {
                // The default for unknown models must fit into a small window.
                let window = known.and_then(|model| model.context_window);
                let small = window
                    .filter(|window| *window < 64_000)
                    .map(|window| window / 2);
                let max_output = max_output.or(small);
                anthropic::body(request, cache, name, takes.images, max_output, stream)
            }
        }
    }

    fn decoder(&self, request: Request) -> Box<dyn Decode> {
        self.dialect.decoder(Context {
            provider: Arc::clone(&self.name),
            request,
            // The random half, because ids with this prefix have to stay short.
            seed: || uuid::Uuid::now_v7().simple().to_string().split_off(16),
        })
    }
}

#[cfg(test)]
mod tests;
