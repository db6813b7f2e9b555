//! What most programs that embed Oracle need: `use oracle_agent::prelude::*;`

pub use futures_util::{StreamExt as _, TryStreamExt as _};

pub use crate::{
    actor::{
        Answer, AskError, Detail, Filter, Frames, Notice, Oracle, Progress, SessionHandle, System,
        Watch,
    },
    llm::Scripted,
    model::{
        Outcome, Seq, SessionKey, SessionName, Submission,
        record::{Fact, QueryFact, ToolFact, TurnFact},
    },
    tool::{FnTool, Tool, ToolContext, ToolError, ToolOutput, tool_fn},
};
