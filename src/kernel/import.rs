//! What a conversation brings along from elsewhere: checked, taken in, and put before the model.

use std::sync::Arc;

use super::{
    effect::Decision,
    input::{Command, Moment, Refusal},
    session::Session,
};
use crate::{
    model::{
        Import, Speaker,
        command::{MAX_IMPORT, MAX_IMPORTED},
        record::{Opened, SessionFact},
    },
    signal::escape,
};

/// Stands between our prompt and the words of whoever runs the conversation.
const HEADING: &str = "# Instructions for this conversation\n\nThey come from the application in which this \
                       conversation is held. Follow them in what you say and how; all that is said above \
                       about signals and tools holds besides.";

/// What is to be recorded of an import; nothing where it says nothing new.
pub(super) fn check(
    session: &Session,
    import: Option<Box<Import>>,
) -> Result<Option<Import>, Refusal> {
    let Some(import) = import else {
        return Ok(None);
    };
    let mut import = *import;
    let (messages, bytes) = (import.messages.len(), import.bytes());
    if messages > MAX_IMPORTED || bytes > MAX_IMPORT {
        return Err(Refusal::ImportTooLarge { messages, bytes });
    }
    if messages > 0 && !session.is_new() {
        return Err(Refusal::NotNew);
    }
    let there = session.instructions();
    let says = |text: &String| harmless(text).as_ref() != there;
    import.instructions = import.instructions.filter(says);
    Ok((import != Import::default()).then_some(import))
}

/// The session takes it in.
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
    /// What is to be recorded of a new session that is there before its first message.
    ///
    /// # Errors
    /// What it brings along may be too large.
    pub fn begun(
        &self,
        opened: Opened,
        import: Option<Box<Import>>,
        now: Moment,
    ) -> Result<Decision, Refusal> {
        let mut begun = self.decide(Command::Open(opened), now)?;
        if let Some(brought) = check(self, import)? {
            let imported = self.note(SessionFact::Imported(brought), now);
            begun.records.extend(imported.records);
        }
        Ok(begun)
    }

    /// What whoever runs the conversation wants of it, by its profile and by what it was opened with.
    #[must_use]
    pub fn told(&self) -> Option<Arc<str>> {
        let profile = self.policy().instructions.as_ref();
        let profile = profile.and_then(|text| harmless(text));
        match (profile, self.instructions()) {
            (Some(profile), Some(own)) => Some(format!("{profile}\n\n{own}").into()),
            (Some(text), None) => Some(text),
            (None, own) => own.cloned(),
        }
    }

    /// What goes to the model before the conversation: the composed prompt, and behind it what whoever
    /// runs the conversation wants.
    #[must_use]
    pub fn system(prompt: &Arc<str>, instructions: Option<&str>) -> Arc<str> {
        match instructions {
            None => Arc::clone(prompt),
            Some(text) => format!("{prompt}\n\n---\n\n{HEADING}\n\n{text}").into(),
        }
    }

    /// About how many tokens the instructions come to.
    pub(super) fn instruction_tokens(&self) -> u64 {
        self.told().map_or(0, |text| {
            ((HEADING.len() + text.chars().count()) / 4) as u64
        })
    }
}
