//! The way to a running server: its socket in the data directory, or HTTP.

use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream::BoxStream};
use reqwest::{Client, RequestBuilder, Response, Url};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use tokio::time::timeout;

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
/// How long a server that is watched may say nothing: it gives a sign of life every 15 seconds.
const SILENCE: Duration = Duration::from_secs(60);
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
        let begun = timeout(ANSWER, self.send(self.client.get(url.clone()))).await;
        let response = begun.unwrap_or_else(|_| Err(silent(&url, ANSWER)))?;
        let pieces = response.bytes_stream().map(|piece| piece.map_err(broken));
        Ok(Lines::of(url, pieces))
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
    /// From where.
    url: Url,
    pieces: BoxStream<'static, Result<Bytes, Stop>>,
    read: Vec<u8>,
}

impl Lines {
    fn of(url: Url, pieces: impl Stream<Item = Result<Bytes, Stop>> + Send + 'static) -> Self {
        Self {
            url,
            pieces: pieces.boxed(),
            read: Vec::new(),
        }
    }

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
            // Also where the machine of the server went away without a word.
            match timeout(SILENCE, self.pieces.next()).await {
                Ok(Some(more)) => self.read.extend_from_slice(&more?),
                Ok(None) => return Ok(None),
                Err(_) => return Err(silent(&self.url, SILENCE)),
            }
        }
    }
}

fn broken(error: reqwest::Error) -> Stop {
    let place = error.url().map(ToString::to_string).unwrap_or_default();
    let why = error.without_url();
    Stop::failed(format_args!("the server at {place} cannot be asked: {why}"))
}

fn silent(url: &Url, since: Duration) -> Stop {
    Stop::failed(format_args!(
        "the server at {url} has said nothing for {since:?}: it is gone, or cannot be reached any more"
    ))
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

#[cfg(test)]
mod tests {
    use futures_util::stream;
    use tokio::time::interval;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_server_that_falls_silent_is_not_waited_for_any_longer() {
        let lost = serde_json::to_string(&Seen::Lost {}).unwrap();
        let signs = [
            "event: lost\n",
            "data: LOST\n\n",
            ": keep-alive\n\n",
            ": keep-alive\n\n",
        ];
        // The rhythm of a server that has nothing to say, and of a slow line.
        let clock = interval(SILENCE - Duration::from_secs(1));
        let signs = signs
            .map(|sign| Bytes::from(sign.replace("LOST", &lost)))
            .into_iter();
        let pieces = stream::unfold((clock, signs), |(mut clock, mut signs)| async {
            clock.tick().await;
            let piece = signs.next()?;
            Some((Ok(piece), (clock, signs)))
        });
        let url = Url::parse("http://127.0.0.1:7770/api/control/watch").unwrap();
        let mut lines = Lines::of(url, pieces.chain(stream::pending()));
        assert_eq!(lines.next().await.unwrap(), Some(Seen::Lost {}));
        let stopped = timeout(10 * SILENCE, lines.next()).await;
        let told = stopped.unwrap().unwrap_err().to_string();
        assert!(told.contains("has said nothing for 60s"), "{told}");
    }
}
