//! Assembles tool calls from their pieces.
//!
//! A piece should carry the index of its call. Some servers omit it or send 0 for all calls; they
//! send the id with the first piece, every piece or none, or a new one each time; they send
//! arguments as an object, or repeat them whole. An ambiguous piece goes to an existing call.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    llm::{
        fault,
        lenient::{Count, MOST, Object, Text},
    },
    model::Fault,
};

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct CallDelta<'a> {
    index: Count,
    id: Text<'a>,
    function: Object<CalledFunction<'a>>,
    extra_content: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct CalledFunction<'a> {
    name: Text<'a>,
    arguments: Option<&'a RawValue>,
}

#[derive(Debug, Default)]
pub(super) struct Call {
    index: Option<u64>,
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: String,
    pub(super) extra: Option<String>,
    braces: Braces,
}

#[derive(Debug, Default)]
pub(super) struct Calls(Vec<Call>);

impl Calls {
    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(Call::is_done)
    }

    /// Returns the arguments in the piece, unless it brings nothing.
    pub(super) fn add(&mut self, piece: &CallDelta<'_>) -> Result<Option<String>, Fault> {
        let nothing = CalledFunction::default();
        let function = piece.function.0.as_ref().unwrap_or(&nothing);
        let (id, name) = (&*piece.id.0, &*function.name.0);
        let fragment = function.arguments.map_or_else(String::new, received);
        let place = match self.place(piece.index.0, id, name) {
            // A repeated piece, or the next call of a server that marks no boundaries.
            Some(at) if self.0[at].is_followed(name, &fragment) => {
                if self.0[at].arguments == fragment {
                    return Ok(Some(fragment));
                }
                None
            }
            place => place,
        };
        let is_news = place.is_none() || !fragment.is_empty();
        let call = match place {
            Some(at) => &mut self.0[at],
            None if self.0.len() == MOST => {
                return Err(fault::too_much("the reply has too many tool calls"));
            }
            None => {
                self.0.push(Call {
                    index: piece.index.0,
                    ..Call::default()
                });
                let last = self.0.len() - 1;
                &mut self.0[last]
            }
        };
        for (known, told) in [(&mut call.id, id), (&mut call.name, name)] {
            if known.is_empty() {
                told.clone_into(known);
            }
        }
        call.braces.read(&fragment);
        call.arguments.push_str(&fragment);
        if let Some(extra) = piece.extra_content {
            call.extra = Some(extra.get().to_owned());
        }
        Ok(is_news.then_some(fragment))
    }

    fn place(&self, index: Option<u64>, id: &str, name: &str) -> Option<usize> {
        let by_id = || self.0.iter().rposition(|call| call.id == id);
        let at = match index {
            Some(_) => self.0.iter().rposition(|call| call.index == index)?,
            None if id.is_empty() || name.is_empty() => {
                let known = (!id.is_empty()).then(by_id).flatten();
                known.or(self.0.len().checked_sub(1))?
            }
            None => by_id()?,
        };
        let call = &self.0[at];
        let other =
            |known: &str, told: &str| !known.is_empty() && !told.is_empty() && known != told;
        // A new id without a name is an id that changes from piece to piece.
        let begins = !name.is_empty() && (other(&call.id, id) || other(&call.name, name));
        (!begins).then_some(at)
    }

    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        let extra = |call: &Call| call.extra.as_ref().map_or(0, String::len);
        let held = |call: &Call| call.id.len() + call.name.len() + call.arguments.len();
        let calls = self.0.iter();
        calls.map(|call| held(call) + extra(call)).sum()
    }

    pub(super) fn take(&mut self) -> Vec<Call> {
        let mut calls = std::mem::take(&mut self.0);
        calls.retain(|call| !call.is_done());
        if calls.iter().all(|call| call.index.is_some()) {
            calls.sort_by_key(|call| call.index);
        }
        calls
    }
}

impl Call {
    /// Whether the provider has run it: gateways pass Anthropic's server tools on as calls.
    fn is_done(&self) -> bool {
        self.id.starts_with("srvtoolu_")
    }

    /// Whether a piece cannot continue this call, because the arguments are complete.
    fn is_followed(&self, name: &str, fragment: &str) -> bool {
        let again = self.arguments == fragment || !name.is_empty();
        self.braces.closed && !fragment.trim().is_empty() && again
    }
}

/// Arguments as text, whether they came as text or as a value.
pub(crate) fn received(raw: &RawValue) -> String {
    match raw.get() {
        "null" => String::new(),
        text if text.starts_with('"') => serde_json::from_str::<Text<'_>>(text)
            .map_or_else(|_| text.to_owned(), |text| text.0.into_owned()),
        value => value.to_owned(),
    }
}

#[derive(Debug, Default)]
struct Braces {
    depth: usize,
    in_string: bool,
    escaped: bool,
    closed: bool,
}

impl Braces {
    fn read(&mut self, fragment: &str) {
        for byte in fragment.bytes() {
            if self.in_string {
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    b'"' => self.in_string = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => self.in_string = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    self.closed = self.depth == 0;
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests;
