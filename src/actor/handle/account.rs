//! What became of each query of a session, put together from its records. Nobody wakes for it.

use super::{AskError, SessionHandle, look::PAGE};
use crate::{
    journal::{Entry, Known},
    model::{
        Limits, QueryId, Record, Seq, Timestamp, Turn, Usage,
        record::{Accepted, Classified, Fact, Finished, QueryFact, SignalFact, TurnFact},
    },
};

/// Longest beginning of a question in a list, in bytes.
const BRIEF: usize = 1_000;

/// What became of a query.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryAccount {
    /// Which.
    pub query: QueryId,
    /// Where its acceptance stands in the log.
    pub seq: Seq,
    /// When it was accepted.
    pub at: Timestamp,
    /// The message; in a list its beginning.
    pub text: String,
    /// The budgets that it got.
    pub limits: Limits,
    /// Made a repeated submission one message.
    pub idempotency_key: Option<String>,
    /// The forced query that this one continues.
    pub continues: Option<QueryId>,
    /// What it was taken for, and the prompt that followed from that.
    pub classified: Option<Classified>,
    /// Its signals, and what should have been signals; none in a list.
    pub signals: Vec<SignalAccount>,
    /// Whether anything was done about it.
    pub begun: bool,
    /// Turns completed.
    pub turns: u32,
    /// What it used; children only when it has ended.
    pub usage: Usage,
    /// How it ended, and when; in a list without the answer.
    pub finished: Option<(Timestamp, Finished)>,
}

/// A signal of a query, or what should have been one.
#[derive(Debug, Clone, PartialEq)]
pub struct SignalAccount {
    /// Where it stands in the log.
    pub seq: Seq,
    /// In which turn.
    pub turn: Option<Turn>,
    /// What it says.
    pub fact: SignalFact,
}

/// Some of a session's queries.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryPage {
    /// In the order of their acceptance.
    pub queries: Vec<QueryAccount>,
    /// Ask for those after this place in the log for more; none if there is no more.
    pub next: Option<Seq>,
}

/// How much is told of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Detail {
    Whole,
    Brief,
}

impl QueryAccount {
    fn new(query: QueryId, entry: &Entry, accepted: &Accepted, detail: Detail) -> Self {
        let text = match detail {
            Detail::Whole => &*accepted.text,
            Detail::Brief => &accepted.text[..accepted.text.floor_char_boundary(BRIEF)],
        };
        Self {
            query,
            seq: entry.seq,
            at: entry.record.at,
            text: text.to_owned(),
            limits: accepted.limits,
            idempotency_key: accepted.idempotency_key.clone(),
            continues: accepted.continues,
            classified: None,
            signals: Vec::new(),
            begun: false,
            turns: 0,
            usage: Usage::default(),
            finished: None,
        }
    }

    fn evolve(&mut self, seq: Seq, record: &Record, detail: Detail) {
        self.begun = true;
        self.usage += record.usage();
        match &record.fact {
            Fact::Query(QueryFact::Classified(classified)) => {
                self.classified = Some(classified.clone());
            }
            Fact::Query(QueryFact::Finished(finished)) => {
                (self.turns, self.usage) = (finished.turns, finished.usage);
                let mut finished = finished.clone();
                if detail == Detail::Brief {
                    finished.answer.clear();
                }
                self.finished = Some((record.at, finished));
            }
            Fact::Turn(TurnFact::Replied(_)) => self.turns += 1,
            Fact::Signal(fact) if detail == Detail::Whole => self.signals.push(SignalAccount {
                seq,
                turn: record.turn,
                fact: fact.clone(),
            }),
            _ => {}
        }
    }
}

/// The message that an entry accepts.
fn accepts(entry: &Entry) -> Option<(QueryId, &Accepted)> {
    let Fact::Query(QueryFact::Accepted(accepted)) = &entry.record.fact else {
        return None;
    };
    Some((entry.record.query?, accepted))
}

impl SessionHandle {
    /// What became of one query; none if there is no such query.
    ///
    /// # Errors
    /// When there is no such session, or the journal cannot be read.
    pub async fn account(&self, query: QueryId) -> Result<Option<QueryAccount>, AskError> {
        self.known_for_sure().await?;
        let Some(mut after) = self.before(query).await? else {
            return Ok(None);
        };
        let mut account: Option<QueryAccount> = None;
        while let Some(page) = self.page(after, PAGE).await? {
            for entry in &page.entries {
                if entry.record.query != Some(query) {
                    continue;
                }
                match (&mut account, accepts(entry)) {
                    (None, Some((_, accepted))) => {
                        account = Some(QueryAccount::new(query, entry, accepted, Detail::Whole));
                    }
                    (Some(account), _) => account.evolve(entry.seq, &entry.record, Detail::Whole),
                    (None, None) => {}
                }
                if account
                    .as_ref()
                    .is_some_and(|known| known.finished.is_some())
                {
                    return Ok(account);
                }
            }
            match page.entries.last() {
                Some(last) if page.more => after = last.seq,
                Some(_) | None => break,
            }
        }
        Ok(account)
    }

    /// Up to `limit` (at most 200) queries that were accepted after a place in the log.
    ///
    /// # Errors
    /// When there is no such session, or the journal cannot be read.
    pub async fn queries(&self, after: Seq, limit: usize) -> Result<QueryPage, AskError> {
        const MOST: usize = 200;
        let limit = limit.clamp(1, MOST);
        let Known { sid, last, .. } = self.known_for_sure().await?;
        let (mut queries, mut next) = (Vec::<QueryAccount>::new(), None);
        let mut read_to = after;
        while read_to < last {
            let entries = self.read(sid, read_to, PAGE).await?;
            let Some(end) = entries.last() else { break };
            read_to = end.seq;
            for entry in &entries {
                if let Some((query, accepted)) = accepts(entry) {
                    if queries.len() < limit {
                        queries.push(QueryAccount::new(query, entry, accepted, Detail::Brief));
                    } else if next.is_none() {
                        next = queries.last().map(|last| last.seq);
                    }
                } else if let Some(query) = entry.record.query
                    && let Some(known) = queries.iter_mut().find(|known| known.query == query)
                {
                    known.evolve(entry.seq, &entry.record, Detail::Brief);
                }
            }
            // The rest of the log says no more about them.
            if next.is_some() && queries.iter().all(|query| query.finished.is_some()) {
                break;
            }
        }
        Ok(QueryPage { queries, next })
    }

    /// Where a query's acceptance stands in the log; none if there is no such query.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn accepted_at(&self, query: QueryId) -> Result<Option<Seq>, AskError> {
        let Some(mut after) = self.before(query).await? else {
            return Ok(None);
        };
        // It stands behind a few records of the session, mostly none.
        while let Some(page) = self.page(after, PAGE).await? {
            let is_it = |entry: &&Entry| accepts(entry).is_some_and(|(id, _)| id == query);
            if let Some(entry) = page.entries.iter().find(is_it) {
                return Ok(Some(entry.seq));
            }
            match page.entries.last() {
                Some(last) if page.more => after = last.seq,
                Some(_) | None => break,
            }
        }
        Ok(None)
    }
}
