//! Sessions that last for one request.

use std::time::Duration;

use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::{
    actor::{AskError, SessionHandle},
    kernel::Refusal,
    model::SessionName,
};

/// How their names begin, so that those that a crash left behind are known for what they are.
const PREFIX: &str = "once-";
/// How often it is tried to be rid of one.
const TRIES: u32 = 5;
/// Pause between the tries.
const PAUSE: Duration = Duration::from_secs(1);

/// A name for one.
pub(super) fn name() -> SessionName {
    let id = Uuid::now_v7();
    SessionName::new(&format!("{PREFIX}{id}")).unwrap_or_else(|_| SessionName::from_uuid(id))
}

/// A session that is gone when this is, with whatever runs in it: nobody can ask for it.
pub(super) struct Brief {
    session: SessionHandle,
    tasks: TaskTracker,
}

impl Brief {
    pub(super) const fn new(session: SessionHandle, tasks: TaskTracker) -> Self {
        Self { session, tasks }
    }
}

impl Drop for Brief {
    fn drop(&mut self) {
        let session = self.session.clone();
        // The client may have gone away in the middle of anything, so nobody is left to wait for it.
        self.tasks.spawn(discard(session));
    }
}

async fn discard(session: SessionHandle) {
    for _ in 0..TRIES {
        match session.delete().await {
            Ok(_) | Err(AskError::NoSession { .. } | AskError::Stopped) => return,
            Err(error) => {
                let name = session.key().name.as_str();
                tracing::debug!(name, %error, "a short-lived session is still there");
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}
