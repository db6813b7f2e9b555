//! The variables `project_name`, `project_context`, `max_turns`, `tools`, `sub_agents` and
//! `query_type`.
//!
//! Values are data: joined into one line where needed, capped, and escaped where they resemble a
//! signal or the end of their block. A [`ToolLine`] has no schema, so prompts contain none.
//!
//! **Invariant:** a [`PreparedVariables`] never changes, and its fingerprint identifies it.

use minijinja::{context, value::Value};
use sha2::{Digest, Sha256};

use super::tokens;
use crate::{
    model::{Needs, QueryType, ToolSpec, tool::ToolNeed},
    signal::{escape, escape_where},
};

/// Cap of the project context, in estimated tokens.
pub const PROJECT_CONTEXT_TOKENS: u64 = 2_000;
/// The tag around the context.
const CONTEXT: &[u8] = b"project_context";
const PROJECT_CONTEXT_CHARACTERS: usize = 4 * PROJECT_CONTEXT_TOKENS as usize;

/// Tells the model that the context was cut.
const CUT_MARK: &str = "\n[cut here]";

/// Names that templates may use.
pub(super) const NAMES: [&str; 7] = [
    "project_name",
    "project_context",
    "max_turns",
    "tools",
    "has_web",
    "sub_agents",
    "query_type",
];

/// A session's values for templates.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Variables {
    /// Project name.
    pub project_name: String,
    /// Project context, cut to [`PROJECT_CONTEXT_TOKENS`].
    pub project_context: String,
    /// Turn budget of a query.
    pub max_turns: Option<u32>,
    /// Tools, in the profile's order.
    pub tools: Vec<ToolLine>,
    /// Types of sub-agents, with their descriptions; empty if there are none to choose from.
    pub sub_agents: Vec<(String, String)>,
}

/// A tool as the prompt lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolLine {
    /// Tool name, as the model calls it.
    pub name: String,
    /// First sentence of the description.
    pub summary: String,
    /// Need that the tool serves.
    pub serves: ToolNeed,
}

impl From<&ToolSpec> for ToolLine {
    fn from(spec: &ToolSpec) -> Self {
        Self {
            name: spec.name.clone(),
            summary: spec.summary(),
            serves: spec.serves,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ToolDetail {
    Whole,
    /// Tools of the classified needs, and general ones.
    Needed,
    /// Bare names of those tools.
    Names,
}

/// [`Variables`] prepared for all queries of a session.
#[derive(Debug, Clone)]
pub struct PreparedVariables {
    variables: Variables,
    /// The warning that the project context was cut.
    cut: Option<String>,
    fingerprint: [u8; 32],
}

impl Variables {
    /// Escapes and caps the values.
    pub fn prepare(&self) -> PreparedVariables {
        let project_context = self.project_context.replace("\r\n", "\n");
        let (project_context, cut) = cap(&neutralize(project_context.trim()));
        let tools = self.tools.iter().map(|tool| ToolLine {
            name: as_line(&tool.name),
            summary: as_line(&tool.summary),
            serves: tool.serves,
        });
        let sub_agents = self.sub_agents.iter();
        let sub_agents = sub_agents.map(|(name, about)| (as_line(name), as_line(about)));
        let variables = Self {
            project_name: as_line(&self.project_name),
            project_context,
            max_turns: self.max_turns,
            tools: tools.collect(),
            sub_agents: sub_agents.collect(),
        };
        // Field names and quotes keep different values apart.
        let fingerprint = Sha256::digest(format!("{variables:?}{cut:?}")).into();
        PreparedVariables {
            variables,
            cut,
            fingerprint,
        }
    }
}

impl PreparedVariables {
    /// Equal only for equal values.
    pub(super) const fn fingerprint(&self) -> [u8; 32] {
        self.fingerprint
    }

    pub(super) fn values(&self, query_type: QueryType, cut: ToolDetail) -> Value {
        let needs = query_type.needs();
        let tools = self.tools(needs, cut).map(|tool| {
            let summary = match cut {
                ToolDetail::Whole | ToolDetail::Needed => tool.summary.as_str(),
                ToolDetail::Names => "",
            };
            context! {
                name => tool.name.as_str(),
                summary => summary,
                needed => is_needed(tool, needs),
            }
        });
        context! {
            project_name => self.variables.project_name.as_str(),
            project_context => self.variables.project_context.as_str(),
            max_turns => self.variables.max_turns.map_or_else(|| Value::from(""), Value::from),
            tools => tools.collect::<Vec<_>>(),
            has_web => self.tools(needs, cut).any(|tool| tool.serves == ToolNeed::Web),
            sub_agents => self.variables.sub_agents.clone(),
            query_type => query_type.as_str(),
        }
    }

    /// What the cut of the tool list lost.
    pub(super) fn warnings(&self, query_type: QueryType, cut: ToolDetail) -> Vec<String> {
        let mut warnings: Vec<_> = self.cut.iter().cloned().collect();
        let kept = self.tools(query_type.needs(), cut).count();
        let of = self.variables.tools.len();
        if kept < of {
            warnings.push(format!(
                "tool list cut to the {kept} of {of} tools that serve this type of query, to stay \
                 within the token budget"
            ));
        }
        if cut == ToolDetail::Names {
            warnings.push(format!(
                "tool list cut to the bare names of {kept} tools, to stay within the token budget"
            ));
        }
        warnings
    }

    fn tools(&self, needs: Needs, cut: ToolDetail) -> impl Iterator<Item = &ToolLine> {
        self.variables.tools.iter().filter(move |tool| match cut {
            ToolDetail::Whole => true,
            ToolDetail::Needed | ToolDetail::Names => {
                is_needed(tool, needs) || tool.serves == ToolNeed::General
            }
        })
    }
}

const fn is_needed(tool: &ToolLine, needs: Needs) -> bool {
    match tool.serves {
        ToolNeed::Code => needs.needs_code,
        ToolNeed::Vault => needs.needs_vault,
        ToolNeed::Web => needs.needs_web,
        ToolNeed::General => false,
    }
}

/// Samples for every query type, with all variables set and with none.
pub(super) fn sample_values() -> Vec<Value> {
    let tool = |name: &str, summary: &str, serves| ToolLine {
        name: name.to_owned(),
        summary: summary.to_owned(),
        serves,
    };
    let full = Variables {
        project_name: "sample".to_owned(),
        project_context: "A sample project.".to_owned(),
        max_turns: Some(30),
        tools: vec![
            tool("code_search", "Searches the code.", ToolNeed::Code),
            tool("note_search", "Searches the notes.", ToolNeed::Vault),
            tool("web_search", "", ToolNeed::Web),
            tool(
                "thread_search",
                "Searches earlier sessions.",
                ToolNeed::General,
            ),
        ],
        sub_agents: vec![("reviewer".to_owned(), "Reviews code.".to_owned())],
    };
    let samples = [full.prepare(), Variables::default().prepare()];
    let values = |of| {
        samples
            .each_ref()
            .map(|sample| sample.values(of, ToolDetail::Whole))
    };
    QueryType::ALL.into_iter().flat_map(values).collect()
}

fn as_line(text: &str) -> String {
    neutralize(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Escapes the `<` of tags of signals, of guidance and of the context.
fn neutralize(text: &str) -> String {
    let is_context = |after: &[u8]| {
        let name = after.strip_prefix(b"/").unwrap_or(after);
        let named = name.get(..CONTEXT.len());
        named.is_some_and(|named| named.eq_ignore_ascii_case(CONTEXT))
    };
    escape_where(&escape(text), is_context).into_owned()
}

/// The cap includes [`CUT_MARK`].
fn cap(text: &str) -> (String, Option<String>) {
    if text.chars().nth(PROJECT_CONTEXT_CHARACTERS).is_none() {
        return (text.to_owned(), None);
    }
    let room = PROJECT_CONTEXT_CHARACTERS - CUT_MARK.len();
    let kept: String = text.chars().take(room).chain(CUT_MARK.chars()).collect();
    let tokens = tokens(text.chars().count());
    let warning = format!("project context cut from {tokens} to {PROJECT_CONTEXT_TOKENS} tokens");
    (kept, Some(warning))
}

#[cfg(test)]
mod tests;
