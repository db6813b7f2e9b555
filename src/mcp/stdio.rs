//! One client on standard input and output: `oracle mcp`.

use std::{
    io::{self, BufRead as _, Write as _},
    pin::pin,
    time::Duration,
};

use futures_util::future::{BoxFuture, FutureExt as _};
use rmcp::{
    ErrorData, RoleServer,
    service::{RequestContext, ServerInitializeError, serve_server_with_ct},
    transport::async_rw::AsyncRwTransport,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, DuplexStream, duplex},
    runtime::Handle,
    task::{JoinHandle, spawn_blocking},
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{Front, Server};
use crate::{
    actor::{Oracle, SessionHandle},
    control::question::QueryHandle,
    model::{Principal, Submission},
};

/// Longest line of a client, in bytes: a question of 1 MiB, with room for its JSON escapes. A longer
/// line is dropped.
const MAX_LINE: usize = 4 << 20;
/// Time for cancelled questions to become durable.
const GRACE: Duration = Duration::from_secs(5);
const BUFFER: usize = 64 << 10;

/// The client is the user of this process. Each question is cancelled with its call.
#[derive(Clone)]
struct LocalFront;

impl Front for LocalFront {
    fn caller(&self, _: &RequestContext<RoleServer>) -> Result<Principal, ErrorData> {
        Ok(Principal::local())
    }

    async fn begin(
        &self,
        session: &SessionHandle,
        submission: Submission,
    ) -> Result<QueryHandle, String> {
        // With a key, the question can be submitted again if the session's owner changes.
        let submission = Submission {
            idempotency_key: Some(Uuid::now_v7().to_string()),
            ..submission
        };
        let begun = QueryHandle::ask(session, submission).await;
        begun.map_err(|refused| refused.message)
    }

    fn given_up(
        &self,
        _: &Principal,
        _: bool,
        context: &RequestContext<RoleServer>,
    ) -> BoxFuture<'static, bool> {
        let cancelled = context.ct.clone().cancelled_owned();
        cancelled.map(|()| false).boxed()
    }
}

/// Serves one client, which speaks JSON-RPC in lines, until its input ends or `ending` resolves.
/// Calls in progress get a few seconds to finish when the input ends, and none otherwise; then
/// their queries are cancelled.
pub async fn serve(
    oracle: Oracle,
    (input, output): (
        impl AsyncRead + Send + Unpin + 'static,
        impl AsyncWrite + Send + Unpin + 'static,
    ),
    ending: impl Future<Output = ()>,
) {
    let server = Server::new(oracle, LocalFront);
    let questions = server.questions.clone();
    let transport = AsyncRwTransport::new_server(input, output).with_max_line_length(MAX_LINE);
    let end = CancellationToken::new();
    let mut serving = pin!(async {
        match serve_server_with_ct(server, transport, end.clone()).await {
            Ok(service) => drop(service.waiting().await),
            Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => {}
            Err(error) => tracing::warn!(%error, "the MCP client could not connect"),
        }
    });
    tokio::select! {
        () = serving.as_mut() => {}
        () = ending => {
            end.cancel();
            serving.await;
        }
    }
    questions.close();
    if tokio::time::timeout(GRACE, questions.wait()).await.is_err() {
        tracing::warn!("questions were not cancelled within {GRACE:?}");
    }
}

/// Standard input and output as streams, which threads copy, because files and terminals block; and
/// the copy of the output, which ends with its stream.
#[must_use]
pub fn standard_streams() -> ((DuplexStream, DuplexStream), JoinHandle<()>) {
    let ((mut to_us, input), (output, mut from_us)) = (duplex(BUFFER), duplex(BUFFER));
    let runtime = Handle::current();
    spawn_blocking(move || {
        let mut stdin = io::stdin().lock();
        while let Ok(bytes @ [_, ..]) = stdin.fill_buf() {
            let length = bytes.len();
            if runtime.block_on(to_us.write_all(bytes)).is_err() {
                return;
            }
            stdin.consume(length);
        }
    });
    let runtime = Handle::current();
    let copy = spawn_blocking(move || {
        let (mut stdout, mut buffer) = (io::stdout().lock(), vec![0; BUFFER]);
        while let Ok(length @ 1..) = runtime.block_on(from_us.read(&mut buffer)) {
            let bytes = buffer.get(..length).unwrap_or_default();
            if stdout
                .write_all(bytes)
                .and_then(|()| stdout.flush())
                .is_err()
            {
                return;
            }
        }
    });
    ((input, output), copy)
}
