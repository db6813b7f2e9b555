//! Running a sub-agent: a session of its own, whose answer comes back as data (spec 11).

use std::sync::Arc;

use super::{Answer, AskError, Command, Router, ShardMsg};
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
    /// Its budgets.
    pub limits: Limits,
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
        let submission = Submission {
            // The same message however often the parent comes back to it.
            idempotency_key: Some("delegation".into()),
            limits: Some(child.limits),
            ..Submission::new(&*child.scope)
        };
        let Answer {
            outcome,
            text,
            usage,
            ..
        } = session.answer(submission).await?;
        Ok(ChildEnd {
            child: child.name,
            outcome,
            answer: text,
            usage,
        })
    }

    /// Takes back what a child is doing, if it does anything. Sent at once and not waited for, so that
    /// it does not end with whoever sends it.
    pub(in crate::actor) fn cancel_child(&self, tenant: TenantId, child: SessionName) {
        let key = SessionKey {
            tenant,
            name: child,
        };
        let (nobody, _) = ractor::concurrency::oneshot();
        if let Some(shard) = self.shards.at(self.shards.index_of(&key)) {
            let _ = shard.cast(ShardMsg::Command {
                key,
                opening: Box::default(),
                command: Box::new(Command::Cancel { query: None }),
                reply: nobody.into(),
            });
        }
    }
}
