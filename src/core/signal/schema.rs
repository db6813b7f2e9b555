//! Types the fields of a signal, and describes what is wrong with them.
//!
//! Values are typed by the schema, never guessed. A fault is one sentence for the model, with
//! short, escaped quotations. Length limits count Unicode scalars.

use std::ops::RangeInclusive;

use super::{escape::escape, fields::Field};
use crate::model::{
    decimal,
    signal::{
        ContextSufficient, DelegationRecommended, Extra, NeedCapability, NeedTurn, PartialAnswer,
        SignalFields, SignalType, Stuck,
    },
};

const SENTENCE: RangeInclusive<usize> = 5..=500;
const NOTE: RangeInclusive<usize> = 0..=500;
const CAPABILITY: RangeInclusive<usize> = 2..=100;
const SUBAGENT_TYPE: RangeInclusive<usize> = 0..=50;
const FURTHER_SCOPES: usize = 7;
const EXPECTED_TURNS: RangeInclusive<u64> = 1..=10;
const ESTIMATED_TOKENS: RangeInclusive<u64> = 100..=100_000;
const SOURCES: RangeInclusive<u64> = 0..=u64::MAX;
const QUOTED: usize = 40;

/// A typed value, or what is wrong with it.
pub(super) type Typed<T> = Result<T, String>;

/// Types `elements`, which exclude `confidence`.
pub(super) fn parse_fields(kind: SignalType, elements: Vec<Field<'_>>) -> Typed<SignalFields> {
    let mut fields = Fields { kind, elements };
    Ok(match kind {
        SignalType::NeedTurn => SignalFields::NeedTurn(NeedTurn {
            reason: fields.required("reason", text(SENTENCE))?,
            expected_turns: fields.optional("expected_turns", integer(EXPECTED_TURNS))?,
            extra: fields.into_extra(),
        }),
        SignalType::ContextSufficient => SignalFields::ContextSufficient(ContextSufficient {
            sources_found: fields.required("sources_found", integer(SOURCES))?,
            source_types: fields.optional("source_types", list)?,
            extra: fields.into_extra(),
        }),
        SignalType::Stuck => SignalFields::Stuck(Stuck {
            attempted: fields.required("attempted", nonempty_list)?,
            blocker: fields.required("blocker", text(SENTENCE))?,
            suggestions: fields.optional("suggestions", list)?,
            extra: fields.into_extra(),
        }),
        SignalType::NeedCapability => SignalFields::NeedCapability(NeedCapability {
            capability: fields.required("capability", text(CAPABILITY))?,
            reason: fields.required("reason", text(SENTENCE))?,
            workaround: fields.optional("workaround", text(NOTE))?,
            extra: fields.into_extra(),
        }),
        SignalType::PartialAnswer => SignalFields::PartialAnswer(PartialAnswer {
            missing: fields.required("missing", text(SENTENCE))?,
            caveat: fields.optional("caveat", text(NOTE))?,
            extra: fields.into_extra(),
        }),
        SignalType::DelegationRecommended => {
            SignalFields::DelegationRecommended(DelegationRecommended {
                reason: fields.required("reason", text(SENTENCE))?,
                scope: fields.required("scope", text(SENTENCE))?,
                further_scopes: fields.optional("further_scopes", scopes)?,
                estimated_tokens: fields.optional("estimated_tokens", integer(ESTIMATED_TOKENS))?,
                subagent_type: fields.optional("subagent_type", text(SUBAGENT_TYPE))?,
                extra: fields.into_extra(),
            })
        }
    })
}

pub(super) fn quoted(value: &str) -> String {
    let mut short: String = value.chars().take(QUOTED).collect();
    if short.len() < value.len() {
        short.push('…');
    }
    format!("`{}`", escape(&short))
}

/// The elements that no field has taken yet.
struct Fields<'a> {
    kind: SignalType,
    elements: Vec<Field<'a>>,
}

impl<'a> Fields<'a> {
    fn required<T>(&mut self, name: &str, typed: impl FnOnce(&str) -> Typed<T>) -> Typed<T> {
        let kind = self.kind;
        let missing = || format!("a {kind} signal needs the field `{name}`, which is missing");
        let value = self.take(name).ok_or_else(missing)?;
        typed(value).map_err(|fault| self.misfit(name, &fault))
    }

    /// Treats an empty optional element as absent.
    fn optional<T>(
        &mut self,
        name: &str,
        typed: impl FnOnce(&str) -> Typed<T>,
    ) -> Typed<Option<T>> {
        let value = self.take(name).filter(|value| !value.is_empty());
        let value = value.map(typed).transpose();
        value.map_err(|fault| self.misfit(name, &fault))
    }

    fn misfit(&self, name: &str, needs: &str) -> String {
        format!("the field `{name}` of a {} signal needs {needs}", self.kind)
    }

    /// Takes the last element of the name.
    fn take(&mut self, name: &str) -> Option<&'a str> {
        let of_name = self.elements.extract_if(.., |element| element.name == name);
        of_name.last().map(|element| element.text)
    }

    /// Returns the fields outside the schema, the last of each name.
    fn into_extra(self) -> Extra {
        let mut extra = Extra::new();
        let elements = self.elements.into_iter();
        extra.extend(elements.map(|e| (e.name.into_owned(), e.text.to_owned())));
        extra
    }
}

fn text(limits: RangeInclusive<usize>) -> impl FnOnce(&str) -> Typed<String> {
    move |value| {
        let length = value.chars().count();
        if limits.contains(&length) {
            return Ok(value.to_owned());
        }
        let allowed = match (limits.start(), limits.end()) {
            (0, most) => format!("at most {most}"),
            (least, most) => format!("{least} to {most}"),
        };
        Err(format!("{allowed} characters, it has {length}"))
    }
}

fn integer(limits: RangeInclusive<u64>) -> impl FnOnce(&str) -> Typed<u64> {
    move |value| {
        // Also `3.0`, but not `3.5`, `-3` or `3e0`.
        let number = decimal::scaled(value, 0).filter(|number| limits.contains(number));
        number.ok_or_else(|| {
            let allowed = match (*limits.start(), *limits.end()) {
                (least, u64::MAX) => format!("of at least {least}"),
                (least, most) => format!("from {least} to {most}"),
            };
            format!("an integer {allowed}, it is {}", quoted(value))
        })
    }
}

fn list(value: &str) -> Typed<Vec<String>> {
    serde_json::from_str(value).map_err(|_| {
        let value = quoted(value);
        format!("a JSON array of strings such as [\"one\", \"two\"], it is {value}")
    })
}

fn nonempty_list(value: &str) -> Typed<Vec<String>> {
    let entries = list(value)?;
    match entries.is_empty() {
        true => Err("at least 1 entry, it has none".to_owned()),
        false => Ok(entries),
    }
}

fn scopes(value: &str) -> Typed<Vec<String>> {
    let entries = list(value)?;
    if entries.len() > FURTHER_SCOPES {
        let length = entries.len();
        return Err(format!("at most {FURTHER_SCOPES} entries, it has {length}"));
    }
    let entries = entries.iter().map(|entry| text(SENTENCE)(entry.trim()));
    let entries: Result<_, _> = entries.collect();
    entries.map_err(|fault| format!("entries of {}", fault.replace("it has", "one has")))
}
