//! What the requests of all chats share: whose turn it is, and what is still to be discarded.

use std::{
    hash::{BuildHasher, RandomState},
    time::Duration,
};

use tokio::{
    sync::{Mutex, MutexGuard},
    time::timeout,
};
use tokio_util::task::TaskTracker;

use crate::{
    http::{Problem, several::Several},
    model::SessionKey,
};

/// Chats that hash to the same of so many wait for each other, for as long as a submission takes.
const TURNS: usize = 256;
/// How long a request waits for its turn.
const PATIENCE: Duration = Duration::from_secs(20);
/// How many short-lived sessions may wait to be discarded before no more are begun.
const DISCARDED: usize = 16_384;

/// What the requests of all chats share.
pub(in crate::http) struct Chats {
    turns: Vec<Mutex<()>>,
    hasher: RandomState,
    /// Sessions that are being discarded.
    pub(super) tasks: TaskTracker,
    /// Those of them for which the first try was not enough.
    pub(super) in_trouble: Several,
}

impl Default for Chats {
    fn default() -> Self {
        Self {
            turns: (0..TURNS).map(|_| Mutex::new(())).collect(),
            hasher: RandomState::new(),
            tasks: TaskTracker::new(),
            in_trouble: Several::default(),
        }
    }
}

impl Chats {
    /// Returns when it is this chat's turn.
    ///
    /// # Errors
    /// When that takes too long.
    pub(super) async fn turn(
        &self,
        chat: &SessionKey,
    ) -> Result<Option<MutexGuard<'_, ()>>, Problem> {
        let hash = self.hasher.hash_one(chat);
        let at = usize::try_from(hash % TURNS as u64).unwrap_or_default();
        match self.turns.get(at) {
            Some(turn) => match timeout(PATIENCE, turn.lock()).await {
                Ok(turn) => Ok(Some(turn)),
                Err(_) => Err(Problem::overloaded(format!(
                    "requests that came before this one, of this chat or of others, were not placed within \
                     {PATIENCE:?}: try again"
                ))),
            },
            None => Ok(None),
        }
    }

    /// Whether there is room for one more session that lasts for one request.
    ///
    /// # Errors
    /// When too many are still there whose requests have ended.
    pub(super) fn has_room_for_a_brief(&self) -> Result<(), Problem> {
        let waiting = self.tasks.len();
        if waiting < DISCARDED {
            return Ok(());
        }
        Err(Problem::overloaded(format!(
            "{waiting} sessions of requests that have ended wait to be deleted: try again"
        )))
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;
    use crate::model::SessionName;

    #[tokio::test(start_paused = true)]
    async fn who_waited_too_long_for_a_turn_is_not_told_that_it_was_its_own_chat() {
        let chats = Chats::default();
        let chat = SessionKey::local(SessionName::new("chat").unwrap());
        let _turn = chats.turn(&chat).await.unwrap();
        let problem = chats.turn(&chat).await.unwrap_err();
        let shown = serde_json::to_value(problem.body()).unwrap();
        assert_eq!(shown["error"]["code"], "overloaded");
        let message = shown["error"]["message"].as_str().unwrap();
        assert!(message.contains("of this chat or of others"), "{message}");
    }

    #[tokio::test]
    async fn no_more_are_begun_while_too_many_wait_to_be_discarded() {
        let chats = Chats::default();
        for _ in 1..DISCARDED {
            chats.tasks.spawn(pending::<()>());
        }
        chats.has_room_for_a_brief().unwrap();
        chats.tasks.spawn(pending::<()>());
        let problem = chats.has_room_for_a_brief().unwrap_err();
        assert_eq!(problem.status().as_u16(), 503);
    }
}
