//! Parses chat input as a question or a command.
//!
//! A message of one line is a command if its first word is a slash followed only by letters,
//! digits, `-`, `_` and `?`. A path (`/etc/hosts what is this`) contains another slash or a full
//! stop and is a question. Two slashes begin a question that begins with one.

use strsim::osa_distance;

use crate::{
    control::{Code, limits},
    model::{NanoUsd, PartialLimits, QueryId, SessionName, decimal},
};

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
    /// Shows the models, or uses another one.
    Model(Option<String>),
    /// Shows the budgets, or changes some; empty limits restore all.
    Budget(Option<PartialLimits>),
    Tools,
    Compact,
    Sessions,
    /// Continues another session; lists them if none is named.
    Resume(Option<SessionName>),
    Fork,
    New,
    Clear,
    Quit,
}

/// The commands in `/help`, one per line: names, argument, description.
pub(super) const COMMANDS: &str = include_str!("command/commands.txt");

pub(super) const KEYS: &str = include_str!("command/keys.txt");

/// Splits lines of the help into what is typed and what it does.
pub(super) fn rows_of(help: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    help.lines().filter_map(|line| line.split_once(": "))
}

/// The names of all commands, and whether they take an argument.
pub(super) fn names() -> impl Iterator<Item = (&'static str, bool)> {
    rows_of(COMMANDS).flat_map(|(head, _)| {
        let names = head.split(' ').filter(|word| word.starts_with('/'));
        names.map(|name| (name, head.ends_with(']')))
    })
}

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
        let given = Some(rest).filter(|rest| !rest.is_empty());
        let command = match name {
            "/help" => alone(rest, ChatCommand::Help),
            "/why" => why(rest),
            "/usage" | "/cost" => alone(rest, ChatCommand::Usage),
            "/model" => Ok(ChatCommand::Model(given.map(str::to_owned))),
            "/budget" => budget(rest),
            "/tools" => alone(rest, ChatCommand::Tools),
            "/compact" => alone(rest, ChatCommand::Compact),
            "/sessions" => alone(rest, ChatCommand::Sessions),
            "/resume" => match given.map(SessionName::new).transpose() {
                Ok(name) => Ok(ChatCommand::Resume(name)),
                Err(error) => Err(error.to_string()),
            },
            "/fork" => alone(rest, ChatCommand::Fork),
            "/new" => alone(rest, ChatCommand::New),
            "/clear" => alone(rest, ChatCommand::Clear),
            "/quit" | "/exit" => alone(rest, ChatCommand::Quit),
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
    let near = names().map(|known| known.0);
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

fn budget(rest: &str) -> Result<ChatCommand, String> {
    let mut limits = PartialLimits::default();
    match rest {
        "" => return Ok(ChatCommand::Budget(None)),
        "default" => return Ok(ChatCommand::Budget(Some(limits))),
        _ => {}
    }
    for word in rest.split_whitespace() {
        let (name, amount) = word.split_once('=').unwrap_or((word, ""));
        let known = match name {
            "turns" => amount.parse().map(|n| limits.max_turns = Some(n)).ok(),
            "tokens" => amount.parse().map(|n| limits.max_tokens = Some(n)).ok(),
            "cost" => decimal::scaled(amount.trim_start_matches('$'), 9)
                .map(|n| limits.max_cost = Some(NanoUsd(n))),
            _ => None,
        };
        known.ok_or_else(|| {
            format!(
                "`{word}` is not a limit: use `turns=60`, `tokens=50000` or `cost=0.50` (US \
                 dollars), or `/budget default` for those of the configuration"
            )
        })?;
    }
    limits::check(&limits).map_err(|wrong| match wrong.code {
        // It is checked in billionths.
        Code::CostOutOfRange => "`cost` must be more than 0".to_owned(),
        _ => wrong.message.replacen("limits.max_", "", 1),
    })?;
    Ok(ChatCommand::Budget(Some(limits)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typed_text_is_parsed_as_question_or_command() {
        let question = |text: &str| ChatInput::Question(text.to_owned());
        let command = ChatInput::Command;
        let budget = |max_turns, max_tokens, max_cost: Option<u64>| {
            command(ChatCommand::Budget(Some(PartialLimits {
                max_turns,
                max_tokens,
                max_cost: max_cost.map(NanoUsd),
            })))
        };
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
            ("/cost", command(ChatCommand::Usage)),
            ("/model", command(ChatCommand::Model(None))),
            (
                "/model openai/gpt-6.1-terra, offline",
                command(ChatCommand::Model(Some(
                    "openai/gpt-6.1-terra, offline".into(),
                ))),
            ),
            ("/budget", command(ChatCommand::Budget(None))),
            ("/budget default", budget(None, None, None)),
            ("/budget turns=60", budget(Some(60), None, None)),
            (
                "/budget  cost=$0.5 tokens=50000",
                budget(None, Some(50_000), Some(500_000_000)),
            ),
            ("/tools", command(ChatCommand::Tools)),
            ("/compact", command(ChatCommand::Compact)),
            ("/resume", command(ChatCommand::Resume(None))),
            (
                "/resume\tshop-1",
                command(ChatCommand::Resume(SessionName::new("shop-1").ok())),
            ),
            ("/fork", command(ChatCommand::Fork)),
            ("/new", command(ChatCommand::New)),
            ("/clear", command(ChatCommand::Clear)),
            ("/quit", command(ChatCommand::Quit)),
            ("/exit", command(ChatCommand::Quit)),
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
        let not_a_limit = |word: &str| {
            format!(
                "`{word}` is not a limit: use `turns=60`, `tokens=50000` or `cost=0.50` (US \
                 dollars), or `/budget default` for those of the configuration"
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
            ("/exti", listed("/exti", "did you mean `/exit`? ")),
            (
                "/budget turns=0",
                "`turns` must be from 1 to 100".to_owned(),
            ),
            ("/budget cost=0", "`cost` must be more than 0".to_owned()),
            ("/budget 60", not_a_limit("60")),
            ("/budget turns=60 tokens=1e3", not_a_limit("tokens=1e3")),
            ("/budget turns=-1", not_a_limit("turns=-1")),
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
