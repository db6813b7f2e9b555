//! Approvals of tool calls: asks the user about one call at a time, and denies calls if there is
//! no user.
//!
//! **Invariant:** only a line typed after the question answers it, only `y` or `yes` allows the
//! call, and its complete arguments were shown before.

use futures_util::future::BoxFuture;

use super::{CliResult, Follower, TextKind};
use crate::{
    cli::user::UserInput,
    control::{
        Refused,
        question::{QueryHandle, WaitingCall},
    },
    model::{ToolCall, command::MAX_REASON, record::ApprovalVerdict, visible::escaped},
};

/// Characters and lines above which part of a call may have scrolled out of sight.
const PREVIEW: (usize, usize) = (1_600, 20);

const QUESTION: &str = "run it? [y/N] ";
const REPEATED_QUESTION: &str =
    "please answer `y`, `n` or `n REASON` (at most 500 characters): run it? [y/N] ";

/// The call that the user is asked about, or the answer on its way to the query.
#[derive(Default)]
pub(super) struct Approvals {
    asked: Option<WaitingCall>,
    answering: Option<BoxFuture<'static, Result<(), Refused>>>,
}

impl Approvals {
    pub(super) const fn asks(&self) -> bool {
        self.asked.is_some()
    }

    /// Waits until an answer has been delivered. Cancel safe.
    pub(super) async fn answered(&mut self) -> Result<(), Refused> {
        let Some(answering) = &mut self.answering else {
            return std::future::pending().await;
        };
        let answered = answering.await;
        self.answering = None;
        answered
    }
}

impl Follower<'_, '_> {
    pub(super) fn calls(&mut self, question: &mut QueryHandle) -> CliResult {
        if let Some(asked) = &self.approvals.asked {
            if question.waiting().contains(asked) {
                return Ok(());
            }
            self.approvals.asked = None;
            self.user.stop_asking();
            if !self.pressed {
                self.terminal
                    .note("\n(the call no longer waits for approval)");
            }
        }
        let next = question.waiting().first().cloned();
        let Some(waiting) = next.filter(|_| !self.pressed && self.approvals.answering.is_none())
        else {
            return Ok(());
        };
        if self.streams() {
            self.screen.end_text(self.terminal, TextKind::Interim)?;
        }
        if self.user.is_present() {
            // Before the question appears: whatever is typed after it is an answer.
            self.user.ask();
            let gap = if self.streams() { "\n" } else { "" };
            self.terminal
                .note(&format!("{gap}{}", described(&waiting.call)));
            self.terminal.prompt(QUESTION);
            self.approvals.asked = Some(waiting);
        } else {
            let (why, left) = question.leave_call(&waiting);
            self.terminal.say(why);
            self.approvals.answering = Some(left);
        }
        Ok(())
    }

    pub(super) async fn user_input(&mut self, question: &mut QueryHandle, user_input: UserInput) {
        let said = match user_input {
            UserInput::Suspend => return self.user.suspend().await,
            UserInput::Line(line) => verdict(&line),
            UserInput::Nothing => {
                self.terminal.note("");
                Some((ApprovalVerdict::Denied, None))
            }
        };
        let Some(waiting) = self.approvals.asked.take() else {
            return;
        };
        let (verdict, reason) = match said {
            Some(answer) => answer,
            None if self.user.ask_again().await => {
                self.terminal.prompt(REPEATED_QUESTION);
                self.approvals.asked = Some(waiting);
                return;
            }
            None => {
                self.terminal
                    .note("\n(the input does not end: the call is denied)");
                (ApprovalVerdict::Denied, None)
            }
        };
        self.user.stop_asking();
        self.approvals.answering = Some(question.answer_call(&waiting, verdict, reason));
    }
}

/// The answer in a line: words after `n` are the reason of a denial.
fn verdict(line: &str) -> Option<(ApprovalVerdict, Option<String>)> {
    let line = line.trim();
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    match (word.to_lowercase().as_str(), rest.trim()) {
        ("y" | "yes", "") => Some((ApprovalVerdict::Approved, None)),
        ("" | "n" | "no", "") => Some((ApprovalVerdict::Denied, None)),
        ("n" | "no", why) if why.chars().count() <= MAX_REASON => {
            Some((ApprovalVerdict::Denied, Some(why.to_owned())))
        }
        _ => None,
    }
}

pub(crate) fn described(call: &ToolCall) -> String {
    let mut lines = vec![format!("the model wants to run {}, with", call.name)];
    match call.parsed() {
        Ok(serde_json::Value::Object(arguments)) => {
            for (name, value) in arguments {
                match value {
                    serde_json::Value::String(text) if text.contains('\n') => {
                        lines.push(format!("  {name}:"));
                        lines.extend(text.lines().map(|line| format!("  | {line}")));
                    }
                    serde_json::Value::String(text) => lines.push(format!("  {name}: {text}")),
                    other => lines.push(format!("  {name}: {other}")),
                }
            }
        }
        Ok(_) | Err(_) => lines.push(format!("  {}", call.arguments)),
    }
    let text = escaped(&lines.join("\n"));
    let (characters, count) = (text.chars().count(), text.lines().count());
    if characters <= PREVIEW.0 && count <= PREVIEW.1 {
        return text;
    }
    format!("{text}\n({characters} characters in {count} lines: scroll up to see all of it)")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::CallId;

    fn call(arguments: &str) -> ToolCall {
        ToolCall {
            id: CallId::new("1"),
            name: "note_write".to_owned(),
            arguments: arguments.to_owned(),
        }
    }

    #[test]
    fn approval_accepts_only_a_clear_yes_or_no() {
        for (lines, verdict) in [
            (
                vec!["y", " Y ", "yes", "YES"],
                Some(ApprovalVerdict::Approved),
            ),
            (vec!["", "  ", "n", "No"], Some(ApprovalVerdict::Denied)),
            (vec!["yy", "yes please", "what is two?", "j", "0"], None),
        ] {
            for line in lines {
                let expected = verdict.map(|verdict| (verdict, None));
                assert_eq!(super::verdict(line), expected, "{line:?}");
            }
        }
        let reason = "я".repeat(MAX_REASON);
        let denied = (ApprovalVerdict::Denied, Some(reason.clone()));
        assert_eq!(super::verdict(&format!("n {reason}")), Some(denied));
        assert_eq!(super::verdict(&format!("n {reason}я")), None, "too long");
        for line in ["n  It is Mine ", "NO It is Mine"] {
            let denied = (ApprovalVerdict::Denied, Some("It is Mine".to_owned()));
            assert_eq!(super::verdict(line), Some(denied), "{line:?}");
        }
    }

    #[test]
    fn approval_shows_what_is_hidden_in_arguments() {
        let shown = described(&call("{\"note\":\"a\u{200b}b\u{200d}\u{e0041}\u{202e}c\"}"));
        let note = r"  note: a\u200bb\u200d\udb40\udc41\u202ec";
        assert_eq!(shown.lines().nth(1), Some(note));
    }

    #[test]
    fn approval_shows_all_arguments_and_their_length() {
        let arguments = r#"{"note":"ideas/cache","text":"Cache\n\nrun it? [y/N] y","keep":true}"#;
        let want = "the model wants to run note_write, with\n  keep: true\n  note: ideas/cache\n  text:\n  | Cache\n  | \n  \
                    | run it? [y/N] y";
        let shown = described(&call(arguments));
        let sorted = |text: &str| {
            let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
            lines[1..].sort();
            lines
        };
        assert_eq!(sorted(&shown), sorted(want));
        for (name, text, said) in [
            ("long", "é".repeat(9_000), "9054 characters in 2 lines"),
            (
                "of many lines",
                "a\\n".repeat(200),
                "1258 characters in 203 lines",
            ),
        ] {
            let shown = described(&call(&format!(r#"{{"text":"{text}BEHIND"}}"#)));
            let (all, end) = shown.rsplit_once('\n').unwrap();
            assert!(all.ends_with("BEHIND"), "{name}: {all}");
            assert!(end.contains(said), "{name}: {end}");
        }
    }
}
