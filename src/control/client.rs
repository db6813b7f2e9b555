//! Client of a running server, over the Unix socket of its data directory or TCP.
//!
//! ```no_run
//! use futures_util::TryStreamExt as _;
//! # mod oracle_agent { pub use oracle_control as control; pub use oracle_core::model; }
//! use oracle_agent::{
//!     control::{Client, SessionUpdate, socket},
//!     model::{Seq, SessionName, Submission},
//! };
//!
//! # async fn ask(folder: &std::path::Path) -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::unix(&folder.join(socket::NAME)).await?;
//! let session = SessionName::new("review")?;
//! let accepted = client.submit(&session, &Submission::new("What is new?")).await?;
//! let mut events = client.follow(&session, accepted.seq.unwrap_or(Seq(0))).await?;
//! while let Some(told) = events.try_next().await? {
//!     match told {
//!         SessionUpdate::Frame(frame) => print!("{}", frame.text),
//!         SessionUpdate::Event(event) if event.kind == "query.finished" => break,
//!         _ => {}
//!     }
//! }
//! # Ok(())
//! # }
//! ```

use std::{fmt, io, path::Path, time::Duration};

use bytes::Bytes;
use futures_util::stream::{self, BoxStream, Stream, StreamExt as _};
use reqwest::{RequestBuilder, Response, Url, header};
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::{net::UnixStream, time::timeout};

use super::{Accepted, Answer, Code, Refused, Verb, Watching, WireUpdate, socket::Address};
use crate::{
    llm::{cause, plain_client, sse},
    model::{Attempt, Event, PartialLimits, QueryId, Seq, SessionName, Submission, Turn},
};

const ANSWER: Duration = Duration::from_secs(90);
/// Read timeout of a stream; a server sends a keep-alive every 15 seconds.
const SILENCE: Duration = Duration::from_secs(60);
/// Maximum length of an event of a stream, in bytes.
const MOST: usize = 16 << 20;

/// Why a request to a server failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The URL is invalid.
    #[error("invalid URL `{url}`: write it like `http://127.0.0.1:7770`")]
    Url {
        /// The URL as given.
        url: String,
    },
    /// The HTTP client cannot be set up.
    #[error("{0}")]
    Setup(String),
    /// The connection failed.
    #[error("cannot reach {place}: {}; check that the server runs", cause(why))]
    Broken {
        /// The server's URL.
        place: String,
        /// The cause.
        why: reqwest::Error,
    },
    /// The server does not respond.
    #[error(
        "the server at {place} has not responded for {since:?}: check that it is running and \
         reachable"
    )]
    Silent {
        /// The server's URL.
        place: String,
        /// Time without a response.
        since: Duration,
    },
    /// The response has an unknown shape.
    #[error(
        "cannot understand the server's response ({0}): use the same version of Oracle on \
             both sides"
    )]
    NotUnderstood(String),
    /// The server refused the request.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// An HTTP error that is no refusal, such as an invalid key.
    #[error("{message}")]
    Http {
        /// The HTTP status.
        status: u16,
        /// The error message.
        message: String,
    },
}

/// A refusal keeps its code; after any other error, the server may have executed the verb.
impl From<ClientError> for Refused {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Refused(refused) => refused,
            error => Self::unavailable(error.to_string()),
        }
    }
}

/// A running server. Requests can be made concurrently.
#[derive(Debug)]
pub struct Client {
    http: reqwest::Client,
    base: Url,
    key: Option<SecretString>,
    /// Keeps the path of a socket valid.
    _socket: Option<Address>,
}

/// How a query ended.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct QueryEnd {
    /// The outcome's name, such as `answered`.
    pub outcome: String,
    /// Its reason, such as the budget that forced the end.
    pub reason: Option<String>,
    /// Completed turns.
    pub turns: u32,
}

/// Text of a reply while the model generates it; not durable.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct TextFrame {
    /// The query.
    pub query: QueryId,
    /// The turn.
    pub turn: Turn,
    /// The attempt; a new one replaces the text of the one before.
    pub attempt: Attempt,
    /// Offset in the visible text, in bytes.
    pub offset: usize,
    /// The text.
    pub text: String,
}

/// An item of a session's stream.
#[derive(Debug, Clone, PartialEq)]
pub enum SessionUpdate {
    /// A durable event.
    Event(Box<Event>),
    /// Streamed text.
    Frame(TextFrame),
    /// Events that cannot be read right now and follow later.
    Gap {
        /// The number of the first missing event.
        from: Seq,
    },
    /// The stream has ended.
    End {
        /// The reason, as a text for people.
        why: String,
    },
}

impl Client {
    /// Connects to the server behind a Unix socket.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] or [`io::ErrorKind::ConnectionRefused`] where no server listens.
    pub async fn unix(socket: &Path) -> io::Result<Self> {
        let address = Address::of(socket)?;
        let reached = timeout(ANSWER, UnixStream::connect(&address.path)).await;
        reached.map_err(|_| io::ErrorKind::TimedOut)??;
        let base = Url::parse("http://localhost/").map_err(io::Error::other)?;
        let builder = reqwest::Client::builder().unix_socket(address.path.as_path());
        Ok(Self {
            http: plain_client(builder, &base).map_err(io::Error::other)?,
            base,
            key: None,
            _socket: Some(address),
        })
    }

    /// Creates a client for the server at a URL, with a key if it requires one.
    ///
    /// # Errors
    /// If the URL is invalid, or TLS cannot be set up.
    pub fn http(url: &str, key: Option<SecretString>) -> Result<Self, ClientError> {
        let base = Url::parse(url).ok().filter(|base| !base.cannot_be_a_base());
        let Some(base) = base else {
            let url = url.to_owned();
            return Err(ClientError::Url { url });
        };
        let http = plain_client(reqwest::Client::builder(), &base);
        Ok(Self {
            http: http.map_err(ClientError::Setup)?,
            base,
            key,
            _socket: None,
        })
    }

    /// Executes a verb; its changes are durable when this returns.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn carry_out(&self, verb: &Verb) -> Result<Answer, ClientError> {
        self.post(&["api", "control"], None, verb, ANSWER).await
    }

    /// Subscribes to records, from now on or after the given number.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn watch(&self, wanted: &Watching) -> Result<Events<WireUpdate>, ClientError> {
        let query = serde_urlencoded::to_string(wanted).map_err(not_understood)?;
        let path = ["api", "control", "watch"];
        self.stream(&path, &query, wire_update).await
    }

    /// Submits a message; it is durable when this returns. An import is not sent.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn submit(
        &self,
        session: &SessionName,
        message: &Submission,
    ) -> Result<Accepted, ClientError> {
        let path = ["api", "sessions", session.as_str(), "messages"];
        let body = json!({
            "text": message.text,
            "busy": message.busy,
            "limits": message.limits.map(PartialLimits::from),
        });
        let key = message.idempotency_key.as_deref();
        let key = key.map(|key| ("idempotency-key", key));
        self.post(&path, key, &body, ANSWER).await
    }

    /// Asks a question in a session and waits for the end of its query, for `patience` at most.
    ///
    /// # Errors
    /// See [`ClientError`]; also if the query failed or was cancelled.
    pub async fn ask(
        &self,
        session: &SessionName,
        question: &str,
        patience: Duration,
    ) -> Result<QueryEnd, ClientError> {
        #[derive(Deserialize)]
        struct Completion {
            oracle: QueryEnd,
        }
        let question = json!({ "role": "user", "content": question });
        let body = json!({ "model": "oracle", "messages": [question] });
        let path = ["v1", "chat", "completions"];
        let session = Some(("x-oracle-session", session.as_str()));
        let answer: Completion = self.post(&path, session, &body, patience).await?;
        Ok(answer.oracle)
    }

    /// Returns the server's metrics, in OpenMetrics' text format.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn metrics(&self) -> Result<String, ClientError> {
        let request = self.http.get(self.url(&["metrics"])).timeout(ANSWER);
        let response = self.send(request).await?;
        response.text().await.map_err(broken)
    }

    /// Follows a session's events after a number, with streamed text.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn follow(
        &self,
        session: &SessionName,
        after: Seq,
    ) -> Result<Events<SessionUpdate>, ClientError> {
        let path = ["api", "sessions", session.as_str(), "events"];
        let query = format!("after={after}&frames=1");
        self.stream(&path, &query, session_update).await
    }

    fn url(&self, path: &[&str]) -> Url {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        url
    }

    async fn post<T: DeserializeOwned>(
        &self,
        path: &[&str],
        header: Option<(&str, &str)>,
        body: &impl Serialize,
        patience: Duration,
    ) -> Result<T, ClientError> {
        let (url, body) = (self.url(path), serde_json::to_vec(body));
        let request = self.http.post(url.clone());
        let mut request = request.body(body.map_err(not_understood)?);
        let kind = ("content-type", "application/json");
        for (name, value) in header.into_iter().chain([kind]) {
            request = request.header(name, value);
        }
        let answer = async { self.send(request).await?.bytes().await.map_err(broken) };
        let answer = timeout(patience, answer).await;
        read(&answer.map_err(|_| silent(url.as_str(), patience))??)
    }

    async fn stream<T: Send + 'static>(
        &self,
        path: &[&str],
        query: &str,
        read: fn(&sse::Event) -> Result<Option<T>, ClientError>,
    ) -> Result<Events<T>, ClientError> {
        let mut url = self.url(path);
        url.set_query(Some(query));
        let place = url.to_string();
        let request = self.http.get(url);
        let request = request.header(header::ACCEPT, "text/event-stream");
        let begun = timeout(ANSWER, self.send(request)).await;
        let response = begun.map_err(|_| silent(&place, ANSWER))??;
        let pieces = response.bytes_stream().map(|piece| piece.map_err(broken));
        Ok(events(place, pieces, read))
    }

    /// Sends a request and turns an error status into an error.
    async fn send(&self, request: RequestBuilder) -> Result<Response, ClientError> {
        let request = match &self.key {
            Some(key) => request.bearer_auth(key.expose_secret().trim()),
            None => request,
        };
        let response = request.send().await.map_err(broken)?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let after = response.headers().get(header::RETRY_AFTER);
        let after: Option<u64> = after.and_then(|after| after.to_str().ok()?.parse().ok());
        let body = response.bytes().await.map_err(broken)?;
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let error = &body["error"];
        let told = error["message"]
            .as_str()
            .filter(|_| error["code"].is_string());
        let message = told.map_or_else(
            || format!("the response has the status {status}: use the URL of an Oracle server"),
            str::to_owned,
        );
        Err(match Code::deserialize(&error["code"]) {
            Ok(code) => ClientError::Refused(Refused {
                code,
                message,
                retry_after_ms: after.map(|seconds| seconds.saturating_mul(1_000)),
                owner: None,
            }),
            Err(_) => ClientError::Http {
                status: status.as_u16(),
                message,
            },
        })
    }
}

/// A stream of server-sent events. It ends with the connection, or after an error.
pub type Events<T> = BoxStream<'static, Result<T, ClientError>>;

#[doc(hidden)]
pub fn events<T: Send + 'static>(
    place: String,
    pieces: impl Stream<Item = Result<Bytes, ClientError>> + Send + 'static,
    read: fn(&sse::Event) -> Result<Option<T>, ClientError>,
) -> Events<T> {
    let reader = EventReader {
        place,
        pieces: pieces.boxed(),
        piece: Bytes::new(),
        parser: Box::new(sse::Parser::new(MOST)),
        read,
    };
    let events = stream::try_unfold(reader, |mut reader| async {
        Ok(reader.next().await?.map(|item| (item, reader)))
    });
    events.boxed()
}

struct EventReader<T> {
    place: String,
    pieces: BoxStream<'static, Result<Bytes, ClientError>>,
    /// The rest of the last piece.
    piece: Bytes,
    parser: Box<sse::Parser>,
    /// Reads an item; `None` for an event to pass over.
    read: fn(&sse::Event) -> Result<Option<T>, ClientError>,
}

impl<T> EventReader<T> {
    async fn next(&mut self) -> Result<Option<T>, ClientError> {
        let too_long = |_| not_understood("an event of its stream is too long");
        loop {
            let mut rest = &*self.piece;
            let event = self.parser.next(&mut rest).map_err(too_long)?;
            self.piece = self.piece.slice_ref(rest);
            if let Some(event) = event {
                match (self.read)(&event)? {
                    Some(item) => return Ok(Some(item)),
                    None => continue,
                }
            }
            match timeout(SILENCE, self.pieces.next()).await {
                Ok(Some(piece)) => self.piece = piece?,
                // An event that the end cuts off does not count.
                Ok(None) => return Ok(None),
                Err(_) => return Err(silent(&self.place, SILENCE)),
            }
        }
    }
}

/// Reads an item of a subscription.
pub fn wire_update(event: &sse::Event) -> Result<Option<WireUpdate>, ClientError> {
    read(event.data.as_bytes()).map(Some)
}

fn session_update(event: &sse::Event) -> Result<Option<SessionUpdate>, ClientError> {
    let data = event.data.as_bytes();
    Ok(Some(match &*event.name {
        // Of a tool call, which only its own process shows.
        "progress" => return Ok(None),
        "frame" => SessionUpdate::Frame(read(data)?),
        "gap" => {
            let from = Seq::deserialize(&read::<Value>(data)?["from"]).map_err(not_understood)?;
            SessionUpdate::Gap { from }
        }
        "end" => {
            let why = String::deserialize(&read::<Value>(data)?["error"]["message"]);
            let why = why.map_err(not_understood)?;
            SessionUpdate::End { why }
        }
        _ => SessionUpdate::Event(read(data)?),
    }))
}

fn read<T: DeserializeOwned>(data: &[u8]) -> Result<T, ClientError> {
    serde_json::from_slice(data).map_err(not_understood)
}

fn broken(error: reqwest::Error) -> ClientError {
    ClientError::Broken {
        place: error.url().map(ToString::to_string).unwrap_or_default(),
        why: error.without_url(),
    }
}

fn not_understood(error: impl fmt::Display) -> ClientError {
    ClientError::NotUnderstood(error.to_string())
}

fn silent(place: &str, since: Duration) -> ClientError {
    let place = place.to_owned();
    ClientError::Silent { place, since }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;
    use tokio::time::interval;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn client_times_out_on_a_silent_server() {
        let lost = serde_json::to_string(&WireUpdate::Lost {}).unwrap();
        let signs = [
            "event: lost\n",
            "data: LOST\n\n",
            ": keep-alive\n\n",
            ": keep-alive\n\n",
        ];
        // The rhythm of an idle server's keep-alives, and of a slow connection.
        let clock = interval(SILENCE - Duration::from_secs(1));
        let signs = signs
            .map(|sign| Bytes::from(sign.replace("LOST", &lost)))
            .into_iter();
        let pieces = stream::unfold((clock, signs), |(mut clock, mut signs)| async {
            clock.tick().await;
            let piece = signs.next()?;
            Some((Ok(piece), (clock, signs)))
        });
        let place = "http://127.0.0.1:7770/api/control/watch".to_owned();
        let mut events = events(place, pieces.chain(stream::pending()), wire_update);
        let first = events.next().await.unwrap();
        assert_eq!(first.unwrap(), WireUpdate::Lost {});
        let stopped = timeout(10 * SILENCE, events.next()).await.unwrap();
        let told = stopped.unwrap().unwrap_err().to_string();
        assert!(told.contains("has not responded for 60s"), "{told}");
    }
}
