//! The HTTP server as its clients see it: a real one, in process, on a port of its own.
//!
//! Sockets need a running clock, so the tests wait for facts and never measure time.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use oracle_agent::{llm::Scripted, testkit::TestOracle};
use serde_json::Value;

mod access;
pub(super) mod door;
mod health;
mod keys;
mod limits;
mod native;
mod nodes;
mod openai;
mod page;
mod profiles;
mod server;
mod tenants;

/// A model that says hello, for tests of the layers in front of it.
fn greeter() -> TestOracle {
    TestOracle::new(Scripted::new().reply("Hello."))
}

pub(super) fn client() -> reqwest::Client {
    builder().build().unwrap()
}

fn builder() -> reqwest::ClientBuilder {
    // An error means that another test has installed it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
}

fn with(request: reqwest::RequestBuilder, body: &Value) -> reqwest::RequestBuilder {
    let request = request.header("content-type", "application/json");
    request.body(body.to_string())
}

async fn problem(response: reqwest::Response) -> (u16, String, String) {
    let status = response.status().as_u16();
    let text = response.text().await.unwrap();
    let body: Value = serde_json::from_str(&text).unwrap();
    let text_of = |field: &str| body["error"][field].as_str().unwrap().to_owned();
    (status, text_of("code"), text_of("message"))
}

/// A bare TCP connection, for requests that no HTTP client would send.
struct Raw(TcpStream);

impl Raw {
    fn to(address: SocketAddr) -> Self {
        let tcp = TcpStream::connect(address).unwrap();
        // A read that fails says more than a test that hangs.
        tcp.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        Self(tcp)
    }

    fn send(&mut self, text: &str) -> &mut Self {
        self.0.write_all(text.as_bytes()).unwrap();
        self
    }

    fn rest(&mut self) -> String {
        let mut text = Vec::new();
        // A reset is as good as a clean close.
        let _ = self.0.read_to_end(&mut text);
        String::from_utf8(text).unwrap()
    }

    /// Reads one response whose body is at most a few bytes.
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
