//! The tools against servers on this machine, of which 127.0.0.1 stands for the public Internet.

mod addresses;
mod hostile;
mod pages;
mod searches;

use std::{
    collections::VecDeque,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{Router, body::Body, http::Uri, response::Response};
use parking_lot::Mutex;
use reqwest::{
    Client, ClientBuilder,
    dns::{Addrs, Name, Resolve, Resolving},
};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::{FetchSettings, fetch::guarded};
use crate::{
    testkit::tool_context,
    tool::{FnTool, Tool, ToolError, ToolOutput},
};

const PUBLIC: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 1));
const PRIVATE: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));

fn settings() -> FetchSettings {
    FetchSettings {
        max_page_bytes: 1 << 20,
        max_redirects: 3,
        deadline: Duration::from_secs(30),
        allow_hosts: None,
        deny_hosts: Vec::new(),
    }
}

/// Like that of the program, which trusts authorities.
fn client_builder() -> ClientBuilder {
    let ring = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(ring);
    let tls = tls.with_safe_default_protocol_versions().unwrap();
    let tls = tls.with_root_certificates(rustls::RootCertStore::empty());
    Client::builder().tls_backend_preconfigured(tls.with_no_client_auth())
}

/// Answers each look with the next addresses, and at last always with the same.
struct Names(Mutex<VecDeque<Vec<IpAddr>>>);

impl Names {
    fn new<const N: usize>(looks: [&[IpAddr]; N]) -> Arc<Self> {
        Arc::new(Self(Mutex::new(looks.map(<[_]>::to_vec).into())))
    }
}

impl Resolve for Names {
    fn resolve(&self, _: Name) -> Resolving {
        let mut looks = self.0.lock();
        let addresses = match looks.len() {
            1 => looks[0].clone(),
            _ => looks.pop_front().unwrap(),
        };
        let addresses = addresses.into_iter().map(|ip| SocketAddr::new(ip, 0));
        Box::pin(async move { Ok(Box::new(addresses) as Addrs) })
    }
}

fn fetch_with(settings: FetchSettings, names: Arc<Names>) -> FnTool {
    let builder = client_builder();
    guarded(builder, settings, names, |ip| ip == PUBLIC).unwrap()
}

fn fetch() -> FnTool {
    fetch_with(settings(), Names::new([&[PUBLIC]]))
}

async fn call(tool: &FnTool, arguments: Value) -> Result<ToolOutput, ToolError> {
    let called = tool.call(arguments, tool_context());
    tokio::time::timeout(Duration::from_secs(60), called)
        .await
        .unwrap()
}

async fn read(tool: &FnTool, url: &str) -> Result<String, String> {
    let output = call(tool, json!({ "url": url })).await;
    output
        .map(|output| output.text)
        .map_err(|error| error.to_string())
}

/// A server on the public address.
async fn serve(answer: fn(&Uri) -> Response) -> SocketAddr {
    let listener = TcpListener::bind((PUBLIC, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let app = Router::new().fallback(move |uri: Uri| async move { answer(&uri) });
    in_background(async move { axum::serve(listener, app).await.unwrap() });
    address
}

#[expect(clippy::disallowed_methods, reason = "ends with the test's runtime")]
fn in_background(work: impl Future<Output = ()> + Send + 'static) {
    tokio::spawn(work);
}

fn response(status: u16, headers: &[(&str, &str)], body: impl Into<Body>) -> Response {
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    response.body(body.into()).unwrap()
}

fn html(text: &str) -> Response {
    response(
        200,
        &[("content-type", "text/html; charset=utf-8")],
        text.to_owned(),
    )
}

/// Counts the connections to an address, which are closed at once.
async fn counted(address: SocketAddr) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind(address).await.unwrap();
    let (address, count) = (
        listener.local_addr().unwrap(),
        Arc::new(AtomicUsize::new(0)),
    );
    let counting = Arc::clone(&count);
    in_background(async move {
        while listener.accept().await.is_ok() {
            counting.fetch_add(1, Ordering::SeqCst);
        }
    });
    (address, count)
}
