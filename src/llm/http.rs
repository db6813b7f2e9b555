//! The connection to a provider: one HTTP client with its pool, URLs and headers.
//!
//! The client gets rustls with ring explicitly, so that a host's own crypto provider is neither
//! needed nor affected. `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` apply, except to
//! servers on this machine. Redirects are not followed, because they could carry keys to another
//! server.
//!
//! **Invariant:** key and header values are marked as sensitive, and displayed URLs have neither
//! user, password nor query.

use std::{iter, net::IpAddr, time::Duration};

use percent_encoding::percent_decode_str;
use reqwest::{
    Client, ClientBuilder, Url,
    header::{ACCEPT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
    redirect,
};
use rustls::ClientConfig;
use secrecy::{ExposeSecret, SecretString};

use super::{ProviderSettings, secrets::Secrets};

mod trust;

pub use trust::trusted;

const USER_AGENT: &str = concat!("oracle-agent/", env!("CARGO_PKG_VERSION"));
/// Most servers close connections that are idle for longer.
const POOL_IDLE: Duration = Duration::from_secs(60);
/// Deadline of another node for a connection or the answer to a ping, and time between the pings.
const NODE: Duration = Duration::from_secs(2);
/// What a node sends ahead on a stream, in bytes; a connection has at most as many streams as
/// `http::connection` allows.
const STREAM_WINDOW: u32 = 256 << 10;
const KEEP_ALIVE: Duration = Duration::from_secs(30);
/// Shorter words of a secret are schemes such as `Bearer`.
const WORD: usize = 8;

/// Provider settings that allow no calls. Messages never repeat secrets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SetupError {
    /// The base URL is invalid.
    #[error(
        "invalid base URL of provider `{provider}` ({why}): write it like \
         `https://api.openai.com/v1`"
    )]
    BaseUrl {
        /// Provider name.
        provider: String,
        /// Reason.
        why: String,
    },
    /// A header cannot be sent.
    #[error(
        "invalid header `{header}` of provider `{provider}`: use letters, digits and `-` in \
         names, visible ASCII in values"
    )]
    Header {
        /// Provider name.
        provider: String,
        /// Header name.
        header: String,
    },
    /// The key cannot be sent.
    #[error(
        "invalid key of provider `{provider}`: it contains characters that are not allowed in \
         headers; check it for line breaks and quotes"
    )]
    Key {
        /// Provider name.
        provider: String,
    },
    /// `ca_file` holds no usable certificates.
    #[error(
        "the `ca_file` of provider `{provider}` has no usable certificates ({why}): it must \
         contain CA certificates in PEM, each between BEGIN CERTIFICATE and END CERTIFICATE"
    )]
    Authorities {
        /// Provider name.
        provider: String,
        /// Reason.
        why: String,
    },
    /// The HTTP client cannot be built.
    #[error("cannot set up connections to provider `{provider}`: {why}")]
    Client {
        /// Provider name.
        provider: String,
        /// Reason.
        why: String,
    },
}

pub(super) struct Connection {
    pub(super) client: Client,
    pub(super) headers: HeaderMap,
    pub(super) secrets: Secrets,
    /// The URL in a form that may be shown.
    pub(super) place: String,
    base: Url,
}

impl Connection {
    pub(super) fn new(settings: &ProviderSettings) -> Result<Self, SetupError> {
        let provider = &settings.name;
        let bad = |why: String| SetupError::BaseUrl {
            provider: provider.clone(),
            why,
        };
        let base = Url::parse(settings.base_url.trim()).map_err(|error| bad(error.to_string()))?;
        if !matches!(base.scheme(), "http" | "https") || base.host_str().is_none() {
            return Err(bad("it must begin with `https://` or `http://`".to_owned()));
        }
        Ok(Self {
            client: client(settings, &base)?,
            headers: headers(settings)?,
            secrets: secrets(settings, &base),
            place: redact(&base),
            base,
        })
    }

    pub(super) fn host(&self) -> &str {
        self.base.host_str().unwrap_or_default()
    }

    /// The base URL with `segments` appended. The query stays, because some servers need one.
    pub(super) fn url(&self, segments: &[&str]) -> Url {
        let mut url = self.base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(segments);
        }
        url
    }

    /// Like [`Self::url`] with the API version, which many write into the base URL already.
    pub(super) fn versioned_url(&self, version: &str, segment: &str) -> Url {
        let mut path = self.base.path().rsplit('/');
        match path.find(|part| !part.is_empty()) == Some(version) {
            true => self.url(&[segment]),
            false => self.url(&[version, segment]),
        }
    }
}

fn client(settings: &ProviderSettings, base: &Url) -> Result<Client, SetupError> {
    let builder = Client::builder()
        .connect_timeout(settings.connect)
        .pool_idle_timeout(POOL_IDLE)
        .http2_keep_alive_interval(KEEP_ALIVE)
        .http2_adaptive_window(true);
    let client = secured(builder, trust::tls(settings)?, base).build();
    client.map_err(|error| SetupError::Client {
        provider: settings.name.clone(),
        why: error.without_url().to_string(),
    })
}

/// A client with the same trust and proxies for a server that is no provider.
pub fn plain_client(builder: ClientBuilder, base: &Url) -> Result<Client, String> {
    let client = secured(builder.connect_timeout(KEEP_ALIVE), trust::plain()?, base).build();
    client.map_err(|error| error.without_url().to_string())
}

/// A client with the same trust for other nodes of a cluster: over HTTP/2, whose pings notice a node
/// that has stopped in the middle of a response.
pub fn node_client() -> Result<Client, String> {
    let builder = Client::builder()
        .tls_backend_preconfigured(trust::plain()?)
        .user_agent(USER_AGENT)
        .no_gzip()
        .no_deflate()
        .no_proxy()
        .redirect(redirect::Policy::none())
        .connect_timeout(NODE)
        .http2_prior_knowledge()
        // A stream that is not read must not stop the others of its connection.
        .http2_initial_stream_window_size(STREAM_WINDOW)
        .http2_initial_connection_window_size(128 * STREAM_WINDOW)
        .http2_keep_alive_interval(NODE)
        .http2_keep_alive_timeout(NODE)
        .http2_keep_alive_while_idle(true);
    builder.build().map_err(|error| error.to_string())
}

/// A builder of clients with the same trust, for servers that the operator has not named.
pub fn client_builder() -> Result<ClientBuilder, String> {
    let builder = Client::builder().tls_backend_preconfigured(trust::plain()?);
    Ok(builder.user_agent(USER_AGENT))
}

fn secured(builder: ClientBuilder, tls: ClientConfig, base: &Url) -> ClientBuilder {
    let builder = builder
        .tls_backend_preconfigured(tls)
        .user_agent(USER_AGENT)
        .referer(false)
        .redirect(redirect::Policy::none())
        .tcp_keepalive(KEEP_ALIVE);
    match is_here(base) {
        true => builder.no_proxy(),
        false => builder,
    }
}

/// Whether the server is on this machine, where no proxy can reach it.
fn is_here(base: &Url) -> bool {
    let host = base.host_str().unwrap_or_default();
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

fn headers(settings: &ProviderSettings) -> Result<HeaderMap, SetupError> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    let protocol = settings.dialect.protocol();
    for (name, value) in protocol.headers {
        headers.insert(*name, HeaderValue::from_static(value));
    }
    if let Some(key) = &settings.key {
        let (name, before) = protocol.key;
        let value = format!("{before}{}", key.expose_secret().trim());
        let value = sensitive(&value).ok_or_else(|| SetupError::Key {
            provider: settings.name.clone(),
        })?;
        headers.insert(name, value);
    }
    for (name, value) in &settings.headers {
        let bad = || SetupError::Header {
            provider: settings.name.clone(),
            header: name.clone(),
        };
        let value = sensitive(value.expose_secret()).ok_or_else(bad)?;
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad())?;
        headers.insert(name, value);
    }
    Ok(headers)
}

fn sensitive(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// All secrets: the key, header values, and the URL's password and query values. The user is often
/// a token, unless it is short.
fn secrets(settings: &ProviderSettings, base: &Url) -> Secrets {
    let headers = settings.headers.iter().map(|(_, value)| value);
    let held = settings.key.iter().chain(headers);
    let held = held.flat_map(|value| wholly_and_in_words(value.expose_secret()));
    let user = Some(base.username()).filter(|user| user.len() >= WORD);
    let written = user.into_iter().chain(base.password());
    let written = written.flat_map(|text| {
        let meant = percent_decode_str(text).decode_utf8_lossy();
        [SecretString::from(text), SecretString::from(&*meant)]
    });
    let queried = base
        .query_pairs()
        .map(|(_, value)| SecretString::from(&*value));
    let pairs = base.query().unwrap_or_default().split('&');
    let as_written = pairs.filter_map(|pair| Some(SecretString::from(pair.split_once('=')?.1)));
    Secrets::new(held.chain(written).chain(queried).chain(as_written))
}

/// A value and its words: servers repeat `x` of `Bearer x`.
fn wholly_and_in_words(value: &str) -> impl Iterator<Item = SecretString> {
    let parts = value.split(|c: char| c.is_whitespace() || ";,=\"".contains(c));
    let words = parts.filter(|part| part.len() >= WORD);
    iter::once(value).chain(words).map(SecretString::from)
}

/// A URL in a form that may be shown; anything else is hidden.
pub(super) fn redact_text(base_url: &str) -> String {
    Url::parse(base_url.trim()).map_or_else(|_| "(no address)".to_owned(), |base| redact(&base))
}

fn redact(base: &Url) -> String {
    let mut shown = base.clone();
    // Both fail only for URLs without host.
    let _ = shown.set_username("");
    let _ = shown.set_password(None);
    shown.set_query(None);
    shown.set_fragment(None);
    shown.to_string().trim_end_matches('/').to_owned()
}

#[cfg(test)]
mod tests;
