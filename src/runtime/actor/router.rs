//! The way to the shard of a session, shared by all that send to sessions.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use ractor::RpcReplyPort;
use tokio_util::sync::CancellationToken;

use super::{
    approvals::Approvals,
    bus::BusHandle,
    deadline::REPLY_DEADLINE,
    error::AskError,
    journal_router::Ephemerals,
    ledger::Ledger,
    mailbox::{Admission, Unanswered},
    pool::Pool,
    profile::ProfileStore,
    protocol::ShardMsg,
};
use crate::{journal::Journal, model::SessionKey};

#[derive(Clone)]
pub(super) struct SessionRouter {
    pub shards: Pool<ShardMsg>,
    pub bus: BusHandle,
    pub ledger: Ledger,
    pub journal: Arc<dyn Journal>,
    pub ephemerals: Arc<Ephemerals>,
    pub profiles: ProfileStore,
    pub subscriber_capacity: usize,
    /// Set once, when the system drains.
    pub draining: Arc<AtomicBool>,
    pub approvals: Approvals,
    /// Cancelled when the system has ended.
    pub ended: CancellationToken,
}

impl SessionRouter {
    pub(super) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    pub(super) async fn ask<T: Send + 'static>(
        &self,
        key: &SessionKey,
        admission: Admission,
        message: impl FnOnce(RpcReplyPort<Result<T, AskError>>) -> ShardMsg,
    ) -> Result<T, AskError> {
        let shard = self.shards.at(self.shards.index_of(key));
        let shard = shard.ok_or(AskError::Stopped)?;
        match shard.ask(message, admission, REPLY_DEADLINE).await {
            Ok(answer) => answer,
            Err(Unanswered::Full(waiting)) => Err(AskError::full(waiting)),
            Err(Unanswered::Timeout) => Err(AskError::Timeout(REPLY_DEADLINE)),
            Err(Unanswered::Stopped) => Err(AskError::Stopped),
        }
    }
}
