//! Other forms of a call, for servers that refuse the usual one: found out by a refusal, remembered
//! for each model.
//!
//! A form changes how a call is sent, never what it means: the same call is sent once more.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;

use crate::{
    llm::{Request, fault::Words, wire},
    model::{Fault, FaultCode, Message, Part, Role, ToolCall},
};

/// Most models remembered; beyond that, all are forgotten.
const MOST: usize = 1024;

/// The form of each model's calls.
#[derive(Debug, Default)]
pub(super) struct Learned(Mutex<HashMap<Arc<str>, Forms>>);

impl Learned {
    pub(super) fn of(&self, model: &str) -> Forms {
        self.0.lock().get(model).copied().unwrap_or_default()
    }

    /// Takes what the refusal of a call in the form `before` teaches. Returns another form if that
    /// is worth another try.
    pub(super) fn learn(
        &self,
        model: &Arc<str>,
        before: Forms,
        fault: &Fault,
        has_other: bool,
    ) -> Option<Forms> {
        let mut all = self.0.lock();
        let known = all.get(model).copied().unwrap_or_default();
        if known != before {
            // Another call has learned meanwhile.
            return Some(known);
        }
        let after = before.after(fault, has_other);
        if after == before {
            return None;
        }
        if all.len() >= MOST {
            all.clear();
        }
        all.insert(Arc::clone(model), after);
        // The server has neither route, so the first one is as good.
        let gave_up = before.other_route && !after.other_route;
        (!gave_up).then_some(after)
    }
}

/// What a server has refused of a model's calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(super) struct Forms {
    /// It takes these calls in the [other](super::dialect::Protocol::other) dialect only.
    pub(super) other_route: bool,
    /// It has no encrypted reasoning.
    pub(super) no_encrypted_reasoning: bool,
    /// The model takes no tools.
    pub(super) no_tools: bool,
    /// The model's template knows no system prompt.
    pub(super) no_system: bool,
    /// The output limit has the name that is not the usual one at this host.
    pub(super) other_limit: bool,
    /// It does not know `stream_options`.
    pub(super) no_stream_options: bool,
    /// It does not know `store`.
    pub(super) no_store: bool,
    /// It does not know `prompt_cache_key`.
    pub(super) no_cache_key: bool,
}

impl Forms {
    /// Learns from this refusal.
    fn after(mut self, fault: &Fault, has_other: bool) -> Self {
        let words = Words::new(&fault.detail);
        let has = |features: &str| features.split(' ').all(|feature| words.has(feature));
        match fault.code {
            FaultCode::WrongRoute if has_other => self.other_route = !self.other_route,
            // That is the setup of a server whose model has tools: its words say what to do.
            FaultCode::ToolsUnsupported => self.no_tools |= !has("jinja"),
            FaultCode::BadRequest | FaultCode::ServerError => {
                self.no_encrypted_reasoning |= has("encrypted turned_down");
                self.other_limit |= has("limit_field turned_down");
                self.no_stream_options |= has("stream_options turned_down");
                self.no_store |= has("store turned_down");
                self.no_cache_key |= has("prompt_cache_key turned_down");
                self.no_system |= has("system~turned_down") || has("roles");
            }
            _ => {}
        }
        self
    }

    /// The request in the form that the server takes.
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
        if self.no_system && !request.system.is_empty() {
            let prompt = Message::text(Role::User, &*std::mem::take(&mut request.system));
            messages.insert(0, prompt.into());
        }
        request.messages = Arc::new(messages);
        request
    }

    fn message(self, message: &Message) -> Message {
        let role = match message.role {
            Role::System | Role::Guidance if !self.no_system => message.role,
            Role::Tool if !self.no_tools => Role::Tool,
            Role::Assistant => Role::Assistant,
            _ => Role::User,
        };
        let is_ours = role == Role::User && matches!(message.role, Role::System | Role::Guidance);
        let part = |part: &Part| match part {
            Part::Text { text } if is_ours => Part::text(wire::guidance(text)),
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
        other_route: false,
        no_encrypted_reasoning: false,
        no_tools: false,
        no_system: false,
        other_limit: false,
        no_stream_options: false,
        no_store: false,
        no_cache_key: false,
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
            (
                "bad_request",
                "max_tokens is deprecated for this model, please use max_completion_tokens",
                limit,
            ),
            (
                "bad_request",
                r#"[{"loc":["body","max_tokens"],"type":"extra_forbidden"}]"#,
                limit,
            ),
            (
                "bad_request",
                "Only user and assistant roles are supported!",
                system,
            ),
            (
                "bad_request",
                "Developer instruction is not enabled for models/gemma",
                system,
            ),
            (
                "bad_request",
                "Unknown field: stream_options",
                Forms {
                    no_stream_options: true,
                    ..NONE
                },
            ),
            ("bad_request", "The vector store is not supported", NONE),
            (
                "bad_request",
                "Unknown parameter: 'store'",
                Forms {
                    no_store: true,
                    ..NONE
                },
            ),
            (
                "bad_request",
                "Unrecognized request argument supplied: prompt_cache_key",
                Forms {
                    no_cache_key: true,
                    ..NONE
                },
            ),
            ("bad_request", "the system is not in a good mood", NONE),
            ("overloaded", "System role not supported", NONE),
        ] {
            let fault = Fault::permanent(code, detail);
            assert_eq!(NONE.after(&fault, false), expected, "{detail}");
            assert_eq!(expected.after(&fault, false), expected, "{detail}: once");
        }
    }

    #[test]
    fn forms_are_learned_once() {
        let learned = Learned::default();
        let model: Arc<str> = "m".into();
        let route = Fault::permanent(FaultCode::WrongRoute, "use /v1/responses");
        let detail = "400: Encrypted content is not supported with this model.";
        let sealed = Fault::permanent(FaultCode::BadRequest, detail);
        let other = Fault::permanent(FaultCode::BadRequest, "no");
        for (name, fault, has_other, again, other_route, plain) in [
            ("another refusal", &other, true, false, false, false),
            ("no other route", &route, false, false, false, false),
            ("the other route", &route, true, true, true, false),
            ("reasoning", &sealed, true, true, true, true),
            ("the same again", &sealed, true, false, true, true),
            ("neither route", &route, true, false, false, true),
        ] {
            let form = learned.learn(&model, learned.of("m"), fault, has_other);
            assert_eq!(form.is_some(), again, "{name}");
            let got = learned.of("m");
            assert_eq!(got.other_route, other_route, "{name}");
            assert_eq!(got.no_encrypted_reasoning, plain, "{name}");
            assert_eq!(learned.of("n"), Forms::default());
        }
        // A call that was sent before the last lesson is sent again in the known form.
        let known = learned.of("m");
        let form = learned.learn(&model, Forms::default(), &route, true);
        assert_eq!((form, learned.of("m")), (Some(known), known));
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
            Message::text(Role::Guidance, "briefly"),
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
            (Role::Guidance, "briefly"),
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
        let ours = "<guidance>\nbriefly\n</guidance>";
        assert_eq!(texts.len(), 6);
        assert_eq!(texts[5], (Role::User, ours.to_owned()));
        let mut silent = request();
        silent.system = "".into();
        assert_eq!(form.of(&silent).messages.len(), 5);
        assert!(texts.iter().all(|(role, _)| *role != Role::System));
        assert_eq!(formed.tools.len(), 1);
    }
}
