//! Tests of the suite: it passes a good tool and finds each flaw.

use std::{
    panic::AssertUnwindSafe,
    sync::atomic::{AtomicU64, Ordering},
};

use futures_util::{FutureExt as _, future::BoxFuture};
use schemars::JsonSchema;
use serde::Deserialize;

use super::*;
use crate::{
    model::{
        Fault, ToolSpec,
        tool::{ToolApproval, ToolEffect, ToolNeed, ToolRepeat, ToolTrust},
    },
    tool::{ToolContext, arguments, schema_of},
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// What to say.
    text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flaw {
    None,
    BadName,
    NoSentence,
    NoDescription,
    AnyArguments,
    DeafToCancellation,
    Unstable,
    TooMuch,
    ShowsHost,
    Breaks,
    Silent,
}

struct Echo {
    spec: ToolSpec,
    flaw: Flaw,
    calls: AtomicU64,
}

impl Echo {
    fn with(flaw: Flaw) -> Self {
        let mut schema = schema_of::<Arguments>();
        if flaw == Flaw::NoDescription {
            schema["properties"]["text"] = json!({"type": "string"});
        }
        let name = if flaw == Flaw::BadName {
            "an echo"
        } else {
            "echo"
        };
        let description = if flaw == Flaw::NoSentence {
            "Echo"
        } else {
            "Says what was said."
        };
        let spec = ToolSpec {
            name: name.to_owned(),
            description: description.to_owned(),
            schema,
            serves: ToolNeed::General,
            effect: ToolEffect::ReadOnly,
            repeat: ToolRepeat::Safe,
            approval: ToolApproval::NotNeeded,
            trust: ToolTrust::Trusted,
            is_rare: false,
        };
        Self {
            spec,
            flaw,
            calls: AtomicU64::new(0),
        }
    }
}

impl Tool for Echo {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call(
        &self,
        given: Value,
        context: ToolContext,
    ) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        let flaw = self.flaw;
        let count = self.calls.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            if context.cancelled.is_cancelled() && flaw != Flaw::DeafToCancellation {
                return Err(ToolError::ForModel("cancelled".to_owned()));
            }
            let read = arguments::<Arguments>(given);
            match flaw {
                Flaw::AnyArguments => Ok("whatever".into()),
                Flaw::Unstable => Ok(format!("call {count}").into()),
                Flaw::TooMuch => Ok("x".repeat(2_000).into()),
                Flaw::ShowsHost => Ok("/home/somebody/file".into()),
                Flaw::Breaks => Err(Fault::permanent("broken", "broken").into()),
                Flaw::Silent => Ok(String::new().into()),
                Flaw::None
                | Flaw::BadName
                | Flaw::NoSentence
                | Flaw::NoDescription
                | Flaw::DeafToCancellation => {
                    read.map(|read| format!("said: {}", read.text).into())
                }
            }
        })
    }
}

#[tokio::test]
async fn tool_conformance_detects_every_flaw() {
    for (flaw, found) in [
        (Flaw::None, None),
        (Flaw::BadName, Some("bad name \"an echo\"")),
        (Flaw::NoSentence, Some("no first sentence")),
        (
            Flaw::NoDescription,
            Some("the argument text is not documented"),
        ),
        (Flaw::AnyArguments, Some("text: \"whatever\"")),
        (
            Flaw::DeafToCancellation,
            Some("a call cancelled before it began"),
        ),
        (Flaw::Unstable, Some("the same call gives another result")),
        (Flaw::TooMuch, Some("2000 bytes")),
        (Flaw::ShowsHost, Some("shows the host")),
        (Flaw::Breaks, Some("broke the tool")),
        (Flaw::Silent, Some("nothing was said")),
    ] {
        let tool = Echo::with(flaw);
        let works = json!({"text": "hello"});
        let subject = Subject {
            tool: &tool,
            works,
            host_path: "/home/somebody",
            max_output: 1_000,
        };
        let result = AssertUnwindSafe(conforms(&subject)).catch_unwind().await;
        let said = result.err().map(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string))
                .unwrap()
        });
        match found {
            None => assert_eq!(said, None, "{flaw:?}"),
            Some(text) => assert!(
                said.as_ref().is_some_and(|said| said.contains(text)),
                "{flaw:?}: {said:?}"
            ),
        }
    }
}
