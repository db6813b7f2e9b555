//! What is said where nothing is to be looked up.

use super::{
    super::{
        lexicon::Chat,
        protocol::{Percent, Stand},
    },
    Said,
};

/// The reply to small talk.
pub(super) fn chatter(chat: Chat) -> Said {
    let text = match chat {
        Chat::Identity => {
            "I am Oracle's offline model. I look things up in your files and quote what I find, with \
             its place. Ask me where something is, or what is said about it; for explanations and \
             changes, configure a model."
        }
        Chat::Jest => {
            "I know none: I am Oracle's offline model, which looks things up in your files and quotes \
             what it finds, with its place. Ask me where something is, or what is said about it."
        }
        Chat::Misunderstood => {
            "Then I took it wrong. Say it in other words, or name a file, a function or the text of an \
             error."
        }
        Chat::Thanks => "You are welcome.",
        Chat::Farewell => "Goodbye.",
        Chat::Greeting => "Hello! What shall I look up for you?",
        Chat::Praise => "I am glad of that. What shall I look up next?",
        Chat::Acknowledgement => "All right. What shall I look up next?",
    };
    let stand = Stand::Sufficient {
        sources_found: 0,
        source_types: vec![],
    };
    (text.to_owned(), stand, Percent(90))
}

/// The reply to a question without a word of its own.
pub(super) fn wordless() -> Said {
    let text = "The question names nothing that I could look for. Name a file, a function, the \
                text of an error or a topic.";
    let missing = "a word to look for: the question has none of its own".to_owned();
    let stand = Stand::Partial {
        missing,
        caveat: None,
    };
    (text.to_owned(), stand, Percent(60))
}
