//! All transports behind one interface.

use axum::{
    Extension, Router,
    body::Body,
    http::{Request, header},
};
use futures_util::StreamExt as _;
use http_body_util::BodyExt as _;
use oracle_agent::{
    control::{
        Client, ClientError, Controller, Events, Follow, Verb, Watching, WireUpdate, port,
        socket::{self, Socket},
    },
    http::{Host, HostParts, LocalServer, Settings},
    model::Principal,
    testkit::{TestSystem, router},
};
use ractor::{ActorRef, rpc::CallResult};
use serde_json::Value;
use tempfile::TempDir;

pub(super) type Answered = Result<Value, (String, String)>;

pub(super) enum Way {
    Calls(Controller),
    Port(ActorRef<port::ControlMsg>),
    Socket {
        _folder: TempDir,
        client: Client,
        _server: LocalServer,
    },
    Http(Router),
}

pub(super) enum Watched {
    Follow(Box<Follow>),
    Socket(Events<WireUpdate>),
    Http { body: Body, read: String },
}

pub(super) const WAYS: [&str; 4] = ["calls", "port", "socket", "http"];

impl Way {
    pub(super) async fn to(name: &str, system: &TestSystem) -> Self {
        let controller = Controller::new(system.oracle().clone());
        match name {
            "calls" => Self::Calls(controller),
            "port" => Self::Port(port::start(controller, None).await.unwrap().0),
            "socket" => {
                let folder = TempDir::new().unwrap();
                let path = folder.path().join(socket::NAME);
                let socket = Socket::bind(&path).await.unwrap();
                Self::Socket {
                    _server: LocalServer::start(socket, host(system)),
                    client: Client::unix(&path).await.unwrap(),
                    _folder: folder,
                }
            }
            _ => Self::Http(router(host(system)).0),
        }
    }

    pub(super) async fn ask(&mut self, who: Principal, verb: Verb) -> Answered {
        match self {
            Self::Calls(controller) => json(controller.carry_out(&who, verb).await),
            Self::Port(port) => {
                let message = |reply| port::ControlMsg::Do { who, verb, reply };
                let CallResult::Success(answer) = port.call(message, None).await.unwrap() else {
                    panic!("the port does not answer")
                };
                json(answer)
            }
            Self::Socket { client, .. } => json(refused(client.carry_out(&verb).await)),
            Self::Http(routes) => {
                let request = Request::post("/api/control")
                    .header(header::CONTENT_TYPE, "application/json")
                    .body(Body::from(serde_json::to_vec(&verb).unwrap()));
                let routes = routes.clone().layer(Extension(who));
                let response = send(routes, request.unwrap()).await;
                read_http(response).await
            }
        }
    }

    pub(super) async fn watch(&mut self, wanted: Watching) -> Result<Watched, (String, String)> {
        let who = Principal::local();
        match self {
            Self::Calls(controller) => {
                let follow = controller.watch(&who, wanted).await;
                follow
                    .map(|follow| Watched::Follow(Box::new(follow)))
                    .map_err(why)
            }
            Self::Port(port) => {
                let message = |reply| port::ControlMsg::Watch { who, wanted, reply };
                let CallResult::Success(follow) = port.call(message, None).await.unwrap() else {
                    panic!("the port does not answer")
                };
                follow
                    .map(|follow| Watched::Follow(Box::new(follow)))
                    .map_err(why)
            }
            Self::Socket { client, .. } => {
                let watched = refused(client.watch(&wanted).await);
                watched.map(Watched::Socket).map_err(why)
            }
            Self::Http(routes) => {
                let mut query = Vec::new();
                if let Some(session) = wanted.session {
                    query.push(format!("session={session}"));
                }
                if let Some(after) = wanted.after {
                    query.push(format!("after={after}"));
                }
                if !wanted.types.is_empty() {
                    query.push(format!("types={}", wanted.types.join(",")));
                }
                let path = format!("/api/control/watch?{}", query.join("&"));
                let request = Request::get(path).body(Body::empty()).unwrap();
                let routes = routes.clone().layer(Extension(who));
                let response = send(routes, request).await;
                if !response.status().is_success() {
                    return Err(read_http(response).await.unwrap_err());
                }
                let (body, read) = (response.into_body(), String::new());
                Ok(Watched::Http { body, read })
            }
        }
    }
}

impl Watched {
    pub(super) async fn next(&mut self) -> Value {
        let seen: WireUpdate = match self {
            Self::Follow(follow) => follow.next().await.unwrap().into(),
            Self::Socket(watched) => watched.next().await.unwrap().unwrap(),
            Self::Http { body, read } => loop {
                if let Some((event, rest)) = read.split_once("\n\n") {
                    let data = event.lines().find_map(|line| line.strip_prefix("data: "));
                    let seen = data.map(|data| serde_json::from_str(data).unwrap());
                    *read = rest.to_owned();
                    if let Some(seen) = seen {
                        break seen;
                    }
                    continue;
                }
                let mut stream = body.into_data_stream();
                let more = stream.next().await.unwrap().unwrap();
                read.push_str(std::str::from_utf8(&more).unwrap());
            },
        };
        serde_json::to_value(seen).unwrap()
    }
}

async fn send(routes: Router, request: Request<Body>) -> axum::response::Response {
    use tower::ServiceExt as _;
    routes.oneshot(request).await.unwrap()
}

async fn read_http(response: axum::response::Response) -> Answered {
    let good = response.status().is_success();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    let body: Value = serde_json::from_slice(&bytes).unwrap();
    if good {
        return Ok(body);
    }
    let text = |field: &str| body["error"][field].as_str().unwrap().to_owned();
    Err((text("code"), text("message")))
}

pub(super) fn host(system: &TestSystem) -> Host {
    Host::new(HostParts {
        keys: std::sync::Arc::default(),
        oracle: system.oracle().clone(),
        journal: system.journal(),
        settings: Settings::default(),
    })
}

fn refused<T>(answer: Result<T, ClientError>) -> Result<T, oracle_agent::control::Refused> {
    answer.map_err(|error| match error {
        ClientError::Refused(refused) => refused,
        other => panic!("{other}"),
    })
}

fn json(answer: Result<oracle_agent::control::Answer, oracle_agent::control::Refused>) -> Answered {
    let told = answer.map(|answer| serde_json::to_value(answer).unwrap());
    told.map_err(why)
}

fn why(refused: oracle_agent::control::Refused) -> (String, String) {
    (refused.code.to_string(), refused.message)
}
