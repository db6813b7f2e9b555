//! What is said about the conversation itself: from its messages alone, since no file has them.

use super::{
    super::{
        conversation::{Answer, Conversation, MOST_EARLIER},
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
        (Recall::First, Some(_)) => {
            let first = conversation.first.iter().map(quoted).collect::<String>();
            whole(format!(
                "The first thing that you asked, as far as I have the conversation, was: {first}."
            ))
        }
        (Recall::Question, Some(last)) => whole(format!("You asked: {}.", quoted(last))),
        (Recall::Question | Recall::First | Recall::Everything, None) => lacking(
            "You asked nothing before this, as far as I have the conversation.",
            "an earlier question in this conversation",
        ),
        (Recall::Everything, Some(_)) => {
            let lines: Vec<String> = asked
                .rev()
                .map(|question| format!("- {question}"))
                .collect();
            let list = lines.join("\n");
            let begins = match conversation.earlier.len() {
                MOST_EARLIER.. => format!("Your last {MOST_EARLIER} questions, in their order"),
                _ => "You asked, in this order".to_owned(),
            };
            lacking(
                &format!(
                    "{begins}:\n\n{list}\n\nI only quote; a summary takes a configured model."
                ),
                "a summary of the answers: the offline model quotes, and a configured model is needed",
            )
        }
        (Recall::Again, _) => match conversation.answers.first() {
            Some(answer) => again(&answer.text, answer.is_whole),
            None => nothing_said(),
        },
        (Recall::Doubt, _) => match conversation.answers.first() {
            Some(answer) => doubted(answer),
            None => nothing_said(),
        },
        (Recall::Otherwise, _) => lacking(
            "I only quote what stands in the files, as it stands there. To put an answer otherwise takes a \
             configured model; a question about a part of it I can look up.",
            "the answer in other words: a configured model is needed",
        ),
    }
}

fn nothing_said() -> Said {
    lacking(
        "I said nothing before this, as far as I have the conversation.",
        "an earlier answer in this conversation",
    )
}

/// How sure the last answer is: as sure as quotes are.
fn doubted(answer: &Answer) -> Said {
    let stands = "I only quote. What I quoted stood there when I looked, and the place beside each quote can \
                  be checked; whether it answers what you meant, I cannot judge.";
    let text = match (&answer.lacking, answer.is_whole) {
        (_, true) => stands.to_owned(),
        (Some(lacking), false) => format!(
            "Not of all of it. Missing was: {}. {stands}",
            inert(lacking)
        ),
        (None, false) => "No: I found nothing that answers it.".to_owned(),
    };
    lacking(
        &text,
        "a judgement of the answer: the offline model only quotes",
    )
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
