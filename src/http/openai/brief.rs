//! Sessions that last for one request.

use std::{sync::Arc, time::Duration};

use uuid::Uuid;

use crate::{
    actor::{AskError, SessionHandle},
    http::Host,
    journal::Journal,
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
    host: Host,
}

impl Brief {
    pub(super) const fn new(session: SessionHandle, host: Host) -> Self {
        Self { session, host }
    }
}

impl Drop for Brief {
    fn drop(&mut self) {
        let discarded = discard(self.session.clone(), Arc::clone(&self.host.journal));
        // The client may have gone away in the middle of anything, so nobody is left to wait for it.
        self.host.chats().tasks.spawn(discarded);
    }
}

async fn discard(session: SessionHandle, journal: Arc<dyn Journal>) {
    for _ in 0..TRIES {
        match delete(&session, &*journal).await {
            Ok(()) | Err(AskError::Stopped) => return,
            Err(error) => {
                let name = session.key().name.as_str();
                tracing::debug!(name, %error, "a short-lived session is still there");
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn delete(session: &SessionHandle, journal: &dyn Journal) -> Result<(), AskError> {
    if journal.find(session.key().clone()).await?.is_none() {
        return Ok(());
    }
    match session.cancel(None).await {
        Ok(()) | Err(AskError::Refused(Refusal::NothingRunning)) => {}
        Err(error) => return Err(error),
    }
    let claim = journal.claim(session.key().clone()).await?;
    Ok(journal.delete(claim.sid, claim.epoch).await?)
}
