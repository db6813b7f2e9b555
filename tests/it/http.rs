//! The server as its clients see it: a real one, in process, on a port of its own.
//!
//! Clocks run here, because sockets do: what is waited for is a fact, and no test says how long it took.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use oracle_agent::{llm::Scripted, testkit::TestOracle};
use serde_json::Value;

mod access;
mod door;
mod health;
mod keys;
mod limits;
mod native;
mod openai;
mod profiles;
mod server;
mod tenants;

/// A system whose model says hello, for tests of what is before it.
fn greeter() -> TestOracle {
    TestOracle::new(Scripted::new().reply("Hello."))
}

/// A client that keeps its connections.
fn client() -> reqwest::Client {
    builder().build().unwrap()
}

fn builder() -> reqwest::ClientBuilder {
    // The first test to do so has done it for all.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
}

/// With a body of JSON.
fn with(request: reqwest::RequestBuilder, body: &Value) -> reqwest::RequestBuilder {
    let request = request.header("content-type", "application/json");
    request.body(body.to_string())
}

/// The stable name of a problem, and what is said of it.
async fn problem(response: reqwest::Response) -> (u16, String, String) {
    let status = response.status().as_u16();
    let text = response.text().await.unwrap();
    let body: Value = serde_json::from_str(&text).unwrap();
    let said = |field: &str| body["error"][field].as_str().unwrap().to_owned();
    (status, said("code"), said("message"))
}

/// A connection without any client's manners.
struct Raw(TcpStream);

impl Raw {
    fn to(address: SocketAddr) -> Self {
        let tcp = TcpStream::connect(address).unwrap();
        // A test that waits for ever says less than one that fails.
        tcp.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        Self(tcp)
    }

    fn send(&mut self, text: &str) -> &mut Self {
        self.0.write_all(text.as_bytes()).unwrap();
        self
    }

    /// All that comes until the connection is closed.
    fn rest(&mut self) -> String {
        let mut text = Vec::new();
        // However it was closed.
        let _ = self.0.read_to_end(&mut text);
        String::from_utf8(text).unwrap()
    }

    /// The next answer, whose body is at most a few bytes.
    fn answer(&mut self) -> String {
        let mut text = Vec::new();
        let mut byte = [0];
        while !text.ends_with(b"\r\n\r\n") && self.0.read(&mut byte).unwrap() > 0 {
            text.push(byte[0]);
        }
        let head = String::from_utf8(text).unwrap();
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("content-length").then_some(value)
        });
        let mut body = vec![0; length.unwrap().parse().unwrap()];
        self.0.read_exact(&mut body).unwrap();
        head + &String::from_utf8(body).unwrap()
    }
}
