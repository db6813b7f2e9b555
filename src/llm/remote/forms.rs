//! Other forms of a call, for servers that refuse the usual one: found out by a refusal, remembered
//! for each model.

use std::sync::Arc;

use crate::{
    llm::Request,
    model::{Fault, FaultCode, Message, Part, Role, ToolCall},
};

/// What a server has refused of a model's calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(super) struct Forms {
    /// The model takes no tools.
    pub(super) no_tools: bool,
    /// The model's template knows no system prompt.
    pub(super) no_system: bool,
    /// The output limit has the name that is not the usual one at this host.
    pub(super) other_limit: bool,
}

impl Forms {
    /// What is known after this refusal.
    pub(super) fn after(mut self, fault: &Fault) -> Self {
        let text = fault.detail.to_lowercase();
        let says = |words: &str| words.split('|').any(|words| text.contains(words));
        let refused = says("not support|unsupported|not allowed|unrecognized|unknown");
        let order = says("at the beginning|unexpected|only user");
        let system = says("system") && says("role|message");
        match fault.code {
            // That is the setup of a server whose model has tools: its words say what to do.
            FaultCode::ToolsUnsupported => self.no_tools |= !says("jinja"),
            FaultCode::BadRequest if says("max_completion_tokens") => {
                self.other_limit |= refused;
            }
            FaultCode::BadRequest | FaultCode::ServerError => {
                self.no_system |= system && (refused || order) || says("must alternate");
            }
            _ => {}
        }
        self
    }

    /// The same request in the form that the server takes.
    pub(super) fn of(self, request: &Request) -> Request {
        let mut request = request.clone();
        if !self.no_tools && !self.no_system {
            return request;
        }
        let messages = request.messages.iter();
        let mut messages: Vec<Arc<Message>> =
            messages.map(|one| self.message(one).into()).collect();
        if self.no_tools {
            request.tools = Arc::default();
        }
        if self.no_system {
            let prompt = Message::text(Role::User, &*std::mem::take(&mut request.system));
            messages.insert(0, prompt.into());
        }
        request.messages = Arc::new(messages);
        request
    }

    fn message(self, message: &Message) -> Message {
        let role = match message.role {
            Role::System if !self.no_system => Role::System,
            Role::Tool if !self.no_tools => Role::Tool,
            Role::Assistant => Role::Assistant,
            _ => Role::User,
        };
        let part = |part: &Part| match part {
            Part::ToolCall(ToolCall {
                name, arguments, ..
            }) if self.no_tools => Part::text(format!("(called {name} with {arguments})")),
            Part::ToolResult(result) if self.no_tools => {
                Part::text(format!("(result of a call)\n{}", result.content))
            }
            other => other.clone(),
        };
        let parts = message.parts.iter().map(part).collect();
        Message { role, parts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        llm::ToolChoice,
        model::{CallId, ToolResult, ToolSpec, ToolStatus},
    };

    const NONE: Forms = Forms {
        no_tools: false,
        no_system: false,
        other_limit: false,
    };

    #[test]
    fn refusals_teach_the_form() {
        let (tools, system) = (
            Forms {
                no_tools: true,
                ..NONE
            },
            Forms {
                no_system: true,
                ..NONE
            },
        );
        let limit = Forms {
            other_limit: true,
            ..NONE
        };
        for (code, detail, expected) in [
            (
                "tools_unsupported",
                "gemma3:4b does not support tools",
                tools,
            ),
            (
                "tools_unsupported",
                "tools param requires --jinja flag",
                NONE,
            ),
            ("bad_request", "System role not supported", system),
            (
                "server_error",
                "Conversation roles must alternate user/assistant/…",
                system,
            ),
            (
                "bad_request",
                "Role 'system' is not supported by this template",
                system,
            ),
            (
                "bad_request",
                "System message must be at the beginning.",
                system,
            ),
            (
                "bad_request",
                "Only user and assistant roles are supported, not system",
                system,
            ),
            (
                "bad_request",
                "Unsupported parameter: 'max_tokens' is not supported with this model. Use \
                 'max_completion_tokens' instead.",
                limit,
            ),
            (
                "bad_request",
                "Unrecognized request argument supplied: max_completion_tokens",
                limit,
            ),
            ("bad_request", "max_completion_tokens is too large: 9", NONE),
            ("bad_request", "the system is not in a good mood", NONE),
            ("overloaded", "System role not supported", NONE),
        ] {
            let fault = Fault::permanent(code, detail);
            assert_eq!(NONE.after(&fault), expected, "{detail}");
            assert_eq!(expected.after(&fault), expected, "{detail}: once");
        }
    }

    fn request() -> Request {
        let id = CallId::new("c");
        let call = Part::ToolCall(ToolCall {
            id: id.clone(),
            name: "look".into(),
            arguments: r#"{"at":1}"#.into(),
        });
        let result = Part::ToolResult(ToolResult::new(id, ToolStatus::Ok, "seen"));
        let message = |role, part| Message {
            role,
            parts: vec![part],
        };
        let messages = vec![
            Message::text(Role::User, "where?"),
            message(Role::Assistant, call),
            message(Role::Tool, result),
            Message::text(Role::System, "go on"),
        ];
        let schema = serde_json::json!({"type": "object"});
        Request {
            model: "m".into(),
            system: "You are Oracle.".into(),
            messages: Arc::new(messages.into_iter().map(Arc::new).collect()),
            tools: [ToolSpec::new("look", "Looks.", schema)].into(),
            tool_choice: ToolChoice::Auto,
            options: None,
            instead_of: None,
        }
    }

    fn texts(request: &Request) -> Vec<(Role, String)> {
        let messages = request.messages.iter();
        messages
            .map(|one| (one.role, one.texts().collect::<Vec<_>>().join("|")))
            .collect()
    }

    #[test]
    fn a_request_without_tools_tells_of_calls_and_results() {
        let formed = Forms {
            no_tools: true,
            ..NONE
        }
        .of(&request());
        assert!(formed.tools.is_empty());
        let calls = formed
            .messages
            .iter()
            .map(|one| one.calls().count() + one.results().count());
        assert_eq!(calls.sum::<usize>(), 0);
        let expected = [
            (Role::User, "where?"),
            (Role::Assistant, "(called look with {\"at\":1})"),
            (Role::User, "(result of a call)\nseen"),
            (Role::System, "go on"),
        ];
        assert_eq!(
            texts(&formed),
            expected.map(|(role, text)| (role, text.to_owned()))
        );
    }

    #[test]
    fn a_request_without_a_system_prompt_begins_with_it() {
        let form = Forms {
            no_system: true,
            ..NONE
        };
        let formed = form.of(&request());
        let texts = texts(&formed);
        assert_eq!(&*formed.system, "");
        assert_eq!(texts[0], (Role::User, "You are Oracle.".to_owned()));
        assert_eq!(texts.len(), 5);
        assert!(texts.iter().all(|(role, _)| *role != Role::System));
        assert_eq!(formed.tools.len(), 1);
    }
}
