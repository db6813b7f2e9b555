//! The idempotency keys of the last [`KEPT`] messages that had one.
//!
//! The oldest key is dropped first, in the order of the records, so that a replay and a snapshot
//! agree. Messages are kept as hashes to bound the size of snapshots.

use std::{collections::VecDeque, sync::Arc};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::model::{AnswerOptions, QueryId};

/// A retry comes within seconds, not after a thousand messages.
const KEPT: usize = 1_000;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct KeyUse {
    // Shared with the copies that decisions work on.
    key: Arc<str>,
    pub query: QueryId,
    print: [u8; 32],
}

impl KeyUse {
    pub(super) fn is(&self, text: &str, options: Option<&AnswerOptions>) -> bool {
        self.print == print(text, options)
    }
}

fn print(text: &str, options: Option<&AnswerOptions>) -> [u8; 32] {
    let mut digest = Sha256::new_with_prefix(text);
    if let Some(options) = options {
        digest.update(serde_json::to_vec(options).unwrap_or_default());
    }
    digest.finalize().into()
}

/// In order of acceptance; few enough for a linear search.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Keys(VecDeque<KeyUse>);

impl Keys {
    pub(super) fn get(&self, key: &str) -> Option<&KeyUse> {
        self.0.iter().rev().find(|used| *used.key == *key)
    }

    pub(super) fn keep_up_to(&mut self, query: QueryId) {
        self.0.retain(|used| used.query <= query);
    }

    pub(super) fn remember(
        &mut self,
        key: &str,
        query: QueryId,
        text: &str,
        options: Option<&AnswerOptions>,
    ) {
        if self.0.len() >= KEPT {
            self.0.pop_front();
        }
        self.0.push_back(KeyUse {
            key: key.into(),
            query,
            print: print(text, options),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        kernel::{Command, CommandReply, DecisionContext, IdleState, Policy, Session},
        model::{Record, Submission, Timestamp},
    };

    fn sent(session: &mut Session, log: &mut Vec<Record>, key: &str, text: &str) -> QueryId {
        let message = Submission {
            idempotency_key: Some(key.to_owned()),
            ..Submission::new(text)
        };
        let mut heard = None;
        for command in [Command::Submit(message), Command::Cancel { query: None }] {
            let Ok(decision) =
                session.decide(command, DecisionContext::at(Timestamp::from_millis(0)))
            else {
                break;
            };
            heard = heard.or(Some(decision.reply));
            decision
                .records
                .iter()
                .for_each(|record| session.evolve(record));
            log.extend(decision.records);
        }
        match heard {
            Some(CommandReply::Query { query, .. }) => query,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_replay_and_a_snapshot_forget_the_same_keys() {
        let new = || Session::new(Arc::new(Policy::new(Vec::new(), Arc::default())));
        let (mut live, mut log, kept) = (new(), Vec::new(), u32::try_from(KEPT).unwrap());
        for number in 0..kept {
            sent(&mut live, &mut log, &format!("k{number}"), "what?");
        }
        assert_eq!(
            sent(&mut live, &mut log, "k0", "what?"),
            QueryId(1),
            "known"
        );
        let before = live.resting().unwrap().to_bytes().unwrap();
        let before = IdleState::from_bytes(&before).unwrap();
        let mut rested = Session::rested(Arc::new(Policy::new(Vec::new(), Arc::default())), before);
        let from = log.len();
        assert_eq!(
            sent(&mut live, &mut log, "one more", "what?"),
            QueryId(kept + 1)
        );

        let mut replayed = new();
        log.iter().for_each(|record| replayed.evolve(record));
        log[from..].iter().for_each(|record| rested.evolve(record));
        assert_eq!(replayed, live);
        assert_eq!(
            rested, live,
            "one made from a snapshot, and then from the rest"
        );
        for mut session in [live, replayed, rested] {
            let known = sent(&mut session, &mut log, "k1", "what?");
            let forgotten = sent(&mut session, &mut log, "k0", "another question?");
            assert_eq!((known, forgotten), (QueryId(2), QueryId(kept + 2)));
        }
    }

    #[test]
    fn key_snapshot_does_not_grow_with_message_length() {
        let mut keys = Keys::default();
        let text = "long ".repeat(100_000);
        keys.remember("k", QueryId(1), &text, None);
        let kept = serde_json::to_vec(&keys).unwrap();
        assert!(kept.len() < 300, "{} bytes", kept.len());
        let read: Keys = serde_json::from_slice(&kept).unwrap();
        assert_eq!(read, keys);
        assert!(read.get("k").unwrap().is(&text, None));
    }

    #[test]
    fn least_recent_key_is_forgotten_at_capacity() {
        let mut keys = Keys::default();
        for number in 0..u32::try_from(KEPT).unwrap() {
            keys.remember(&format!("k{number}"), QueryId(number), "what?", None);
        }
        assert_eq!(keys.get("k0").map(|used| used.query), Some(QueryId(0)));
        keys.remember("one more", QueryId(7_000), "what?", None);
        assert_eq!(keys.get("k0"), None);
        assert_eq!(keys.get("k1").map(|used| used.query), Some(QueryId(1)));
        keys.remember("k0", QueryId(7_001), "and now?", None);
        let again = keys.get("k0").unwrap();
        assert_eq!(again.query, QueryId(7_001));
        assert!(again.is("and now?", None) && !again.is("what?", None));
        let stop = AnswerOptions {
            stop: vec!["x".to_owned()],
            ..AnswerOptions::default()
        };
        assert!(!again.is("and now?", Some(&stop)));
        assert_eq!((keys.get("k1"), keys.0.len()), (None, KEPT));
    }
}
