//! The way to a running server: its socket in the data directory, or HTTP.

use std::time::Duration;

use reqwest::{Client, RequestBuilder, Response, Url};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;

use super::Stop;
use crate::{
    control::{
        Answer, Code, Refused, Seen, Verb, Watching,
        socket::{self, ClientError},
    },
    llm::plain_client,
};

/// How long a server may take to answer.
const ANSWER: Duration = Duration::from_secs(90);
/// Longest line of what is watched, in bytes: an event has its long texts by reference.
const LINE: usize = 16 << 20;

/// The way to a running server.
pub enum Way {
    /// Its socket.
    Socket(socket::Client),
    /// Its HTTP interface.
    Http(Http),
}

/// A server over HTTP.
pub struct Http {
    client: Client,
    base: Url,
    key: Option<SecretString>,
}

/// What is watched, over any way.
pub(super) enum Watched {
    Socket(socket::Watched),
    Http(Lines),
}

impl Way {
    /// To a server by its URL, with a key if it wants one.
    ///
    /// # Errors
    /// When the URL is none, or no connection can be made at all.
    pub fn http(url: &str, key: Option<SecretString>) -> Result<Self, Stop> {
        let base = Url::parse(url).ok().filter(|base| !base.cannot_be_a_base());
        let Some(base) = base else {
            let how = "write it like `http://127.0.0.1:7770`";
            return Err(Stop::usage(format_args!("`{url}` is no URL: {how}")));
        };
        let client = plain_client(&base).map_err(Stop::failed)?;
        Ok(Self::Http(Http { client, base, key }))
    }

    pub(super) async fn carry_out(&mut self, verb: &Verb) -> Result<Answer, Stop> {
        match self {
            Self::Socket(client) => Ok(client.carry_out(verb).await??),
            Self::Http(http) => http.carry_out(verb).await,
        }
    }

    pub(super) async fn watch(self, wanted: Watching) -> Result<Watched, Stop> {
        match self {
            Self::Socket(client) => Ok(Watched::Socket(client.watch(wanted).await??)),
            Self::Http(http) => Ok(Watched::Http(http.watch(&wanted).await?)),
        }
    }
}

impl Watched {
    /// What is seen next; none at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Seen>, Stop> {
        match self {
            Self::Socket(watched) => Ok(watched.next().await?),
            Self::Http(lines) => lines.next().await,
        }
    }
}

impl Http {
    async fn carry_out(&self, verb: &Verb) -> Result<Answer, Stop> {
        let body = serde_json::to_vec(verb).map_err(Stop::no_json)?;
        let request = self.client.post(self.at("api/control"));
        let request = request
            .header("content-type", "application/json")
            .body(body);
        let answered = self.send(request.timeout(ANSWER)).await?;
        let body = answered.bytes().await.map_err(broken)?;
        serde_json::from_slice(&body).map_err(|error| not_understood(&error))
    }

    async fn watch(&self, wanted: &Watching) -> Result<Lines, Stop> {
        let mut url = self.at("api/control/watch");
        let Watching {
            session,
            tenant,
            after,
            types,
            severity,
        } = wanted;
        let severity = severity.and_then(|severity| serde_json::to_value(severity).ok());
        let severity = severity.as_ref().and_then(|word| word.as_str());
        let types = (!types.is_empty()).then(|| types.join(","));
        for (name, value) in [
            ("session", session.as_ref().map(ToString::to_string)),
            ("tenant", tenant.as_ref().map(ToString::to_string)),
            ("after", after.map(|after| after.to_string())),
            ("types", types),
            ("severity", severity.map(str::to_owned)),
        ] {
            if let Some(value) = value {
                url.query_pairs_mut().append_pair(name, &value);
            }
        }
        let response = self.send(self.client.get(url)).await?;
        let read = Vec::new();
        Ok(Lines { response, read })
    }

    fn at(&self, path: &str) -> Url {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path.split('/'));
        }
        url
    }

    /// What the server has nothing against.
    async fn send(&self, request: RequestBuilder) -> Result<Response, Stop> {
        let request = match &self.key {
            Some(key) => request.bearer_auth(key.expose_secret().trim()),
            None => request,
        };
        let response = request.send().await.map_err(broken)?;
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status();
        let body = response.bytes().await.map_err(broken)?;
        let Ok(Problem { error }) = serde_json::from_slice(&body) else {
            return Err(Stop::failed(format_args!("the server answers {status}")));
        };
        // Problems of HTTP alone, such as that of a key, have codes of their own.
        match serde_json::from_value::<Code>(error.code.into()) {
            Ok(code) => Err(Refused {
                code,
                message: error.message,
                retry_after_ms: None,
            }
            .into()),
            Err(_) => Err(Stop::failed(error.message)),
        }
    }
}

/// A problem as the server tells it.
#[derive(Deserialize)]
struct Problem {
    error: Told,
}

#[derive(Deserialize)]
struct Told {
    code: String,
    message: String,
}

/// Server-sent events, of which only the data matter.
pub(super) struct Lines {
    response: Response,
    read: Vec<u8>,
}

impl Lines {
    async fn next(&mut self) -> Result<Option<Seen>, Stop> {
        loop {
            if let Some(end) = self.read.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = self.read.drain(..=end).collect();
                let Some(data) = line.strip_prefix(b"data: ") else {
                    continue;
                };
                let seen = serde_json::from_slice(data);
                return Ok(Some(seen.map_err(|error| not_understood(&error))?));
            }
            if self.read.len() > LINE {
                return Err(Stop::failed("the server sends a line without an end"));
            }
            match self.response.chunk().await.map_err(broken)? {
                Some(more) => self.read.extend_from_slice(&more),
                None => return Ok(None),
            }
        }
    }
}

fn broken(error: reqwest::Error) -> Stop {
    let place = error.url().map(ToString::to_string).unwrap_or_default();
    let why = error.without_url();
    Stop::failed(format_args!("the server at {place} cannot be asked: {why}"))
}

fn not_understood(error: &serde_json::Error) -> Stop {
    Stop::failed(format_args!(
        "the server answers otherwise than this version understands: {error}"
    ))
}

impl From<ClientError> for Stop {
    fn from(error: ClientError) -> Self {
        Self::failed(error)
    }
}
