//! The load: requests that begin on schedule, whatever becomes of the others.
//!
//! It has its own minimal client, because on two cores a common one would take time from the
//! server. Requests are preformatted bytes; of a response it parses the status, one header and the
//! length.

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    task::JoinSet,
    time::Instant,
};

/// Longer requests have failed.
const PATIENCE: Duration = Duration::from_secs(120);

/// Formats a request; each further header line includes its line break.
pub(crate) fn request(method: &str, path: &str, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n{headers}\r\n{body}"
    )
    .into_bytes()
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) hint: bool,
    pub(crate) body: Vec<u8>,
}

/// A client that reuses its connections.
pub(crate) struct Client {
    address: SocketAddr,
    idle: Mutex<Vec<TcpStream>>,
}

impl Client {
    pub(crate) fn new(address: SocketAddr) -> Arc<Self> {
        Arc::new(Self {
            address,
            idle: Mutex::default(),
        })
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<TcpStream>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) async fn send(&self, request: &[u8]) -> io::Result<Answer> {
        let kept = self.idle().pop();
        let mut tcp = match kept {
            Some(tcp) => tcp,
            None => {
                let tcp = TcpStream::connect(self.address).await?;
                tcp.set_nodelay(true)?;
                tcp
            }
        };
        tcp.write_all(request).await?;
        let (answer, keeps) = read(&mut tcp).await?;
        if keeps {
            self.idle().push(tcp);
        }
        Ok(answer)
    }
}

/// Reads a response, and whether its connection can be reused.
async fn read(tcp: &mut TcpStream) -> io::Result<(Answer, bool)> {
    let mut bytes = Vec::with_capacity(1 << 10);
    let head = loop {
        if let Some(head) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break head;
        }
        if tcp.read_buf(&mut bytes).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    };
    let text = String::from_utf8_lossy(&bytes[..head]).to_ascii_lowercase();
    let header = |name: &str| {
        let lines = text.lines().filter_map(|line| line.split_once(": "));
        lines
            .filter(|(field, _)| *field == name)
            .map(|(_, value)| value)
            .next()
    };
    let status = text.split(' ').nth(1).and_then(|code| code.parse().ok());
    let status = status.ok_or(io::ErrorKind::InvalidData)?;
    let length = header("content-length").and_then(|length| length.parse().ok());
    let length: usize = length.ok_or(io::ErrorKind::InvalidData)?;
    let (hint, keeps) = (
        header("retry-after").is_some(),
        header("connection") != Some("close"),
    );
    let mut body = bytes.split_off(head + 4);
    while body.len() < length {
        if tcp.read_buf(&mut body).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok((Answer { status, hint, body }, keeps))
}

/// Results of requests, with the latency from the scheduled time.
#[derive(Default)]
pub(crate) struct Ended {
    /// Accepted: 2xx.
    pub(crate) taken: Times,
    /// Refused with 429 or 503 and a retry hint.
    pub(crate) refused: Times,
    pub(crate) failed: Vec<String>,
}

impl Ended {
    pub(crate) fn add(&mut self, took: Duration, ended: Result<Answer, String>) {
        match ended {
            Ok(answer) if (200..300).contains(&answer.status) => self.taken.0.push(took),
            Ok(answer) if matches!(answer.status, 429 | 503) && answer.hint => {
                self.refused.0.push(took);
            }
            Ok(answer) => {
                let body = String::from_utf8_lossy(&answer.body);
                self.failed.push(format!("{} {body}", answer.status));
            }
            Err(error) => self.failed.push(error),
        }
    }

    pub(crate) fn join(&mut self, other: Self) {
        self.taken.0.extend(other.taken.0);
        self.refused.0.extend(other.refused.0);
        self.failed.extend(other.failed);
    }

    pub(crate) fn failures(&self) -> String {
        match self.failed.first() {
            Some(first) => format!(", {} FAILED, the first: {first}", self.failed.len()),
            None => String::new(),
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    pub(crate) rate: u32,
    pub(crate) time: Duration,
}

impl Pace {
    pub(crate) fn requests(self) -> u64 {
        (f64::from(self.rate) * self.time.as_secs_f64()) as u64
    }

    /// Sends each request on schedule and waits for all responses.
    pub(crate) async fn send(
        self,
        client: &Arc<Client>,
        request: impl Fn(u64) -> Vec<u8>,
    ) -> Ended {
        let begin = Instant::now() + Duration::from_millis(20);
        let mut running = JoinSet::new();
        let mut all = Ended::default();
        for number in 0..self.requests() {
            let due = begin + Duration::from_secs_f64(number as f64 / f64::from(self.rate));
            if due > Instant::now() {
                tokio::time::sleep_until(due).await;
            }
            let (client, request) = (Arc::clone(client), request(number));
            running.spawn(async move {
                let sent = tokio::time::timeout(PATIENCE, client.send(&request)).await;
                let ended = match sent {
                    Ok(Ok(answer)) => Ok(answer),
                    Ok(Err(error)) => Err(error.to_string()),
                    Err(late) => Err(late.to_string()),
                };
                (due.elapsed(), ended)
            });
            while let Some(Ok((took, ended))) = running.try_join_next() {
                all.add(took, ended);
            }
        }
        while let Some(Ok((took, ended))) = running.join_next().await {
            all.add(took, ended);
        }
        all
    }
}

#[derive(Default)]
pub(crate) struct Times(pub(crate) Vec<Duration>);

impl Times {
    pub(crate) fn share(&self, share: f64) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let last = sorted.len().saturating_sub(1);
        let at = (last as f64 * share) as usize;
        sorted.get(at).copied().unwrap_or_default()
    }
}

impl std::fmt::Display for Times {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let of = |share| self.share(share).as_secs_f64() * 1e3;
        let (p50, p99, most) = (of(0.5), of(0.99), of(1.0));
        write!(f, "p50 {p50:.1} ms, p99 {p99:.1} ms, at most {most:.1} ms")
    }
}
