//! The head of a conversation: the system prompt and the tools that each request begins with.
//!
//! Providers cache the beginning of a request, and bind a model's reasoning to all that precedes it.
//! So a session keeps its head, and all else is appended: a later query of another type brings the
//! segment of its type as guidance. A new head is recorded with its reason
//! (docs/protocol.md, "The conversation").

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::{draft::Draft, effect::Decision, joined_tools, policy, session::Session};
use crate::model::{
    QueryType, Record, hex,
    record::{BudgetFact, Fact, HeadComposed, HeadReason, MessageRange, QueryFact, SessionFact},
};

/// The head of a session, and what the conversation has besides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Head {
    composed: HeadComposed,
    /// Types whose segments were appended, each with the place of the message.
    told: Vec<(QueryType, usize)>,
}

impl Session {
    /// SHA-256 of the composed prompt in the head, in hex.
    pub fn head_prompt(&self) -> Option<&str> {
        self.head.as_ref().map(|head| &*head.composed.prompt)
    }

    /// The types whose segments the conversation has: in the head, and in messages.
    pub fn told_types(&self) -> impl Iterator<Item = QueryType> {
        self.head.iter().flat_map(|head| {
            let told = head.told.iter().map(|(told, _)| *told);
            [head.composed.query_type].into_iter().chain(told)
        })
    }

    /// Must run after the transcript has evolved, which inserts and replaces messages.
    pub(super) fn evolve_head(&mut self, record: &Record) {
        if let Fact::Session(SessionFact::HeadComposed(composed)) = &record.fact {
            let told = self.head.take().map(|head| head.told.clone());
            self.head = Some(Arc::new(Head {
                composed: composed.clone(),
                told: told.unwrap_or_default(),
            }));
        }
        let Some(head) = &mut self.head else { return };
        match &record.fact {
            Fact::Query(QueryFact::Classified(classified)) if classified.segment.is_some() => {
                let told = (
                    classified.classification.query_type,
                    self.transcript.query_start(),
                );
                Arc::make_mut(head).told.push(told);
            }
            Fact::Budget(BudgetFact::ContextCompacted(compacted))
                if !head.told.is_empty() && !compacted.messages.is_empty() =>
            {
                // One message replaces them.
                let MessageRange { from, to } = compacted.messages;
                let told = &mut Arc::make_mut(head).told;
                told.retain(|(_, at)| !(from..to).contains(at));
                let later = told.iter_mut().filter(|(_, at)| *at >= to);
                later.for_each(|(_, at)| *at -= to - from - 1);
            }
            _ => {}
        }
    }

    /// Forgets the segments whose messages were removed from the end.
    pub(super) fn untell(&mut self) {
        let is_there = |(_, at): &(QueryType, usize)| *at < self.transcript.messages().len();
        if let Some(head) = &mut self.head
            && !head.told.iter().all(is_there)
        {
            Arc::make_mut(head).told.retain(is_there);
        }
    }
}

/// Records a new head if the session has none, or one that no longer fits. `prompt` is the hash of the
/// prompt that was just composed; without it, that of the head stays.
pub(super) fn settle(draft: &mut Draft<'_>, prompt: Option<&str>) {
    let (session, query) = (draft.session, &draft.query);
    if query.options().is_task {
        return;
    }
    // This decision may have recorded a head already.
    let decided = draft
        .records
        .iter()
        .rev()
        .find_map(|record| match &record.fact {
            Fact::Session(SessionFact::HeadComposed(composed)) => Some(composed),
            _ => None,
        });
    let before = decided.or(session.head.as_deref().map(|head| &head.composed));
    let Some(prompt) = prompt.or_else(|| before.map(|before| &*before.prompt)) else {
        return;
    };
    let instructions = session.all_instructions();
    let instructions = instructions.map(|text| hex(&Sha256::digest(&*text)));
    let tools = tools_hash(draft);
    let reason = match before {
        None => HeadReason::First,
        Some(before) if before.tools != tools => HeadReason::Tools,
        Some(before) if before.prompt != prompt => HeadReason::Prompt,
        Some(before) if before.instructions != instructions => HeadReason::Instructions,
        Some(_) => return,
    };
    let own = query.query_type.unwrap_or(QueryType::Conversational);
    let composed = HeadComposed {
        reason,
        query_type: before.map_or(own, |before| before.query_type),
        prompt: prompt.to_owned(),
        instructions,
        tools,
    };
    draft.emit_query(SessionFact::HeadComposed(composed));
}

/// Records a new head if the prompt of a query that runs is another one after a restart.
pub(super) fn recomposed(mut draft: Draft<'_>, prompt: &str) -> Decision {
    settle(&mut draft, Some(prompt));
    draft.wait()
}

fn tools_hash(draft: &Draft<'_>) -> String {
    let (own, query) = (draft.policy(), &draft.query);
    if draft.added.is_empty() && query.options().tools.is_empty() {
        return own.tool_list().hash.clone();
    }
    let tools = joined_tools::with_further(&own.tools, draft.added.iter().cloned());
    policy::hash(&query.tools(&tools))
}
