//! Scripts from files: the model `scripted/FILE` plays the file.

use std::{collections::BTreeMap, path::Path, time::Duration};

use futures_util::{StreamExt, stream};

use super::{SCRIPTED, Scripted, ScriptedReply, Try};
use crate::{
    llm::{
        Backend, DeltaStream, Request,
        script::{Script, ScriptError, ScriptFault, ScriptReply, ScriptTurn},
    },
    model::{Capabilities, Fault, FaultClass, FaultCode},
};

/// A [`Backend`] whose models are script files, named by path. Relative paths start in the working
/// directory. The files are read once, by [`Scripts::read`].
#[derive(Debug, Clone, Default)]
pub struct Scripts(BTreeMap<String, Scripted>);

impl Scripts {
    /// Provider name.
    pub const PROVIDER: &'static str = "scripted";

    /// Reads script files.
    ///
    /// # Errors
    /// For the first file that cannot be read or is no script.
    pub fn read<'a>(files: impl IntoIterator<Item = &'a str>) -> Result<Self, ScriptError> {
        let script = |file: &str| {
            let script = Script::read(Path::new(file))?;
            Ok((file.to_owned(), Scripted::of_turns(&script.turns)))
        };
        let scripts: Result<_, _> = files.into_iter().map(script).collect();
        scripts.map(Self)
    }
}

impl Backend for Scripts {
    fn provider(&self) -> &'static str {
        Self::PROVIDER
    }

    fn capabilities(&self, _model: &str) -> Capabilities {
        SCRIPTED
    }

    fn call(&self, request: Request) -> DeltaStream {
        match self.0.get(&*request.model) {
            Some(script) => script.call(request),
            None => {
                let detail = format!(
                    "the script `{}` was not loaded at startup: name it in `model.chain`",
                    request.model
                );
                stream::iter([Err(Fault::permanent(FaultCode::NoModel, detail))]).boxed()
            }
        }
    }
}

impl Scripted {
    /// Creates a script from parsed turns. It keeps no requests.
    pub fn of_turns(turns: &[ScriptTurn]) -> Self {
        let empty = Self {
            kept: 0,
            ..Self::new()
        };
        turns.iter().fold(empty, |script, turn| {
            let failing = turn.faults.iter().map(failing);
            let replying = turn.reply.as_ref().map(replying);
            script
                .step(failing.chain(replying))
                .slowly(Duration::from_millis(turn.delay_ms))
        })
    }
}

fn replying(reply: &ScriptReply) -> Try {
    let text = ScriptedReply::of(reply.text.clone());
    let calls = reply.tool_calls.iter();
    Try::Reply(calls.fold(text, |reply, call| reply.raw_call(&call.name, call.sent())))
}

fn failing(fault: &ScriptFault) -> Try {
    match fault.clone() {
        ScriptFault::Fault {
            shown,
            code,
            detail,
            permanent,
            after_ms,
        } => {
            let class = match permanent {
                true => FaultClass::Permanent,
                false => FaultClass::Retryable { after_ms },
            };
            let fault = Fault {
                class,
                code,
                detail,
            };
            Try::Fault { shown, fault }
        }
        ScriptFault::Stall { shown } => Try::Stall { shown },
        ScriptFault::Cut { shown } => Try::Cut { shown },
    }
}

#[cfg(test)]
mod tests;
