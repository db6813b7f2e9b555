//! What goes over the socket: frames of JSON, each with its length before it.
//!
//! The server speaks first and says which protocol it speaks; that much stays as it is in every protocol.
//! Then each request has a number, and its answer the same; answers may come in another order. Letters come
//! between the answers, with numbers of their own, and are answered by a request.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio_util::codec::LengthDelimitedCodec;

use crate::{
    journal::{Append, Claim, Entry, Error, Hit, Known, Only, Posted, Standing},
    model::{
        Epoch, Record, Seq, SessionKey, SessionName, Sid, TenantId,
        record::codec::{decode, encode},
    },
};

/// The protocol that this program speaks.
pub(super) const PROTOCOL: u32 = 6;
/// The longest frame. An append holds what one step of a session records, of which each text is bounded.
pub(super) const MAX_FRAME: usize = 256 * 1024 * 1024;

/// What the server says first.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Hello {
    pub protocol: u32,
    /// The server's process.
    pub pid: u32,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Request {
    pub id: u64,
    pub call: Call,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Response {
    pub id: u64,
    pub answer: Result<Answer, Error>,
}

/// A call of the port.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Call {
    Claim {
        key: SessionKey,
        only: Only,
    },
    Append {
        sid: Sid,
        epoch: Epoch,
        after: Seq,
        leaves: Standing,
        records: Vec<Box<RawValue>>,
    },
    Read {
        sid: Sid,
        after: Seq,
        limit: usize,
    },
    Find(SessionKey),
    List {
        tenant: TenantId,
        after: Option<SessionName>,
        limit: usize,
    },
    Tenants {
        after: Option<TenantId>,
        limit: usize,
    },
    Unfinished {
        after: Sid,
        limit: usize,
    },
    Search {
        tenant: TenantId,
        words: String,
        limit: usize,
    },
    Save {
        sid: Sid,
        epoch: Epoch,
        seq: Seq,
        body: Body,
    },
    Snapshot(Sid),
    Delete {
        sid: Sid,
        epoch: Epoch,
    },
    /// What this process has, from before it came by this line.
    Hold(Vec<(SessionKey, Claim)>),
    /// Not answered.
    LetGo {
        key: SessionKey,
        epoch: Epoch,
    },
    /// A letter to whoever else has the session.
    Post {
        key: SessionKey,
        body: Body,
        within_ms: u64,
    },
    /// What came of a letter; not answered.
    Reply {
        letter: u64,
        reply: Reply,
    },
}

/// What came of a letter, as its reader says.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Reply {
    Answered(Body),
    /// The session is not there; nobody read it.
    NotHere,
    /// Too many wait there; nobody read it.
    Full,
    /// Whoever read it ended before it answered.
    Lost,
}

/// Its answer.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Answer {
    Claim(Claim),
    Appended(Seq),
    Read {
        /// In order, from the one that follows `after`.
        records: Vec<Box<RawValue>>,
        /// The page was cut: there is more within the limit.
        more: bool,
    },
    Found(Option<Known>),
    Listed(Vec<Known>),
    Tenants(Vec<TenantId>),
    Hits(Vec<Hit>),
    Snapshot(Option<(Seq, Body)>),
    Posted(Post),
    Done,
}

/// What the server says after its first word.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Told {
    Answer(Response),
    Letter {
        letter: u64,
        key: SessionKey,
        body: Body,
    },
}

impl Told {
    pub(super) fn letter(letter: u64, key: SessionKey, body: &[u8]) -> Self {
        let body = Body::of(body);
        Self::Letter { letter, key, body }
    }
}

/// What came of a letter.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Post {
    Answered(Body),
    Nobody,
    Lost,
    Full,
    Silent { process: Option<u32> },
}

impl From<Posted> for Post {
    fn from(posted: Posted) -> Self {
        match posted {
            Posted::Answered(body) => Self::Answered(Body::of(&body)),
            Posted::Nobody => Self::Nobody,
            Posted::Lost => Self::Lost,
            Posted::Full => Self::Full,
            Posted::Silent { process } => Self::Silent { process },
        }
    }
}

impl From<Post> for Posted {
    fn from(post: Post) -> Self {
        match post {
            Post::Answered(body) => Self::Answered(body.bytes()),
            Post::Nobody => Self::Nobody,
            Post::Lost => Self::Lost,
            Post::Full => Self::Full,
            Post::Silent { process } => Self::Silent { process },
        }
    }
}

/// What a snapshot or a letter holds: as a rule text, which is shorter as such.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Body {
    Text(String),
    Bytes(Vec<u8>),
}

impl Body {
    pub(super) fn of(bytes: &[u8]) -> Self {
        let text = std::str::from_utf8(bytes);
        text.map_or_else(
            |_| Self::Bytes(bytes.to_vec()),
            |text| Self::Text(text.into()),
        )
    }

    pub(super) fn bytes(self) -> Vec<u8> {
        match self {
            Self::Text(text) => text.into_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }
}

/// Frames of this protocol.
pub(super) fn codec() -> LengthDelimitedCodec {
    LengthDelimitedCodec::builder()
        .max_frame_length(MAX_FRAME)
        .new_codec()
}

/// A record as it travels.
pub(super) fn raw(record: &Record) -> Result<Box<RawValue>, serde_json::Error> {
    RawValue::from_string(encode(record)?)
}

/// Records that follow `after`, as they arrived.
pub(super) fn entries(
    sid: Sid,
    after: Seq,
    records: &[Box<RawValue>],
) -> Result<Vec<Entry>, Error> {
    // Whoever asks may ask for what no journal has.
    let numbers = (1..).map(|number| Seq(after.0.saturating_add(number)));
    let entry = |(seq, raw): (Seq, &RawValue)| match decode(raw.get()) {
        Ok(record) => Ok(Entry {
            seq,
            record: record.into(),
        }),
        Err(error) => Err(Error::Unreadable {
            sid,
            seq,
            why: error.to_string(),
        }),
    };
    numbers
        .zip(records.iter().map(AsRef::as_ref))
        .map(entry)
        .collect()
}

impl Call {
    /// An append as it travels.
    pub(super) fn append(append: &Append) -> Result<Self, Error> {
        let Append {
            sid,
            epoch,
            after,
            leaves,
            ref records,
        } = *append;
        let records: Result<_, _> = records.iter().map(|record| raw(record)).collect();
        let records = records.map_err(|error: serde_json::Error| {
            Error::Unavailable(format!("a record cannot be sent: {error}"))
        })?;
        Ok(Self::Append {
            sid,
            epoch,
            after,
            leaves,
            records,
        })
    }
}
