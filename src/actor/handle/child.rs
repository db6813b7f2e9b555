//! Running a sub-agent: a session of its own, whose answer comes back as data (spec 11).

use std::sync::Arc;

use super::{Answer, AskError, Router, SessionHandle};
use crate::{
    actor::session::Opening,
    model::{
        Limits, ProfileName, SessionKey, SessionName, Submission, TenantId,
        record::{ChildEnd, Parent},
    },
};

/// What a child is to do.
#[derive(Debug, Clone)]
pub(in crate::actor) struct Child {
    pub name: SessionName,
    pub scope: Arc<str>,
    pub max_tokens: Option<u64>,
}

impl Router {
    /// Starts the child, or finds it if it was started before, and follows it to its end.
    pub(in crate::actor) async fn run_child(
        &self,
        tenant: TenantId,
        profile: ProfileName,
        parent: Parent,
        child: Child,
    ) -> Result<ChildEnd, AskError> {
        let key = SessionKey {
            tenant,
            name: child.name.clone(),
        };
        let session = self.session(
            key,
            Opening {
                profile,
                parent: Some(parent),
            },
        );
        let limits = Limits {
            max_tokens: child.max_tokens,
            ..Limits::default()
        };
        let submission = Submission {
            // The same message however often the parent comes back to it.
            idempotency_key: Some("delegation".into()),
            limits: Some(limits),
            ..Submission::new(&*child.scope)
        };
        let watch = session.ask(submission).await?;
        let answer = watch.answer().await?;
        let Answer {
            outcome,
            text,
            usage,
            ..
        } = answer;
        Ok(ChildEnd {
            child: child.name,
            outcome,
            answer: text,
            usage,
        })
    }

    /// Takes back what a child is doing. One that is doing nothing is left alone.
    pub(in crate::actor) async fn cancel_child(&self, tenant: TenantId, child: SessionName) {
        let session: SessionHandle = self.session(
            SessionKey {
                tenant,
                name: child,
            },
            Opening::default(),
        );
        if let Err(error) = session.cancel(None).await {
            tracing::debug!(session = %session.key(), %error, "child was not running");
        }
    }
}
