//! Sections of the parts that a turn uses: prompts, classification, tools, models (spec 4, 5, 11, 12).

use serde::{Deserialize, Serialize};

use super::{
    profile,
    value::{Count, FilePath, Instructions, ModelChain, OneModel, SECOND, Share, Span, ToolName},
};

/// `[prompt]`: what the model is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Prompt {
    /// A folder whose files replace the built-in segments of the same name.
    pub dir: Option<FilePath>,
    /// A file with what every model is to know of the project; its first 2,000 tokens are told.
    pub context: Option<FilePath>,
    /// What every model is told besides.
    pub instructions: Option<Instructions>,
    /// Most tokens of a composed prompt, by the estimate of spec 5.
    pub token_budget: Count<1, 1_000_000>,
}

impl Default for Prompt {
    fn default() -> Self {
        Self {
            dir: None,
            context: None,
            instructions: None,
            token_budget: Count::of::<8_000>(),
        }
    }
}

/// `[query]`: what a query is taken for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Query {
    /// A file with words and phrases that replaces the built-in one.
    pub lexicon: Option<FilePath>,
    /// One that is laid over it: adds entries, and changes or switches off those that it names.
    pub lexicon_overlay: Option<FilePath>,
    /// A file with what was learned from labelled queries, in place of the built-in one.
    pub weights: Option<FilePath>,
    /// Where the classifier is less sure than this, a model is asked; none is, if it is not set.
    pub second_opinion_below: Option<Share>,
    /// Which model; the first of the chain, if it is not set.
    pub second_opinion_model: Option<OneModel>,
    /// How long is waited for it; then the classifier's word stands.
    pub second_opinion_deadline: Span<100, { 60 * SECOND }>,
}

impl Default for Query {
    fn default() -> Self {
        Self {
            lexicon: None,
            lexicon_overlay: None,
            weights: None,
            second_opinion_below: None,
            second_opinion_model: None,
            second_opinion_deadline: Span::of::<{ 5 * SECOND }>(),
        }
    }
}

/// `[tools]`: what tools may use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tools {
    /// How long one call may take.
    pub call_deadline: Span<{ SECOND }, { 3_600 * SECOND }>,
    /// How long one search may take; one over files then answers with what it has, after a minute at
    /// the latest.
    pub search_deadline: Span<100, { 600 * SECOND }>,
    /// Most calls of one turn that run at the same time.
    pub max_parallel: Count<1, 64>,
    /// Largest file that is searched, in bytes.
    pub max_file_bytes: Count<1_024, 67_108_864>,
    /// Tokens of a map of the project where a call names no number.
    pub map_tokens: Count<200, 16_000>,
    /// The tools that conversations have; all but those of `attachable`, if it is not set.
    #[serde(deserialize_with = "profile::some_tools")]
    pub only: Option<Vec<ToolName>>,
    /// Tools that a conversation can be given besides, one by one.
    #[serde(deserialize_with = "profile::tools")]
    pub attachable: Vec<ToolName>,
}

impl Default for Tools {
    fn default() -> Self {
        Self {
            call_deadline: Span::of::<{ 30 * SECOND }>(),
            search_deadline: Span::of::<{ 10 * SECOND }>(),
            max_parallel: Count::of::<8>(),
            max_file_bytes: Count::of::<1_048_576>(),
            map_tokens: Count::of::<2_000>(),
            only: None,
            attachable: Vec::new(),
        }
    }
}

/// `[notes]`: what is written down, and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Notes {
    /// The folder of the notes; a relative path starts at the project. The project itself, if it is not set.
    pub dir: Option<FilePath>,
    /// Whether notes may be written; each time a person is asked.
    pub write: bool,
    /// Most notes that are kept ready to be searched.
    pub max_files: Count<1, 200_000>,
    /// Most bytes of notes that are kept ready.
    pub max_bytes: Count<1_024, 1_073_741_824>,
}

impl Default for Notes {
    fn default() -> Self {
        Self {
            dir: None,
            write: false,
            max_files: Count::of::<20_000>(),
            max_bytes: Count::of::<67_108_864>(),
        }
    }
}

/// `[model]`: who is asked, how often and how long.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Model {
    /// Which models, the first choice first, the others for when it fails. Where it is not set, what
    /// there is a key for; see [`Config::choice`](super::Config::choice).
    pub chain: Option<ModelChain>,
    /// Most tries of a turn with one model before the next of the chain.
    pub attempts: Count<1, 10>,
    /// How long a query waits for a server that is away, where no other model can be asked; five minutes, if
    /// it is not set, and ten seconds for `ask` at a terminal.
    pub patience: Option<Span<100, { 3_600 * SECOND }>>,
    /// How long a try may take to a connection.
    pub connect_deadline: Span<100, { 300 * SECOND }>,
    /// How long a try may take from there to the headers of the answer.
    pub headers_deadline: Span<{ SECOND }, { 3_600 * SECOND }>,
    /// How long a try may take to its first token.
    pub first_token_deadline: Span<{ SECOND }, { 3_600 * SECOND }>,
    /// How long a try may pause between two tokens.
    pub idle_deadline: Span<{ SECOND }, { 3_600 * SECOND }>,
    /// How long a try may take as a whole.
    pub total_deadline: Span<{ SECOND }, { 3_600 * SECOND }>,
}

impl Default for Model {
    fn default() -> Self {
        Self {
            chain: None,
            attempts: Count::of::<3>(),
            patience: None,
            connect_deadline: Span::of::<{ 10 * SECOND }>(),
            headers_deadline: Span::of::<{ 60 * SECOND }>(),
            first_token_deadline: Span::of::<{ 60 * SECOND }>(),
            idle_deadline: Span::of::<{ 60 * SECOND }>(),
            total_deadline: Span::of::<{ 600 * SECOND }>(),
        }
    }
}
