//! Composes a prompt within its token budget.
//!
//! An optional segment that does not fit is omitted. For a required one, composition starts again
//! with a shorter tool list: the tools of the classified needs, then bare names; then it fails.
//! Optional segments never shorten the list.
//!
//! **Invariant:** the estimate covers the whole rendered content, separators included.

use std::{fmt::Write, sync::Arc};

use serde::Serialize;
use sha2::{Digest, Sha256};

use super::{
    error::Error,
    files::PromptFile,
    segment::{Presence, SegmentId},
    settings::Settings,
    template::Prompts,
    tokens,
    variables::{Prepared, ToolCut},
    warning::Warning,
};
use crate::model::{QueryType, record::PromptSummary};

/// Separates segments.
pub const SEPARATOR: &str = "\n\n---\n\n";

/// The input of a composition.
#[derive(Debug, Clone)]
pub struct ComposeInput {
    /// The session's values.
    pub variables: Arc<Prepared>,
    /// The type of the query, which determines its needs.
    pub query_type: QueryType,
    /// Optional segments besides those of the type.
    pub extra_segments: Vec<SegmentId>,
}

impl ComposeInput {
    /// An input without extra segments.
    #[must_use]
    pub const fn new(variables: Arc<Prepared>, query_type: QueryType) -> Self {
        Self {
            variables,
            query_type,
            extra_segments: Vec::new(),
        }
    }
}

/// A composed prompt, serialized as `oracle prompt --json` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ComposedPrompt {
    /// The text.
    pub content: Arc<str>,
    /// Its segments, in order.
    pub segments_included: Vec<SegmentId>,
    /// Estimated tokens.
    pub token_estimate: u64,
    /// What was omitted or cut.
    pub warnings: Vec<Warning>,
    /// SHA-256 of the text, in hex.
    #[serde(skip)]
    pub hash: String,
}

impl ComposedPrompt {
    /// Its journaled form.
    #[must_use]
    pub fn summary(&self) -> PromptSummary {
        PromptSummary {
            hash: self.hash.clone(),
            segments_included: self
                .segments_included
                .iter()
                .map(SegmentId::to_string)
                .collect(),
            token_estimate: self.token_estimate,
            warnings: self.warnings.iter().map(Warning::to_string).collect(),
        }
    }
}

/// An immutable snapshot of prompts and settings.
#[derive(Debug)]
pub struct Composer {
    prompts: Prompts,
    settings: Settings,
}

impl Composer {
    /// A composer of these prompts.
    ///
    /// # Errors
    /// [`Error::Settings`] when a setting is out of range.
    pub fn new(prompts: Prompts, settings: Settings) -> Result<Self, Error> {
        settings.validate().map_err(Error::Settings)?;
        Ok(Self { prompts, settings })
    }

    /// Its files.
    #[must_use]
    pub const fn prompts(&self) -> &Prompts {
        &self.prompts
    }

    /// Its settings.
    #[must_use]
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Composes the prompt of a query.
    ///
    /// # Errors
    /// [`Error::PromptBudgetExceeded`] when a required segment does not fit, [`Error::Template`]
    /// when a file fails on these values.
    pub fn compose(&self, input: &ComposeInput) -> Result<ComposedPrompt, Error> {
        let shorter = |error: Error, cut| {
            if error.is_over_budget() {
                self.fit(input, cut)
            } else {
                Err(error)
            }
        };
        self.fit(input, ToolCut::Whole)
            .or_else(|error| shorter(error, ToolCut::Needed))
            .or_else(|error| shorter(error, ToolCut::Names))
    }

    fn fit(&self, input: &ComposeInput, cut: ToolCut) -> Result<ComposedPrompt, Error> {
        let values = input.variables.values(input.query_type, cut);
        let mut draft = Draft::new(self.settings.token_budget);
        draft.warnings = input.variables.warnings(input.query_type, cut);
        for file in self.selected(input) {
            let text = self
                .prompts
                .render(file, &values)
                .map_err(Error::Template)?;
            draft.add(file, &text)?;
        }
        Ok(draft.finish())
    }

    fn selected(&self, input: &ComposeInput) -> impl Iterator<Item = &PromptFile> {
        self.prompts.files().iter().filter(|file| {
            file.segment.is_included_for(input.query_type)
                || input.extra_segments.contains(&file.segment.id)
        })
    }
}

struct Draft {
    budget: u64,
    content: String,
    characters: usize,
    included: Vec<SegmentId>,
    warnings: Vec<Warning>,
}

impl Draft {
    const fn new(budget: u64) -> Self {
        Self {
            budget,
            content: String::new(),
            characters: 0,
            included: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Adds a segment, omits it with a warning, or fails if it is required.
    fn add(&mut self, file: &PromptFile, text: &str) -> Result<(), Error> {
        let (segment, presence) = (file.segment.id, file.segment.presence);
        let separator = if self.included.is_empty() {
            ""
        } else {
            SEPARATOR
        };
        let characters = text.chars().count();
        let whole = self.characters + separator.len() + characters;
        let (size, used, budget) = (tokens(characters), tokens(self.characters), self.budget);
        match presence {
            Presence::Required if text.is_empty() => {
                return Err(Error::Template(file.blank()));
            }
            Presence::Optional if text.is_empty() => {
                self.warnings.push(Warning::SegmentBlank { segment });
            }
            Presence::Required if tokens(whole) > budget => {
                let file = file.segment.file.to_owned();
                let tokens = size;
                return Err(Error::PromptBudgetExceeded {
                    segment,
                    file,
                    tokens,
                    used,
                    budget,
                });
            }
            Presence::Optional if tokens(whole) > budget => {
                let left_out = Warning::SegmentLeftOut {
                    segment,
                    tokens: size,
                    used,
                    budget,
                };
                self.warnings.push(left_out);
            }
            Presence::Required | Presence::Optional => {
                self.content.push_str(separator);
                self.content.push_str(text);
                self.characters = whole;
                self.included.push(segment);
            }
        }
        Ok(())
    }

    fn finish(self) -> ComposedPrompt {
        ComposedPrompt {
            hash: hex(&Sha256::digest(&self.content)),
            content: self.content.into(),
            segments_included: self.included,
            token_estimate: tokens(self.characters),
            warnings: self.warnings,
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
}

#[cfg(test)]
mod tests;
