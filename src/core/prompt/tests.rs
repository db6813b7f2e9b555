//! Small prompts and tools for tests.

use std::{fs, sync::Arc};

use super::{ComposeInput, Composer, Error, Prompts, SegmentId, ToolLine, Variables};
use crate::model::{QueryType, tool::ToolNeed};

/// Required segments so short that sizes can be counted by hand.
pub(super) const SHORT: [(&str, &str); 3] = [
    ("base.md", "base"),
    ("signals.md", "signals"),
    ("tools-reference.md", "tools"),
];

pub(super) fn prompts(files: &[(&str, &str)]) -> Result<Prompts, Error> {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    Prompts::with_overlay(folder.path())
}

pub(super) fn composer(files: &[(&str, &str)], token_budget: u64) -> Composer {
    let files = [&SHORT, files].concat();
    Composer::new(prompts(&files).unwrap(), token_budget)
}

/// A tool whose summary has 40 characters.
pub(super) fn tool(name: &str, serves: ToolNeed) -> ToolLine {
    ToolLine {
        name: name.to_owned(),
        summary: "x".repeat(40),
        serves,
    }
}

pub(super) fn query(query_type: QueryType, tools: &[ToolLine]) -> ComposeInput {
    let variables = Variables {
        tools: tools.to_vec(),
        ..Variables::default()
    };
    ComposeInput::new(Arc::new(variables.prepare()), query_type)
}

pub(super) const REQUIRED: [SegmentId; 3] = [SegmentId::Base, SegmentId::Signals, SegmentId::Tools];
