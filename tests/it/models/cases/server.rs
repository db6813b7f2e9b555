//! A model server that answers as a case says.
//!
//! A case is an object with `replies`. Those with `when` come first, if the request fits: `tools`,
//! `no_tools`, `has:FIELD`, `longer:BYTES` and `text:TEXT` (of the messages). The others are used up
//! in order; the last one repeats.

use std::{
    future::Future,
    io,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

pub(super) struct CaseServer {
    pub(super) address: SocketAddr,
    state: Arc<State>,
    _tasks: JoinSet<()>,
}

struct State {
    case: Value,
    answered: AtomicUsize,
    heard: Mutex<Vec<Heard>>,
    /// Requests without a complete reply, and how many of them wait as their case says.
    open: AtomicUsize,
    waiting: AtomicUsize,
}

/// A request for a reply.
#[derive(Debug, Clone)]
pub(super) struct Heard {
    /// In lower case.
    pub(super) head: String,
    pub(super) body: Value,
}

impl CaseServer {
    pub(super) async fn start(case: Value) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State {
            case,
            answered: AtomicUsize::new(0),
            heard: Mutex::default(),
            open: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
        });
        let mut tasks = JoinSet::new();
        let shared = Arc::clone(&state);
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let state = Arc::clone(&shared);
                // A client may hang up at any time.
                connections.spawn(async move { drop(state.serve(stream).await) });
            }
        });
        Self {
            address,
            state,
            _tasks: tasks,
        }
    }

    pub(super) fn heard(&self) -> Vec<Heard> {
        self.state.heard.lock().unwrap().clone()
    }

    /// Drives a paused clock while `future` waits for it: time passes when no request is open, and
    /// while the server waits as its case says, never while a reply is on its way.
    pub(super) async fn lapse<F: Future>(&self, future: F) -> F::Output {
        let clock = async {
            loop {
                // While it runs, the clock does not advance by itself; sockets need real time.
                let nap = || std::thread::sleep(Duration::from_millis(1));
                tokio::task::spawn_blocking(nap).await.unwrap();
                for _ in 0..20 {
                    tokio::task::yield_now().await;
                }
                let (open, waiting) = (&self.state.open, &self.state.waiting);
                if open.load(SeqCst) == 0 || waiting.load(SeqCst) > 0 {
                    tokio::time::advance(Duration::from_millis(500)).await;
                }
            }
        };
        tokio::select! {
            output = future => output,
            () = clock => unreachable!(),
        }
    }
}

/// Counts up while it exists.
struct Counted<'a>(&'a AtomicUsize);

impl<'a> Counted<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, SeqCst);
        Self(count)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

impl State {
    async fn serve(&self, stream: TcpStream) -> io::Result<()> {
        let mut stream = BufReader::new(stream);
        loop {
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                if stream.read_line(&mut head).await? == 0 {
                    return Ok(());
                }
            }
            let open = Counted::new(&self.open);
            let head = head.to_lowercase();
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length:"));
            let mut body = vec![0; length.map_or(0, |length| length.trim().parse().unwrap())];
            stream.read_exact(&mut body).await?;
            let path = head.split(' ').nth(1).unwrap_or_default();
            if path.ends_with("/chat/completions") || path.ends_with("/messages") {
                let body: Value = serde_json::from_slice(&body).unwrap();
                let reply = self.pick(&body).clone();
                self.heard.lock().unwrap().push(Heard { head, body });
                self.answer(&mut stream, &reply).await?;
                if reply["abort"] == true {
                    return Ok(());
                }
            } else {
                let models = json!({"object": "list", "data": [{"id": "m", "object": "model"}]});
                let (status, text) = match path.ends_with("/models") {
                    true => (200, models.to_string()),
                    false => (404, json!({"error": {"message": "Not Found"}}).to_string()),
                };
                let head = format!(
                    "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
                    text.len()
                );
                stream.write_all((head + &text).as_bytes()).await?;
            }
            stream.flush().await?;
            drop(open);
        }
    }

    fn pick(&self, body: &Value) -> &Value {
        let replies = self.case["replies"].as_array().unwrap();
        let messages = body["messages"].to_string();
        let has_tools = body["tools"]
            .as_array()
            .is_some_and(|tools| !tools.is_empty());
        let fits = |reply: &&Value| match reply["when"].as_str().map(|when| when.split_once(':')) {
            None => false,
            Some(Some(("has", field))) => !body[field].is_null(),
            Some(Some(("longer", bytes))) => messages.len() > bytes.parse().unwrap(),
            // Written with spaces in the cases.
            Some(Some(("text", text))) => messages.contains(&text.replace(": ", ":")),
            Some(_) => has_tools == (reply["when"] == "tools"),
        };
        replies.iter().find(fits).unwrap_or_else(|| {
            let plain: Vec<_> = replies
                .iter()
                .filter(|reply| reply["when"].is_null())
                .collect();
            let turn = self.answered.fetch_add(1, SeqCst);
            plain[turn.min(plain.len() - 1)]
        })
    }

    async fn wait(&self, seconds: &Value) {
        if let Some(seconds) = seconds.as_f64() {
            let _waiting = Counted::new(&self.waiting);
            tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
        }
    }

    async fn answer(&self, stream: &mut BufReader<TcpStream>, reply: &Value) -> io::Result<()> {
        self.wait(&reply["delay"]).await;
        let (pieces, kind) = pieces(reply);
        let mut head = format!(
            "HTTP/1.1 {} X\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n",
            reply["status"].as_u64().unwrap_or(200)
        );
        for (name, value) in reply["headers"].as_object().into_iter().flatten() {
            head += &format!("{name}: {}\r\n", value.as_str().unwrap());
        }
        stream.write_all((head + "\r\n").as_bytes()).await?;
        stream.flush().await?;
        self.wait(&reply["first_gap"]).await;
        for piece in pieces {
            chunk(stream, &piece).await?;
            self.wait(&reply["gap"]).await;
        }
        while !reply["forever"].is_null() {
            let event = format!("data: {}\n\n", reply["forever"]);
            let times = reply["times"].as_u64().unwrap_or(1);
            chunk(stream, event.repeat(times.try_into().unwrap()).as_bytes()).await?;
            self.wait(&reply["every"]).await;
        }
        if reply["abort"] != true {
            stream.write_all(b"0\r\n\r\n").await?;
        }
        Ok(())
    }
}

async fn chunk(stream: &mut BufReader<TcpStream>, bytes: &[u8]) -> io::Result<()> {
    let size = format!("{:x}\r\n", bytes.len());
    stream.write_all(size.as_bytes()).await?;
    stream.write_all(bytes).await?;
    stream.write_all(b"\r\n").await?;
    stream.flush().await
}

/// The body in pieces, and its type.
fn pieces(reply: &Value) -> (Vec<Vec<u8>>, String) {
    let (pieces, usual) = if let Some(events) = reply["sse"].as_array() {
        let mut pieces: Vec<_> = events.iter().map(|event| of_event(event).into()).collect();
        if reply["done"] != false && reply["anthropic"] != true {
            pieces.push(b"data: [DONE]\n\n".to_vec());
        }
        (pieces, "text/event-stream")
    } else if let Some(raw) = reply["raw"].as_str() {
        (vec![raw.as_bytes().to_vec()], "text/event-stream")
    } else if let Some(hex) = reply["hex"].as_str() {
        let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        let bytes = (0..hex.len()).step_by(2).map(byte);
        (vec![bytes.collect()], "text/event-stream")
    } else {
        (vec![reply["json"].to_string().into()], "application/json")
    };
    let kind = reply["content_type"].as_str().unwrap_or(usual);
    (pieces, kind.to_owned())
}

fn of_event(event: &Value) -> String {
    match event {
        Value::String(raw) => raw.clone(),
        event if event["_event"].is_null() => format!("data: {event}\n\n"),
        event => {
            let mut data = event.clone();
            let name = data.as_object_mut().unwrap().remove("_event");
            format!(
                "event: {}\ndata: {data}\n\n",
                name.unwrap().as_str().unwrap()
            )
        }
    }
}
