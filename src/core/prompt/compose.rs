//! Composes a prompt within its token budget.
//!
//! An optional segment that does not fit is omitted. If a required one does not fit, composition
//! retries with a shorter tool list: the tools of the classified needs, then bare names. Optional
//! segments never shorten the list.
//!
//! **Invariant:** the estimate covers the whole rendered content, separators included.

use std::sync::Arc;

use serde::Serialize;
use sha2::{Digest, Sha256};

use super::{
    error::{Error, FileFault},
    files::PromptFile,
    segment::{Inclusion, Presence, SegmentId},
    template::Prompts,
    tokens,
    variables::{PreparedVariables, ToolDetail},
};
use crate::model::{QueryType, hex, record::PromptSummary};

/// Separates segments.
pub const SEPARATOR: &str = "\n\n---\n\n";

/// The input of a composition.
#[derive(Debug, Clone)]
pub struct ComposeInput {
    /// Values of the session.
    pub variables: Arc<PreparedVariables>,
    /// Type of the query, which determines its needs.
    pub query_type: QueryType,
}

impl ComposeInput {
    /// An input for a query of this type.
    pub const fn new(variables: Arc<PreparedVariables>, query_type: QueryType) -> Self {
        Self {
            variables,
            query_type,
        }
    }
}

/// A composed prompt, serialized as `oracle dev prompt --json` shows it. The default has no text, for
/// requests that bring their own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ComposedPrompt {
    /// Prompt text.
    pub content: Arc<str>,
    /// Included segments, in order.
    pub segments_included: Vec<SegmentId>,
    /// Estimated tokens.
    pub token_estimate: u64,
    /// Reports of omitted segments and cut lists.
    pub warnings: Vec<String>,
    /// SHA-256 of the text, in hex.
    #[serde(skip)]
    pub hash: String,
    /// The part of the text that is for this type of query.
    #[serde(skip)]
    pub of_type: String,
}

impl ComposedPrompt {
    /// The form that the journal keeps.
    pub fn summary(&self) -> PromptSummary {
        let segments = self.segments_included.iter();
        PromptSummary {
            hash: self.hash.clone(),
            segments_included: segments.map(SegmentId::to_string).collect(),
            token_estimate: self.token_estimate,
            warnings: self.warnings.clone(),
        }
    }
}

/// Default budget of a prompt, in estimated tokens.
pub const TOKEN_BUDGET: u64 = 8_000;

/// An immutable snapshot of prompts and their budget.
#[derive(Debug)]
pub struct Composer {
    prompts: Prompts,
    token_budget: u64,
}

impl Composer {
    /// A composer with a budget in estimated tokens.
    pub const fn new(prompts: Prompts, token_budget: u64) -> Self {
        Self {
            prompts,
            token_budget,
        }
    }

    /// Composes the prompt of a query.
    ///
    /// # Errors
    /// [`Error::PromptBudgetExceeded`] when a required segment does not fit, [`Error::Template`]
    /// when a file fails on these values.
    pub fn compose(&self, input: &ComposeInput) -> Result<ComposedPrompt, Error> {
        let shorter = |error, cut| match error {
            Error::PromptBudgetExceeded { .. } => self.fit(input, cut),
            error => Err(error),
        };
        self.fit(input, ToolDetail::Whole)
            .or_else(|error| shorter(error, ToolDetail::Needed))
            .or_else(|error| shorter(error, ToolDetail::Names))
    }

    fn fit(&self, input: &ComposeInput, cut: ToolDetail) -> Result<ComposedPrompt, Error> {
        let values = input.variables.values(input.query_type, cut);
        let mut draft = Draft {
            budget: self.token_budget,
            warnings: input.variables.warnings(input.query_type, cut),
            ..Draft::default()
        };
        let files = self.prompts.files().iter();
        for file in files.filter(|file| file.segment.is_included_for(input.query_type)) {
            let text = self.prompts.render(file, &values);
            draft.add(file, &text.map_err(Error::Template)?)?;
        }
        Ok(draft.finish())
    }
}

#[derive(Default)]
struct Draft {
    budget: u64,
    content: String,
    characters: usize,
    included: Vec<SegmentId>,
    of_type: String,
    warnings: Vec<String>,
}

impl Draft {
    /// Adds a segment, omits it with a warning, or fails if it is required.
    fn add(&mut self, file: &PromptFile, text: &str) -> Result<(), Error> {
        let (segment, presence) = (file.segment.id, file.segment.presence);
        let is_first = self.included.is_empty();
        let separator = if is_first { "" } else { SEPARATOR };
        let characters = text.chars().count();
        let whole = self.characters + separator.len() + characters;
        let (size, used, budget) = (tokens(characters), tokens(self.characters), self.budget);
        match presence {
            Presence::Required if text.is_empty() => {
                return Err(Error::Template(file.broken(None, FileFault::Blank)));
            }
            Presence::Optional if text.is_empty() => {
                self.warnings.push(format!(
                    "omitted segment `{segment}`: its file renders to nothing"
                ));
            }
            Presence::Required if tokens(whole) > budget => {
                return Err(Error::PromptBudgetExceeded {
                    segment,
                    file: file.segment.file.to_owned(),
                    tokens: size,
                    used,
                    budget,
                });
            }
            Presence::Optional if tokens(whole) > budget => {
                self.warnings.push(format!(
                    "omitted segment `{segment}`: {size} tokens after {used} exceed the token \
                     budget of {budget}: shorten its file, or those before it"
                ));
            }
            Presence::Required | Presence::Optional => {
                self.content.push_str(separator);
                self.content.push_str(text);
                self.characters = whole;
                self.included.push(segment);
                if file.segment.included != Inclusion::Always {
                    self.of_type.push_str(text);
                }
            }
        }
        Ok(())
    }

    fn finish(self) -> ComposedPrompt {
        ComposedPrompt {
            hash: hex(&Sha256::digest(&self.content)),
            content: self.content.into(),
            segments_included: self.included,
            of_type: self.of_type,
            token_estimate: tokens(self.characters),
            warnings: self.warnings,
        }
    }
}

#[cfg(test)]
mod tests;
