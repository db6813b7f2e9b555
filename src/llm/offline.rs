//! The offline model: answers without any network, by the same protocol and tools as any other.
//!
//! It sees what a model sees (messages and tool list) and nothing else: it asks for tools, reads their
//! results, ends each reply with a signal, and answers with the best passages and their places. It
//! quotes; it does not explain, and it changes nothing.
//!
//! **Invariant:** a reply is a pure function of the request, so a restarted attempt replies the same.
//! What stands in questions and results is looked for and quoted, never obeyed.
//!
//! | file | what it does |
//! |---|---|
//! | `conversation` | what of the messages is the query at hand |
//! | `question`, `interest`, `lexicon`, `term`, `words` | what is asked, and where to look it up |
//! | `toolbox`, `plan` | what to ask of tools next |
//! | `evidence`, `source`, `uses`, `kin`, `members`, `rank` | what they brought, and what of it is best |
//! | `changelog` | what logs of changes say |
//! | `manifest`, `commands`, `howto` | what a project says of itself, and how it is built |
//! | `presence` | whether a file is there |
//! | `answer`, `quote`, `stuck`, `protocol` | the reply |

use futures_util::{FutureExt, StreamExt, stream};

use super::{
    Backend, DeltaStream, Request, ToolChoice, estimate_usage,
    pieces::{self, Cut},
};
use crate::model::{CallId, Fault, FaultClass, Part, Reply, StopReason, ToolCall, ToolSpec};

mod answer;
mod changelog;
mod commands;
mod conversation;
mod evidence;
mod howto;
mod interest;
mod kin;
mod lexicon;
mod manifest;
mod members;
mod plan;
mod presence;
mod protocol;
mod question;
mod quote;
mod rank;
mod source;
mod stuck;
mod term;
mod toolbox;
mod uses;
mod words;

use answer::Case;
use conversation::Conversation;
use evidence::{Evidence, One};
use question::Question;
use rank::Ranking;
use stuck::Means;
use toolbox::Toolbox;

/// The provider's name and the model's.
pub const OFFLINE: &str = "offline";

/// A [`Backend`] that needs nothing but tools; see the module for its rules.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Offline;

impl Backend for Offline {
    fn provider(&self) -> &'static str {
        OFFLINE
    }

    fn call(&self, request: Request) -> DeltaStream {
        // Reading long results takes milliseconds, which no worker of the runtime should spend.
        let work = async move { tokio::task::spawn_blocking(move || reply(&request)).await };
        let items = FutureExt::map(work, |replied| match replied {
            Ok(reply) => pieces::of_reply(reply, Cut::Words),
            Err(error) => vec![Err(broken(&error.to_string()))],
        });
        stream::once(items).flat_map(stream::iter).boxed()
    }
}

fn broken(why: &str) -> Fault {
    let detail = format!("the offline model broke down: {why}");
    Fault {
        class: FaultClass::Bug,
        code: "offline".into(),
        detail,
    }
}

fn reply(request: &Request) -> Reply {
    let conversation = Conversation::read(&request.messages);
    let previous = conversation.previous.as_deref();
    let mut question = Question::read(&conversation.question, &conversation.added, previous);
    let mut evidence = Evidence::read(conversation.readable());
    question.understand(&evidence.read_as);
    question.go_on_in_days(&conversation);
    question.go_on_behind(&conversation);
    question.take_author_for_a_word(evidence.history.lacks_author);
    let one = evidence.history.one.as_ref();
    question.take_commit_for_a_word(one.is_some_and(One::is_missing));
    evidence.take_in_notes(&question.terms, question.interest);
    evidence.take_in_lines(&question.terms);
    let ranking = Ranking::of(&evidence, &question.terms, question.sought());
    let offered: &[ToolSpec] = match request.tool_choice {
        ToolChoice::Auto => &request.tools,
        ToolChoice::None => &[],
    };
    let tools = Toolbox::of(offered, &conversation.asked);
    let plan = plan::next(&conversation, &question, &evidence, &ranking, &tools);
    let (parts, stop) = match plan {
        Some(plan) => {
            let calls = plan.calls.into_iter().enumerate().map(|(at, call)| {
                Part::ToolCall(ToolCall {
                    id: CallId::new(&conversation.call_id(at)),
                    name: call.name,
                    arguments: call.arguments.to_string(),
                })
            });
            (
                [Part::text(plan.text)].into_iter().chain(calls).collect(),
                StopReason::ToolCalls,
            )
        }
        None => {
            let means = Means::of(request, &conversation.asked);
            let case = Case {
                conversation: &conversation,
                question: &question,
                evidence: &evidence,
                ranking: &ranking,
                means,
            };
            (
                vec![Part::text(answer::compose(&case))],
                StopReason::EndTurn,
            )
        }
    };
    let usage = estimate_usage(request, &parts);
    Reply {
        parts,
        stop,
        usage,
        model: format!("{OFFLINE}/{OFFLINE}"),
    }
}

#[cfg(test)]
mod tests;
