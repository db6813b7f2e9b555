//! To which session a question goes, and what is to be brought along.
//!
//! Chats are walked from their first session to the branch that holds the client's conversation (`past`); a
//! branch that is not there comes into being. Requests of one chat take their turns in that, so that two at
//! a time do not both find it missing, and a repetition finds what it repeats.

use super::{
    past::{self, Kept, Standing, State},
    request::{Asked, Exchange},
    wishes::{History, Wishes},
};
use crate::{
    actor::{AskError, SessionHandle},
    http::{Caller, Host, Problem},
    kernel::{Conversation, Said},
    model::{ForkPoint, Import, ImportedMessage, ProfileName, QueryId, SessionName, Speaker},
};

/// How often a conversation may be branched off a branch.
const DEPTH: usize = 64;

/// What becomes of a request.
pub(super) enum Placed {
    /// Its question goes to this session, with what is to be brought along.
    Ask(SessionHandle, Import),
    /// Its question was asked before.
    Follow(SessionHandle, QueryId),
}

/// Who asks whom.
pub(super) struct Asker<'a> {
    pub host: &'a Host,
    pub caller: &'a Caller,
    pub profile: &'a ProfileName,
}

impl Asker<'_> {
    pub(super) fn session(&self, name: SessionName) -> SessionHandle {
        let key = self.caller.session(name);
        self.host
            .oracle
            .acting(self.caller.by())
            .session_of(key, self.profile.clone())
    }

    /// A session for this request alone.
    pub(super) fn brief_session(&self, name: SessionName) -> SessionHandle {
        let oracle = self.host.oracle.acting(self.caller.by());
        oracle.brief_session(self.caller.session(name), self.profile.clone())
    }

    /// Finds the place of a question in a chat. The chat's turn must be held.
    pub(super) async fn place(
        &self,
        chat: &SessionName,
        asked: &Asked,
        wishes: &Wishes,
    ) -> Result<Placed, Problem> {
        let (mut name, mut fork) = (chat.clone(), None);
        for _ in 0..DEPTH {
            let session = self.session(name.clone());
            if wishes.history == History::Tail {
                if let Some(query) = repeated(&session, asked, wishes).await? {
                    return Ok(Placed::Follow(session, query));
                }
                return Ok(Placed::Ask(session, tail(asked)));
            }
            let Some(ours) = kept(&session).await? else {
                return self.open(session, fork, asked).await;
            };
            let next = match past::compare(&ours, &asked.past, &asked.question) {
                Standing::GoesOn { known } if known == asked.past.len() => {
                    return Ok(Placed::Ask(session, import(asked, &[])));
                }
                Standing::GoesOn { .. } if ours.is_empty() => {
                    return Ok(Placed::Ask(session, import(asked, &asked.past)));
                }
                Standing::GoesOn { known } => Leaving {
                    at: ours.len(),
                    known,
                },
                Standing::Asked(at) => match ours.get(at).and_then(|kept| kept.query) {
                    Some(query) if !self.is_another(&session, query, wishes).await? => {
                        return Ok(Placed::Follow(session, query));
                    }
                    Some(_) | None => Leaving {
                        at,
                        known: asked.past.len(),
                    },
                },
                Standing::Answered(at) => {
                    let leaving = Leaving {
                        at,
                        known: asked.past.len(),
                    };
                    let query = ours.get(at).and_then(|kept| kept.query);
                    if let Some(query) = query
                        && self.repeats(&session, query, wishes).await?
                    {
                        let branch = leaving.to(chat, &session, &ours, asked);
                        if !wishes.again || kept(&self.session(branch)).await?.is_none() {
                            return Ok(Placed::Follow(session, query));
                        }
                    }
                    leaving
                }
                Standing::Parts { at, known } => Leaving { at, known },
            };
            name = next.to(chat, &session, &ours, asked);
            fork = next.fork(&session, &ours, asked);
        }
        let what = format!(
            "this conversation was branched {DEPTH} times, and so often it cannot be: begin a new one"
        );
        Err(Problem::new(
            axum::http::StatusCode::CONFLICT,
            "too_many_branches",
            what,
        ))
    }

    /// Whether what is being answered was asked under another key: then it is another question, of the same
    /// words.
    async fn is_another(
        &self,
        session: &SessionHandle,
        query: QueryId,
        wishes: &Wishes,
    ) -> Result<bool, AskError> {
        let Some(mine) = &wishes.key else {
            return Ok(false);
        };
        let its = key_of(session, query).await?;
        Ok(its.is_some_and(|its| its != *mine))
    }

    /// Whether the last question of a session is asked again because its answer was lost, and not for another.
    async fn repeats(
        &self,
        session: &SessionHandle,
        query: QueryId,
        wishes: &Wishes,
    ) -> Result<bool, AskError> {
        let Some(key) = &wishes.key else {
            return Ok(wishes.again);
        };
        Ok(key_of(session, query).await?.as_ref() == Some(key))
    }

    /// A session that is not there: a chat's first, or a branch. With all that its parent has, where that is what
    /// the client has; else with what the client has, as text.
    async fn open(
        &self,
        session: SessionHandle,
        fork: Option<Fork>,
        asked: &Asked,
    ) -> Result<Placed, Problem> {
        let whole = import(asked, &asked.past);
        let Some(Fork { parent, after }) = fork else {
            return Ok(Placed::Ask(session, whole));
        };
        let point = ForkPoint {
            query: after,
            turn: None,
        };
        let oracle = self.host.oracle.acting(self.caller.by());
        let name = session.key().name.clone();
        let room = self.host.room_for_a_session(session.key()).await?;
        let forked = oracle.fork(parent.key(), point, name).await;
        room.settle(&forked);
        match forked {
            Ok(_) => Ok(Placed::Ask(session, import(asked, &[]))),
            // It may be too long for that.
            Err(AskError::Refused(_)) => Ok(Placed::Ask(session, whole)),
            Err(error) => Err(error.into()),
        }
    }
}

/// What a branch begins as: a copy, up to the end of a query.
struct Fork {
    parent: SessionHandle,
    after: QueryId,
}

/// Where a conversation leaves a session, and how many of the client's exchanges are before that.
struct Leaving {
    at: usize,
    known: usize,
}

impl Leaving {
    /// The branch.
    fn to(
        &self,
        chat: &SessionName,
        parent: &SessionHandle,
        ours: &[Kept],
        asked: &Asked,
    ) -> SessionName {
        let question = asked
            .past
            .get(self.known)
            .map_or(&asked.question, |next| &next.question);
        past::branch((chat, &parent.key().name), ours, self.at, question)
    }

    /// What the branch can be a copy of: if what both have in common is all that comes before the question.
    fn fork(&self, parent: &SessionHandle, ours: &[Kept], asked: &Asked) -> Option<Fork> {
        if self.known != asked.past.len() {
            return None;
        }
        let before = ours
            .iter()
            .take(self.at)
            .rev()
            .find(|kept| kept.state != State::Gone)?;
        let (parent, after) = (parent.clone(), before.query?);
        Some(Fork { parent, after })
    }
}

/// The key that a query was asked under.
async fn key_of(session: &SessionHandle, query: QueryId) -> Result<Option<String>, AskError> {
    let events = session.events_of(query).await?;
    let accepted = events.iter().find(|event| event.kind == "query.accepted");
    let key = accepted.and_then(|event| event.payload["idempotency_key"].as_str());
    Ok(key.map(str::to_owned))
}

/// The query that a request of only what is new repeats, where its sender says that it is sent again and has
/// no key to tell it by.
async fn repeated(
    session: &SessionHandle,
    asked: &Asked,
    wishes: &Wishes,
) -> Result<Option<QueryId>, AskError> {
    if !wishes.again || wishes.key.is_some() {
        return Ok(None);
    }
    let kept = kept(session).await?.unwrap_or_default();
    let last = kept
        .last()
        .filter(|last| past::same(&last.question, &asked.question));
    Ok(last.and_then(|last| last.query))
}

/// What a session kept; none where there is no such session.
async fn kept(session: &SessionHandle) -> Result<Option<Vec<Kept>>, AskError> {
    match session.conversation().await {
        Ok(conversation) => Ok(Some(listed(conversation))),
        Err(AskError::NoSession { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

fn listed(conversation: Conversation) -> Vec<Kept> {
    let Conversation {
        messages,
        unanswered,
        ..
    } = conversation;
    let mut listed: Vec<Kept> = Vec::new();
    for Said {
        query,
        speaker,
        text,
        shown,
        stands,
    } in messages
    {
        match speaker {
            Speaker::User => {
                let before = listed.last().filter(|_| query.is_some());
                let goes_into = before.is_some_and(|before| before.query == query);
                let is_open = query.is_some_and(|query| unanswered.contains(&query));
                let state = match (stands, goes_into) {
                    (false, _) => State::Gone,
                    (true, true) => State::Added,
                    (true, false) if is_open => State::Open,
                    (true, false) => State::Done,
                };
                listed.push(Kept {
                    query,
                    question: text,
                    answers: Vec::new(),
                    state,
                });
            }
            Speaker::Assistant => {
                let answers: Vec<_> = std::iter::once(text).chain(shown).collect();
                // The same for all that was said to the query; of an import the last one is meant.
                let most = if query.is_some() { listed.len() } else { 1 };
                let asked = listed.iter_mut().rev().take(most);
                for kept in asked.take_while(|kept| kept.query == query) {
                    kept.answers.extend(answers.iter().cloned());
                }
            }
        }
    }
    listed
}

/// What a question brings along. The client's instructions are those of its latest request.
pub(super) fn import(asked: &Asked, past: &[Exchange]) -> Import {
    let mut messages = Vec::new();
    for Exchange { question, answer } in past {
        let (speaker, text) = (Speaker::User, question.clone());
        messages.push(ImportedMessage { speaker, text });
        if let Some(answer) = answer {
            let (speaker, text) = (Speaker::Assistant, past::spoken(answer));
            messages.push(ImportedMessage { speaker, text });
        }
    }
    Import {
        instructions: Some(asked.instructions.clone().unwrap_or_default()),
        messages,
    }
}

/// The same of a request that says only what is new: instructions that it does not have go on.
fn tail(asked: &Asked) -> Import {
    Import {
        instructions: asked.instructions.clone(),
        messages: Vec::new(),
    }
}
