//! Answers each request with bytes from the test. Uses plain threads and sockets, to share no code
//! with the client under test.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{Arc, Mutex, mpsc},
    thread,
};

/// The answer to one request.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    head: String,
    chunks: Vec<Vec<u8>>,
    then: Then,
}

/// The behaviour after the last chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    /// Ends the answer and keeps the connection.
    End,
    /// Breaks the connection.
    Break,
    /// Waits until the client disconnects.
    Wait,
}

impl Answer {
    /// A complete stream of events.
    pub(super) fn stream(events: &[&str]) -> Self {
        Self::of(200, "content-type: text/event-stream\r\n", events)
    }

    /// An answer with a status, further header lines and a body.
    pub(super) fn of(status: u16, headers: &str, chunks: &[&str]) -> Self {
        Self {
            head: format!("HTTP/1.1 {status} x\r\n{headers}transfer-encoding: chunked\r\n\r\n"),
            chunks: chunks.iter().map(|chunk| (*chunk).into()).collect(),
            then: Then::End,
        }
    }

    /// A whole answer with further header lines and these bytes.
    pub(super) fn bytes(headers: &str, body: &[u8]) -> Self {
        Self {
            chunks: vec![body.to_owned()],
            ..Self::of(200, headers, &[])
        }
    }

    /// No answer at all.
    pub(super) fn nothing() -> Self {
        Self {
            head: String::new(),
            chunks: Vec::new(),
            then: Then::Wait,
        }
    }

    pub(super) fn breaks_off(self) -> Self {
        Self {
            then: Then::Break,
            ..self
        }
    }

    pub(super) fn waits(self) -> Self {
        Self {
            then: Then::Wait,
            ..self
        }
    }
}

/// Observed events, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Happened {
    Connected,
    /// Head and body of a request.
    Asked(String, String),
    /// A waiting answer was sent as far as it goes.
    Begun,
    /// A client disconnected from a waiting answer.
    Left,
}

pub(super) struct Server {
    pub(super) url: String,
    happened: Mutex<mpsc::Receiver<Happened>>,
}

impl Server {
    /// Gives the answers in turn and then repeats the last one.
    pub(super) fn new(answers: &[Answer]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (news, happened) = mpsc::channel();
        let mut answers = answers.to_vec();
        answers.reverse();
        let answers = Arc::new(Mutex::new(answers));
        // The thread ends with the process.
        thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                let (answers, news) = (Arc::clone(&answers), news.clone());
                thread::spawn(move || {
                    let _ = news.send(Happened::Connected);
                    // A client may disconnect at any time.
                    let _ = serve(&connection, &answers, &news);
                    let _ = connection.shutdown(Shutdown::Both);
                });
            }
        });
        Self {
            url,
            happened: Mutex::new(happened),
        }
    }

    pub(super) fn happened(&self) -> Vec<Happened> {
        self.happened.lock().unwrap().try_iter().collect()
    }

    pub(super) fn wait_for(&self, awaited: &Happened) {
        let happened = self.happened.lock().unwrap();
        assert!(
            happened.iter().any(|one| one == *awaited),
            "{awaited:?} never happened"
        );
    }

    pub(super) fn requests(&self) -> Vec<(String, String)> {
        let requests = self
            .happened()
            .into_iter()
            .filter_map(|happened| match happened {
                Happened::Asked(head, body) => Some((head, body)),
                Happened::Connected | Happened::Begun | Happened::Left => None,
            });
        requests.collect()
    }
}

fn serve(
    mut connection: &TcpStream,
    answers: &Mutex<Vec<Answer>>,
    news: &mpsc::Sender<Happened>,
) -> std::io::Result<()> {
    connection.set_nodelay(true)?;
    let mut reader = BufReader::new(connection.try_clone()?);
    while let Some((head, body)) = request(&mut reader)? {
        let _ = news.send(Happened::Asked(head, body));
        let answer = {
            let mut answers = answers.lock().unwrap();
            let last = answers.len() == 1;
            let next = if last {
                answers.first().cloned()
            } else {
                answers.pop()
            };
            next.unwrap()
        };
        let mut bytes = answer.head.into_bytes();
        for chunk in &answer.chunks {
            bytes.extend(format!("{:x}\r\n", chunk.len()).bytes());
            bytes.extend([chunk.as_slice(), b"\r\n"].concat());
        }
        if answer.then == Then::End {
            bytes.extend(b"0\r\n\r\n");
        }
        // In one write, so that the end of an answer never arrives after its last chunk.
        connection.write_all(&bytes)?;
        match answer.then {
            Then::End => {}
            Then::Break => return Ok(()),
            Then::Wait => {
                let _ = news.send(Happened::Begun);
                let left = reader.read(&mut [0]);
                assert!(
                    !matches!(left, Ok(more) if more > 0),
                    "a second request at once"
                );
                let _ = news.send(Happened::Left);
                return Ok(());
            }
        }
    }
    Ok(())
}

fn request(reader: &mut impl BufRead) -> std::io::Result<Option<(String, String)>> {
    let mut head = String::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        if line == "\r\n" {
            break;
        }
        head.push_str(&line);
    }
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    reader.read_exact(&mut body)?;
    Ok(Some((head, String::from_utf8(body).unwrap())))
}
