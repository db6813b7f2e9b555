//! A session that is there before its first message.

use std::sync::Arc;

use super::{AskError, Oracle, SessionHandle};
use crate::{
    actor::{replay::Replayed, session::Opening},
    journal::Entry,
    model::{Import, ProfileName, Record, Seq, SessionKey, record::Opened},
};

impl Oracle {
    /// Makes a new session, with what was said elsewhere before. Returns once it is durable.
    ///
    /// # Errors
    /// See [`AskError`]; refused when there is one of this name (`already_open`).
    pub async fn create(
        &self,
        key: SessionKey,
        profile: ProfileName,
        import: Option<Import>,
    ) -> Result<SessionHandle, AskError> {
        self.router.takes_new()?;
        if key.name.is_reserved() || key.name.is_brief() {
            let name = key.name;
            return Err(AskError::Reserved { name });
        }
        let opening = Opening {
            profile: profile.clone(),
            parent: None,
        };
        let new = Replayed::new(opening, &self.router.profiles.now());
        let opened = Opened {
            key: key.clone(),
            profile: profile.clone(),
            parent: None,
        };
        let now = self.clock.moment();
        let begun = new.session.begun(opened, import.map(Box::new), now)?;
        let records: Vec<Arc<Record>> = begun.records.into_iter().map(Arc::new).collect();
        self.router.begin_with(&key, records.clone()).await?;
        let entries = (1..).map(Seq).zip(records);
        let entries = entries.map(|(seq, record)| Entry { seq, record });
        self.router.bus.publish(&key, entries.collect());
        Ok(self.session_of(key, profile))
    }
}
