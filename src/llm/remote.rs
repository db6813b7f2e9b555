//! A provider reached over HTTP: makes one attempt of a call, in its dialect.
//!
//! The gateway owns retries, queues and the reply's deadline; here are only the deadlines of
//! connection and headers, and the second try of a call that the server takes in another form
//! ([`Forms`](super::forms::Forms)). Dropping a stream closes its connection.

use std::{fmt, sync::Arc, time::Duration};

use reqwest::{
    Method, Url,
    header::{ACCEPT, HeaderMap, HeaderValue},
};

use super::{
    Backend, DeltaStream, Dialect, ModelSettings, ProviderSettings, Request, Streaming,
    decode::{Decode, Draft},
    dialect::{Outgoing, Protocol},
    forms::{Forms, Learned},
    http::{Connection, SetupError},
    json_cache::JsonCache,
    openai::Host,
    provider::is_local,
};
use crate::model::{Capabilities, Fault};

mod exchange;
mod listing;

pub use listing::nearest;

/// A [`Backend`] for a provider's HTTP API. Clones share connections.
#[derive(Clone)]
pub struct Remote(Arc<Shared>);

struct Shared {
    name: Arc<str>,
    streams: bool,
    models: Vec<ModelSettings>,
    patience: Duration,
    local: bool,
    host: Host,
    capabilities: Capabilities,
    connection: Connection,
    main: Route,
    other: Option<Route>,
    headers: HeaderMap,
    learned: Learned,
}

/// A dialect at its URL.
struct Route {
    dialect: Dialect,
    endpoint: Url,
    json_cache: JsonCache,
}

impl Route {
    fn new(dialect: Dialect, connection: &Connection) -> Self {
        Self {
            dialect,
            endpoint: (dialect.protocol().endpoint)(connection),
            json_cache: JsonCache::default(),
        }
    }

    fn protocol(&self) -> &'static Protocol {
        self.dialect.protocol()
    }
}

impl Remote {
    /// Prepares the connection; sends nothing.
    ///
    /// # Errors
    /// When no call can be made with these settings.
    pub fn new(settings: ProviderSettings) -> Result<Self, SetupError> {
        let connection = Connection::new(&settings)?;
        let main = Route::new(settings.dialect, &connection);
        let other = main.protocol().other;
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
            local: is_local(&settings.name, &settings.base_url),
            name: settings.name.into(),
            streams: settings.streaming == Streaming::Always,
            models: settings.models,
            patience: settings.connect.saturating_add(settings.first_byte),
            host: Host::of(connection.host()),
            capabilities,
            other: other.map(|dialect| Route::new(dialect, &connection)),
            main,
            connection,
            headers,
            learned: Learned::default(),
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

    /// Whether the server has said of this model that it takes no tools; calls then have none.
    pub fn refuses_tools(&self, model: &str) -> bool {
        self.0.learned.of(model).no_tools
    }

    /// The dialect in which the server takes the model's calls, if a refusal has shown that it is
    /// not the configured one.
    pub fn other_dialect(&self, model: &str) -> Option<Dialect> {
        let route = self.0.route(self.0.learned.of(model));
        (route.dialect != self.0.main.dialect).then_some(route.dialect)
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote")
            .field("name", &self.0.name)
            .field("dialect", &self.0.main.dialect)
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

    fn is_local(&self) -> bool {
        self.0.local
    }

    fn call(&self, request: Request) -> DeltaStream {
        exchange::stream(Arc::clone(&self.0), request)
    }
}

impl Shared {
    /// The route of calls in this form.
    fn route(&self, forms: Forms) -> &Route {
        let other = self.other.as_ref().filter(|_| forms.other_route);
        other.unwrap_or(&self.main)
    }

    fn ask(&self, request: &Request, forms: Forms) -> serde_json::Result<reqwest::Request> {
        let route = self.route(forms);
        let mut asked = reqwest::Request::new(Method::POST, route.endpoint.clone());
        *asked.headers_mut() = self.headers.clone();
        *asked.body_mut() = Some(self.body(request, forms)?.into());
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

    fn body(&self, request: &Request, forms: Forms) -> serde_json::Result<Vec<u8>> {
        let route = self.route(forms);
        let known = self.model(&request.model);
        (route.protocol().body)(&Outgoing {
            request: &forms.of(request),
            provider: &self.name,
            host: self.host,
            takes: self.capabilities_of(&request.model),
            max_output: known.and_then(|model| model.max_output),
            window: known.and_then(|model| model.context_window),
            stream: self.streams,
            forms,
            cache: &route.json_cache,
        })
    }

    fn decoder(&self, request: Request, forms: Forms) -> Box<dyn Decode> {
        // The random half, because ids with this prefix have to stay short.
        let seed = uuid::Uuid::now_v7().simple().to_string().split_off(16);
        let draft = Draft::new(Arc::clone(&self.name), request, seed);
        (self.route(forms).protocol().decoder)(draft)
    }
}

#[cfg(test)]
mod tests;
