//! Parses chat input as a question or a command.
//!
//! A message of one line is a command if its first word is a slash followed only by letters,
//! digits, `-`, `_` and `?`. A path (`/etc/hosts what is this`) contains another slash or a full
//! stop and is a question. Two slashes begin a question that begins with one.

use strsim::osa_distance;

use crate::model::{QueryId, SessionName};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ChatInput {
    Blank,
    Question(String),
    Command(ChatCommand),
    Mistake(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ChatCommand {
    Help,
    /// Explains a query; the last one if none is named.
    Why(Option<QueryId>),
    Usage,
    Sessions,
    Resume(SessionName),
    New,
    Quit,
}

/// The commands in `/help`: name, argument, description.
pub(super) const ALL: [(&str, &str, &str); 7] = [
    ("/help", "", "list the commands"),
    (
        "/why",
        "[N]",
        "explain how the last question, or question N, was answered",
    ),
    ("/usage", "", "show the tokens and cost of this session"),
    ("/sessions", "", "list the most recent sessions"),
    ("/resume", "ID", "continue another session"),
    ("/new", "", "start a new session"),
    ("/quit", "", "exit, like Ctrl-D"),
];

impl ChatInput {
    pub(super) fn read(typed: &str) -> Self {
        let text = typed.trim();
        if text.is_empty() {
            return Self::Blank;
        }
        if text.lines().nth(1).is_some() || !text.starts_with('/') {
            return Self::Question(typed.to_owned());
        }
        if let Some(escaped) = text.strip_prefix('/').filter(|rest| rest.starts_with('/')) {
            return Self::Question(escaped.to_owned());
        }
        let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let in_a_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '?');
        if !name.chars().skip(1).all(in_a_name) {
            return Self::Question(typed.to_owned());
        }
        let rest = rest.trim();
        let command = match name {
            "/help" => alone(rest, ChatCommand::Help),
            "/why" => why(rest),
            "/usage" => alone(rest, ChatCommand::Usage),
            "/sessions" => alone(rest, ChatCommand::Sessions),
            "/resume" => resume(rest),
            "/new" => alone(rest, ChatCommand::New),
            "/quit" => alone(rest, ChatCommand::Quit),
            _ => Err(unknown(name)),
        };
        command.map_or_else(Self::Mistake, Self::Command)
    }
}

fn unknown(name: &str) -> String {
    let near = nearest(name);
    let near = near.map_or_else(String::new, |near| format!("did you mean `{near}`? "));
    format!(
        "unknown command `{name}`: {near}type `/help` for a list, or `/{name}` to ask it as a \
         question"
    )
}

/// The command that was probably meant, if its edit distance is small for its length.
fn nearest(name: &str) -> Option<&'static str> {
    let slips = |known: &str| osa_distance(known, name);
    let near = ALL.iter().map(|known| known.0);
    let near = near.filter(|known| slips(known) <= (known.len() / 3).max(1));
    near.min_by_key(|known| slips(known))
}

fn alone(rest: &str, command: ChatCommand) -> Result<ChatCommand, String> {
    match rest {
        "" => Ok(command),
        _ => Err(format!("the command takes no argument, but got `{rest}`")),
    }
}

fn why(rest: &str) -> Result<ChatCommand, String> {
    let number = rest.strip_prefix('#').unwrap_or(rest);
    match (rest, number.parse()) {
        ("", _) => Ok(ChatCommand::Why(None)),
        (_, Ok(number)) => Ok(ChatCommand::Why(Some(QueryId(number)))),
        (_, Err(_)) => Err(format!(
            "`{rest}` is not a question number of this session: use `/why` for the last question, \
             `/why 1` for the first"
        )),
    }
}

fn resume(rest: &str) -> Result<ChatCommand, String> {
    match rest {
        "" => Err("missing session id: use `/resume ID`; `/sessions` lists the ids".to_owned()),
        _ => match SessionName::new(rest) {
            Ok(name) => Ok(ChatCommand::Resume(name)),
            Err(error) => Err(error.to_string()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typed_text_is_parsed_as_question_or_command() {
        let question = |text: &str| ChatInput::Question(text.to_owned());
        let command = ChatInput::Command;
        for (typed, message) in [
            ("", ChatInput::Blank),
            (" \t\n", ChatInput::Blank),
            ("where is it?", question("where is it?")),
            ("  where\nis it? ", question("  where\nis it? ")),
            ("/help", command(ChatCommand::Help)),
            ("  /help ", command(ChatCommand::Help)),
            ("/why", command(ChatCommand::Why(None))),
            ("/why 3", command(ChatCommand::Why(Some(QueryId(3))))),
            ("/why #12", command(ChatCommand::Why(Some(QueryId(12))))),
            ("/usage", command(ChatCommand::Usage)),
            ("/sessions", command(ChatCommand::Sessions)),
            (
                "/resume\tshop-1",
                command(ChatCommand::Resume(SessionName::new("shop-1").unwrap())),
            ),
            ("/new", command(ChatCommand::New)),
            ("/quit", command(ChatCommand::Quit)),
            // A question can begin with a path.
            (
                "/etc/hosts what is this",
                question("/etc/hosts what is this"),
            ),
            ("/Makefile.am: why?", question("/Makefile.am: why?")),
            ("/é", question("/é")),
            // Two slashes become one.
            ("//help", question("/help")),
            (" //usr what is in it?", question("/usr what is in it?")),
            ("///", question("//")),
            // Several lines are no command.
            ("/help\n/why", question("/help\n/why")),
            ("//a\n//b", question("//a\n//b")),
        ] {
            assert_eq!(ChatInput::read(typed), message, "{typed:?}");
        }
    }

    #[test]
    fn mistyped_command_suggests_the_nearest() {
        let listed = |name: &str, near: &str| {
            format!(
                "unknown command `{name}`: {near}type `/help` for a list, or `/{name}` to ask it \
                 as a question"
            )
        };
        for (typed, said) in [
            ("/hlep", listed("/hlep", "did you mean `/help`? ")),
            ("/session", listed("/session", "did you mean `/sessions`? ")),
            ("/why?", listed("/why?", "did you mean `/why`? ")),
            ("/usr what is in it?", listed("/usr", "")),
            ("/", listed("/", "")),
            (
                "/quit now",
                "the command takes no argument, but got `now`".to_owned(),
            ),
            (
                "/why not",
                "`not` is not a question number of this session: use `/why` for the last \
                 question, `/why 1` for the first"
                    .to_owned(),
            ),
            (
                "/resume",
                "missing session id: use `/resume ID`; `/sessions` lists the ids".to_owned(),
            ),
            (
                "/resume a b",
                SessionName::new("a b").unwrap_err().to_string(),
            ),
        ] {
            assert_eq!(
                ChatInput::read(typed),
                ChatInput::Mistake(said),
                "{typed:?}"
            );
        }
    }
}
