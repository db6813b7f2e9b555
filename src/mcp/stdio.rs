//! One client on standard input and output: `oracle mcp`.

use std::{io, os::fd::AsFd, time::Duration};

use futures_util::future::{BoxFuture, FutureExt as _, join};
use rmcp::{
    ErrorData, RoleServer,
    service::{RequestContext, ServerInitializeError as NotOpened, serve_server_with_ct},
    transport::async_rw::AsyncRwTransport,
};
use tokio::{
    fs::File,
    io::{AsyncRead, AsyncWrite},
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{Failure, Front, GivenUp, Server};
use crate::{
    actor::{Oracle, SessionHandle},
    control::question::QueryHandle,
};
use oracle_core::model::{Principal, Submission};

/// Longest line of a client, in bytes: a question of 1 MiB, with room for its JSON escapes. A longer
/// line is dropped.
const MAX_LINE: usize = 4 << 20;
/// Time for cancelled questions to become durable.
const GRACE: Duration = Duration::from_secs(5);

/// The client is the user of this process. Each question is cancelled with its call.
struct LocalFront;

impl Front for LocalFront {
    fn caller(&self, _: &RequestContext<RoleServer>) -> Result<Principal, ErrorData> {
        Ok(Principal::local())
    }

    fn begin<'a>(
        &'a self,
        session: &'a SessionHandle,
        mut submission: Submission,
    ) -> BoxFuture<'a, Result<QueryHandle, Failure>> {
        // With a key, the question can be submitted again if the session's owner changes.
        submission.idempotency_key = Some(Uuid::now_v7().to_string());
        async { Ok(QueryHandle::ask(session, submission).await?) }.boxed()
    }

    fn given_up(
        &self,
        _: bool,
        context: &RequestContext<RoleServer>,
    ) -> BoxFuture<'static, GivenUp> {
        let cancelled = context.ct.clone().cancelled_owned();
        cancelled.map(|()| GivenUp::Cancel).boxed()
    }
}

/// Serves one client, which speaks JSON-RPC in lines, until its input ends or `ending` resolves.
/// Calls in progress get a few seconds to finish when the input ends, and none otherwise; then
/// their queries are cancelled.
pub async fn serve(
    oracle: Oracle,
    input: impl AsyncRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
    ending: impl Future<Output = ()>,
) {
    let server = Server::new(oracle, LocalFront);
    let questions = server.questions.clone();
    let transport = AsyncRwTransport::new_server(input, output).with_max_line_length(MAX_LINE);
    let end = CancellationToken::new();
    let serving = async {
        match serve_server_with_ct(server, transport, end.clone()).await {
            Ok(service) => drop(service.waiting().await),
            Err(NotOpened::ConnectionClosed(_) | NotOpened::Cancelled) => {}
            Err(error) => tracing::warn!(%error, "the MCP client could not connect"),
        }
        end.cancel();
    };
    let ending = async {
        ending.await;
        end.cancel();
    };
    join(serving, end.run_until_cancelled(ending)).await;
    questions.close();
    let _ = tokio::time::timeout(GRACE, questions.wait()).await;
}

/// Standard input or output, which may be a file or a terminal.
///
/// # Errors
/// When the process has no file descriptor left.
pub fn standard_stream(stream: &impl AsFd) -> io::Result<File> {
    Ok(File::from_std(stream.as_fd().try_clone_to_owned()?.into()))
}
