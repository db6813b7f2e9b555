//! Preparation of a query: its type, and its prompt.
//!
//! Both are fast and need no I/O. A session does them in the step that begins the query, so that
//! what they find is recorded with it.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use parking_lot::Mutex;

use super::profile::Profile;
use crate::{
    model::{Fault, FaultCode, QueryClassification, QueryType},
    prompt::{Cache, ComposeInput, ComposedPrompt},
    query::{QueryClassifier, QueryContext},
};

pub(super) struct Preparation {
    classifier: Arc<dyn QueryClassifier>,
    prompts: Mutex<Cache>,
}

impl Preparation {
    pub(super) fn new(classifier: Arc<dyn QueryClassifier>) -> Self {
        let prompts = Mutex::default();
        Self {
            classifier,
            prompts,
        }
    }

    /// Classifies a query, given the question before it, and composes its prompt.
    pub(super) fn prepare(
        &self,
        text: &str,
        previous: Option<&str>,
        profile: &Profile,
    ) -> Result<(QueryClassification, Arc<ComposedPrompt>), Fault> {
        let found = self.classify(text, QueryContext::from(previous))?;
        let prompt = self.compose(profile, found.query_type)?;
        Ok((found, prompt))
    }

    pub(super) fn compose(
        &self,
        profile: &Profile,
        query_type: QueryType,
    ) -> Result<Arc<ComposedPrompt>, Fault> {
        let input = ComposeInput::new(Arc::clone(&profile.prompt), query_type);
        let composed = self.prompts.lock().compose(&profile.composer, &input);
        composed.map_err(|error| Fault::permanent(FaultCode::Prompt, error.to_string()))
    }

    /// Normalises what a host's classifier finds to what records and prompts rely on. A panic would
    /// recur, so it is a permanent fault.
    fn classify(
        &self,
        text: &str,
        context: QueryContext<'_>,
    ) -> Result<QueryClassification, Fault> {
        let classified = catch_unwind(AssertUnwindSafe(|| self.classifier.classify(text, context)));
        let found = classified
            .map_err(|_| Fault::permanent(FaultCode::Classifier, "the classifier panicked"))?;
        let confidence = match found.confidence.is_finite() {
            true => found.confidence.clamp(0.0, 1.0),
            false => 0.0,
        };
        let (kind, keywords) = (found.query_type, found.keywords_matched);
        Ok(QueryClassification::new(kind, confidence, keywords))
    }
}
