//! Model servers behind TLS: trusted authorities, errors without one, and the HTTP version.

use std::sync::{Arc, Mutex};

use axum::{
    Router,
    extract::Request,
    http::{Version, header::CONTENT_TYPE},
};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
    service::TowerToHyperService,
};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::{ServerConfig, crypto::ring, pki_types::PrivateKeyDer};
use tokio::{
    net::{TcpListener, TcpStream},
    runtime::Runtime,
};
use tokio_rustls::TlsAcceptor;

use super::{Workspace, server::stream_of};

const BOTH: &[&str] = &["h2", "http/1.1"];

/// A server with a certificate from a private authority. Stops when dropped.
struct Tls {
    url: String,
    authority: String,
    /// HTTP versions of the requests, in order.
    versions: Arc<Mutex<Vec<Version>>>,
    _runtime: Runtime,
}

impl Tls {
    fn start(name: &str, protocols: &[&str]) -> Self {
        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = authority.self_signed(&key).unwrap().pem();
        let issuer = Issuer::new(authority, key);
        let key = KeyPair::generate().unwrap();
        let own = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let own = own.signed_by(&key, &issuer).unwrap();
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![own.der().clone()],
                PrivateKeyDer::Pkcs8(key.serialize_der().into()),
            )
            .unwrap();
        let protocols = protocols.iter();
        config.alpn_protocols = protocols.map(|name| name.as_bytes().to_vec()).collect();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let versions = Arc::new(Mutex::new(Vec::new()));
        let router = router(Arc::clone(&versions));
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let url = format!("https://{}/v1", listener.local_addr().unwrap());
        let tasks = runtime.handle().clone();
        runtime.spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                tasks.spawn(serve(connection, acceptor.clone(), router.clone()));
            }
        });
        Self {
            url,
            authority: pem,
            versions,
            _runtime: runtime,
        }
    }

    fn place(&self, more: &str) -> Workspace {
        let url = &self.url;
        let config = format!(
            "[model]\nattempts = 1\n[[providers]]\nname = \"local\"\ndialect = \"openai\"\nbase_url = \"{url}\"\n{more}\n"
        );
        let files: &[(&str, &str)] = &[
            ("o.toml", &config),
            ("ca.pem", &self.authority),
            ("none.pem", "no certificate\n"),
        ];
        Workspace::new(files)
    }

    fn versions(&self) -> Vec<Version> {
        std::mem::take(&mut self.versions.lock().unwrap())
    }
}

fn router(versions: Arc<Mutex<Vec<Version>>>) -> Router {
    Router::new().fallback(async move |request: Request| {
        versions.lock().unwrap().push(request.version());
        let body = axum::body::to_bytes(request.into_body(), 1 << 20).await;
        let body = String::from_utf8(body.unwrap().to_vec()).unwrap();
        ([(CONTENT_TYPE, "text/event-stream")], stream_of(&body))
    })
}

async fn serve(connection: TcpStream, acceptor: TlsAcceptor, router: Router) {
    // A client that does not trust the certificate disconnects.
    let Ok(connection) = acceptor.accept(connection).await else {
        return;
    };
    let service = TowerToHyperService::new(router);
    let server = auto::Builder::new(TokioExecutor::new());
    let _ = server
        .serve_connection(TokioIo::new(connection), service)
        .await;
}

const ASK: &str = "ask --config o.toml --model local/small what?";

fn came(place: &Workspace, line: &str, environment: &[(&str, &str)]) -> (String, String, i32) {
    let mut run = place.oracle(line);
    for (name, value) in environment {
        run = run.env(name, *value);
    }
    let output = run.output();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let errors = text(&output.stderr);
    let last = errors.lines().last().unwrap_or_default().to_owned();
    let code = output.status.code().unwrap();
    (text(&output.stdout).trim().to_owned(), last, code)
}

#[test]
fn own_authority_is_trusted_and_the_server_chooses_the_protocol() {
    for (protocols, version) in [
        (BOTH, Version::HTTP_2),
        (&["http/1.1"], Version::HTTP_11),
        (&[], Version::HTTP_11),
    ] {
        let server = Tls::start("127.0.0.1", protocols);
        let place = server.place("ca_file = 'ca.pem'");
        let (answer, errors, code) = came(&place, ASK, &[]);
        assert_eq!(
            (&*answer, code),
            ("It is 42.", 0),
            "{protocols:?}: {errors}"
        );
        let versions = server.versions();
        assert!(
            !versions.is_empty() && versions.iter().all(|one| *one == version),
            "{versions:?}"
        );
    }
}

#[test]
fn ssl_cert_file_locates_the_system_authorities() {
    if !cfg!(target_os = "linux") {
        return;
    }
    let server = Tls::start("127.0.0.1", BOTH);
    let place = server.place("");
    let (answer, errors, code) = came(&place, ASK, &[("SSL_CERT_FILE", "ca.pem")]);
    assert_eq!((&*answer, code), ("It is 42.", 0), "{errors}");
}

#[test]
fn untrusted_server_is_reported_and_receives_no_request() {
    for (name, more, told) in [
        (
            "127.0.0.1",
            "",
            "its certificate is from an untrusted authority; to trust a private authority, set \
             `ca_file`",
        ),
        (
            "elsewhere.test",
            "ca_file = 'ca.pem'",
            "its certificate is for another host name",
        ),
    ] {
        let server = Tls::start(name, BOTH);
        let place = server.place(more);
        let (answer, errors, code) = came(&place, ASK, &[]);
        let told = format!(
            "cannot establish a secure connection to {}: {told}",
            server.url
        );
        assert_eq!(code, 1, "{answer} {errors}");
        assert!(errors.contains(&told), "{errors}");
        assert!(server.versions().is_empty());
        let (answer, _, code) = came(&place, "doctor --config o.toml --model local/small", &[]);
        let told = format!(
            "fail  connection  {told}; check the address and this machine's certificates; to \
             trust a private certificate authority, set `ca_file`; the remaining checks were \
             skipped"
        );
        assert!(answer.contains(&told) && code == 1, "{answer}");
    }
}

#[test]
fn invalid_ca_file_is_reported_before_any_request() {
    let server = Tls::start("127.0.0.1", BOTH);
    for (file, told) in [
        (
            "away.pem",
            "cannot read the certificates of provider `local` from `away.pem`: No such file or \
             directory (os error 2); check `ca_file`",
        ),
        (
            "none.pem",
            "the `ca_file` of provider `local` has no usable certificates (it contains none): it \
             must contain CA certificates in PEM, each between BEGIN CERTIFICATE and END \
             CERTIFICATE",
        ),
    ] {
        let place = server.place(&format!("ca_file = '{file}'"));
        let (_, errors, code) = came(&place, ASK, &[]);
        assert_eq!((&*errors, code), (&*format!("oracle: {told}"), 2));
        let (answer, _, code) = came(&place, "doctor --config o.toml --model local/small", &[]);
        assert!(answer.contains(told) && code == 1, "{answer}");
    }
    assert!(server.versions().is_empty());
}
