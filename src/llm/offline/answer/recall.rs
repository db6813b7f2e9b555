//! What is said about the conversation itself: from its messages alone, since no file has them.

use super::{
    super::{
        conversation::Conversation,
        lexicon::Recall,
        protocol::{Percent, Stand, inert, shortened},
    },
    Said,
};

/// Longest question that is said again, in characters.
const LONGEST: usize = 300;

/// The reply to a question about what was said before.
pub(super) fn compose(conversation: &Conversation<'_>, recall: Recall) -> Said {
    let quoted = |question: &String| format!("“{}”", shortened(&inert(question), LONGEST));
    let asked = conversation.earlier.iter().map(quoted);
    match (recall, conversation.earlier.first()) {
        (Recall::Question, Some(last)) => whole(format!("You asked: {}.", quoted(last))),
        (Recall::Question | Recall::Everything, None) => lacking(
            "You asked nothing before this, as far as I have the conversation.",
            "an earlier question in this conversation",
        ),
        (Recall::Everything, Some(_)) => {
            let lines: Vec<String> = asked
                .rev()
                .map(|question| format!("- {question}"))
                .collect();
            let list = lines.join("\n");
            lacking(
                &format!(
                    "You asked, in this order:\n\n{list}\n\nI only quote; a summary takes a configured model."
                ),
                "a summary of the answers: the offline model quotes, and a configured model is needed",
            )
        }
        (Recall::Again, _) => match &conversation.answer {
            Some((answer, is_whole)) => again(answer, *is_whole),
            None => lacking(
                "I said nothing before this, as far as I have the conversation.",
                "an earlier answer in this conversation",
            ),
        },
        (Recall::Otherwise, _) => lacking(
            "I only quote what stands in the files, as it stands there. To put an answer otherwise takes a \
             configured model; a question about a part of it I can look up.",
            "the answer in other words: a configured model is needed",
        ),
    }
}

/// What was quoted may have changed since.
fn again(answer: &str, is_whole: bool) -> Said {
    let missing = match is_whole {
        true => "a look at the files as they are now",
        false => "what that answer lacked before, and a look at the files as they are now",
    };
    let stand = Stand::Partial {
        missing: missing.to_owned(),
        caveat: Some("this is the earlier answer as it was said then".to_owned()),
    };
    (answer.to_owned(), stand, Percent(60))
}

fn whole(text: String) -> Said {
    let stand = Stand::Sufficient {
        sources_found: 0,
        source_types: vec![],
    };
    (text, stand, Percent(90))
}

fn lacking(text: &str, missing: &str) -> Said {
    let stand = Stand::Partial {
        missing: missing.to_owned(),
        caveat: None,
    };
    (text.to_owned(), stand, Percent(60))
}
