//! Instructions and messages that a conversation brings from elsewhere.

use std::sync::Arc;

use super::{
    effect::Decision,
    input::{DecisionContext, Refusal},
    session::Session,
};
use crate::{
    model::{
        Import, QueryId, Speaker,
        command::{MAX_IMPORT, MAX_IMPORTED},
        record::{Opened, SessionFact},
    },
    signal::escape,
};

/// Separates the application's instructions from the prompt.
const HEADING: &str = "# Instructions for this conversation\n\nThe application that hosts this \
                       conversation gives these instructions. Follow them in content and style; \
                       everything above about signals and tools still applies.";

pub(super) fn check(
    session: &Session,
    import: Option<Box<Import>>,
) -> Result<Option<Import>, Refusal> {
    let mut import = import.map(|import| *import).unwrap_or_default();
    let (messages, bytes) = (import.messages.len(), import.bytes());
    if messages > MAX_IMPORTED || bytes > MAX_IMPORT {
        return Err(Refusal::ImportTooLarge { messages, bytes });
    }
    if messages > 0 && session.last_query != QueryId(0) {
        return Err(Refusal::NotNew);
    }
    let there = session.instructions.as_ref();
    let differs = |text: &String| harmless(text).as_ref() != there;
    import.instructions = import.instructions.filter(differs);
    Ok((import != Import::default()).then_some(import))
}

pub(super) fn take_in(session: &mut Session, import: &Import) {
    if let Some(text) = &import.instructions {
        session.instructions = harmless(text);
    }
    for message in &import.messages {
        session.transcript.import(message);
        if message.speaker == Speaker::User {
            session.last_question = Some(message.text.as_str().into());
        }
    }
}

fn harmless(text: &str) -> Option<Arc<str>> {
    let text = text.trim();
    (!text.is_empty()).then(|| escape(text).into())
}

impl Session {
    /// Returns the first records of a new session.
    ///
    /// # Errors
    /// Returns [`Refusal::ImportTooLarge`] if the import is too large.
    pub fn begun(
        &self,
        opened: Opened,
        import: Option<Box<Import>>,
        now: DecisionContext,
    ) -> Result<Decision, Refusal> {
        let note = |brought| self.note(SessionFact::Imported(brought), now);
        let imported = check(self, import)?.map_or_else(Decision::nothing, note);
        Ok(self.opening(opened, imported, now))
    }

    /// Instructions of the profile and of the application, escaped.
    pub fn all_instructions(&self) -> Option<Arc<str>> {
        let profile = self.policy().instructions.as_ref();
        let profile = profile.and_then(|text| harmless(text));
        match (profile, self.instructions()) {
            (Some(profile), Some(own)) => Some(format!("{profile}\n\n{own}").into()),
            (Some(text), None) => Some(text),
            (None, own) => own.cloned(),
        }
    }

    /// Joins the composed prompt and the instructions into the system prompt.
    pub fn system(prompt: &Arc<str>, instructions: Option<&str>) -> Arc<str> {
        match instructions {
            None => Arc::clone(prompt),
            Some(text) => format!("{prompt}\n\n---\n\n{HEADING}\n\n{text}").into(),
        }
    }

    pub(super) fn instruction_tokens(&self) -> u64 {
        self.all_instructions().map_or(0, |text| {
            ((HEADING.len() + text.chars().count()) / 4) as u64
        })
    }
}
