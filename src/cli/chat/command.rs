//! What somebody has typed into a chat: a question, or a command of the chat itself.
//!
//! A message of one line is a command if its first word is a slash and then nothing but letters, digits,
//! `-`, `_` and `?`. A path (`/etc/hosts what is this`) has another slash or a full stop in it, and is a
//! question like any other. What begins with two slashes is a question that begins with one.

use strsim::osa_distance;

use crate::model::{QueryId, SessionName};

/// What somebody has typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Message {
    /// Nothing at all.
    Blank,
    /// To be asked, as it stands here.
    Question(String),
    /// To be done here.
    Command(Command),
    /// Meant as a command, and none; what is wrong, and what may help.
    Mistake(String),
}

/// A command of the chat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Command {
    /// Which there are.
    Help,
    /// What became of a question, and why; of the last one if none is named.
    Why(Option<QueryId>),
    /// What this session has used.
    Usage,
    /// The sessions that were used last.
    Sessions,
    /// Goes on with another session.
    Resume(SessionName),
    /// Begins a new session.
    New,
    /// Leaves.
    Quit,
}

/// How a command is written, and what it does.
pub(super) struct Described {
    /// With the slash.
    pub(super) name: &'static str,
    /// What follows it.
    pub(super) argument: &'static str,
    /// In a few words.
    pub(super) about: &'static str,
    read: fn(&str) -> Result<Command, String>,
}

/// All of them, as `/help` lists them.
pub(super) const ALL: &[Described] = &[
    Described {
        name: "/help",
        argument: "",
        about: "what can be typed here",
        read: |rest| alone(rest, Command::Help),
    },
    Described {
        name: "/why",
        argument: "[N]",
        about: "what became of the last question, or of question N, and why",
        read: why,
    },
    Described {
        name: "/usage",
        argument: "",
        about: "tokens and money of this session",
        read: |rest| alone(rest, Command::Usage),
    },
    Described {
        name: "/sessions",
        argument: "",
        about: "the sessions that were used last",
        read: |rest| alone(rest, Command::Sessions),
    },
    Described {
        name: "/resume",
        argument: "ID",
        about: "go on with another session",
        read: resume,
    },
    Described {
        name: "/new",
        argument: "",
        about: "begin a new session",
        read: |rest| alone(rest, Command::New),
    },
    Described {
        name: "/quit",
        argument: "",
        about: "leave, as Ctrl-D does",
        read: |rest| alone(rest, Command::Quit),
    },
];

impl Message {
    /// Reads what was typed.
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
        match ALL.iter().find(|known| known.name == name) {
            Some(known) => (known.read)(rest.trim()).map_or_else(Self::Mistake, Self::Command),
            None => Self::Mistake(unknown(name)),
        }
    }
}

fn unknown(name: &str) -> String {
    let near = nearest(name);
    let near = near.map_or_else(String::new, |near| format!("did you mean `{near}`? "));
    format!(
        "there is no command `{name}`: {near}`/help` lists them, and `/{name}` asks it as a question"
    )
}

/// The command that may have been meant: with few slips of the fingers for its length.
fn nearest(name: &str) -> Option<&'static str> {
    let slips = |known: &str| osa_distance(known, name);
    let near = ALL.iter().map(|known| known.name);
    let near = near.filter(|known| slips(known) <= (known.len() / 3).max(1));
    near.min_by_key(|known| slips(known))
}

fn alone(rest: &str, command: Command) -> Result<Command, String> {
    match rest {
        "" => Ok(command),
        _ => Err(format!(
            "the command takes nothing behind it, and there is `{rest}`"
        )),
    }
}

fn why(rest: &str) -> Result<Command, String> {
    let number = rest.strip_prefix('#').unwrap_or(rest);
    match (rest, number.parse()) {
        ("", _) => Ok(Command::Why(None)),
        (_, Ok(number)) => Ok(Command::Why(Some(QueryId(number)))),
        (_, Err(_)) => Err(format!(
            "`{rest}` is no question of this session: `/why` alone is about the last one, `/why 1` about \
             the first"
        )),
    }
}

fn resume(rest: &str) -> Result<Command, String> {
    match rest {
        "" => Err("which session? `/resume ID`; `/sessions` lists them".to_owned()),
        _ => match SessionName::new(rest) {
            Ok(name) => Ok(Command::Resume(name)),
            Err(error) => Err(error.to_string()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_a_question_or_a_command() {
        let question = |text: &str| Message::Question(text.to_owned());
        let command = Message::Command;
        for (typed, message) in [
            ("", Message::Blank),
            (" \t\n", Message::Blank),
            ("where is it?", question("where is it?")),
            ("  where\nis it? ", question("  where\nis it? ")),
            ("/help", command(Command::Help)),
            ("  /help ", command(Command::Help)),
            ("/why", command(Command::Why(None))),
            ("/why 3", command(Command::Why(Some(QueryId(3))))),
            ("/why #12", command(Command::Why(Some(QueryId(12))))),
            ("/usage", command(Command::Usage)),
            ("/sessions", command(Command::Sessions)),
            (
                "/resume\tshop-1",
                command(Command::Resume(SessionName::new("shop-1").unwrap())),
            ),
            ("/new", command(Command::New)),
            ("/quit", command(Command::Quit)),
            // Paths are asked about.
            (
                "/etc/hosts what is this",
                question("/etc/hosts what is this"),
            ),
            ("/Makefile.am: why?", question("/Makefile.am: why?")),
            ("/é", question("/é")),
            // Two slashes are one.
            ("//help", question("/help")),
            (" //usr what is in it?", question("/usr what is in it?")),
            ("///", question("//")),
            // What has several lines was hardly typed as a command.
            ("/help\n/why", question("/help\n/why")),
            ("//a\n//b", question("//a\n//b")),
        ] {
            assert_eq!(Message::read(typed), message, "{typed:?}");
        }
    }

    #[test]
    fn a_mistake_says_what_may_help() {
        let listed = |name: &str, near: &str| {
            format!(
                "there is no command `{name}`: {near}`/help` lists them, and `/{name}` asks it as a question"
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
                "the command takes nothing behind it, and there is `now`".to_owned(),
            ),
            (
                "/why not",
                "`not` is no question of this session: `/why` alone is about the last one, `/why 1` about the \
                 first"
                    .to_owned(),
            ),
            (
                "/resume",
                "which session? `/resume ID`; `/sessions` lists them".to_owned(),
            ),
            (
                "/resume a b",
                SessionName::new("a b").unwrap_err().to_string(),
            ),
        ] {
            assert_eq!(Message::read(typed), Message::Mistake(said), "{typed:?}");
        }
    }
}
