//! Parses the budgets of a query. Unknown fields are refused: a misspelt limit would have no effect.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor, value::MapAccessDeserializer},
};

use super::{Code, Refused};
use crate::model::{PartialLimits, usage::NanoUsd};

/// Refuses a limit outside its range.
pub fn check(limits: &PartialLimits) -> Result<(), Refused> {
    let wrong = |field, what, code| Err(Refused::new(code, format!("`limits.{field}` {what}")));
    let least = "must be at least 1";
    if let Some(0 | 101..) = limits.max_turns {
        wrong("max_turns", "must be from 1 to 100", Code::TurnsOutOfRange)
    } else if limits.max_tokens == Some(0) {
        wrong("max_tokens", least, Code::TokensOutOfRange)
    } else if limits.max_cost == Some(NanoUsd(0)) {
        wrong("max_cost", least, Code::CostOutOfRange)
    } else {
        Ok(())
    }
}

/// Refuses limits that change nothing.
pub fn require_any(limits: &PartialLimits) -> Result<(), Refused> {
    if *limits != PartialLimits::default() {
        return Ok(());
    }
    let what = "`limits` names no limit: set `max_turns`, `max_tokens` or `max_cost`";
    Err(Refused::new(Code::NoLimit, what))
}

/// Reads an object; serde's derived code would accept a list of values too.
pub fn object<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PartialLimits, D::Error> {
    deserializer.deserialize_map(Object)
}

/// Reads an object or null.
pub fn optional_object<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<PartialLimits>, D::Error> {
    #[derive(Deserialize)]
    struct Strict(#[serde(deserialize_with = "object")] PartialLimits);

    let limits = Option::<Strict>::deserialize(deserializer)?;
    Ok(limits.map(|Strict(limits)| limits))
}

/// Describes budgets of `oracle ctl continue`, which hold for the query and its continuation.
#[cfg(feature = "cli")]
pub fn of_whole_query(argument: clap::Arg) -> clap::Arg {
    let help = match argument.get_id().as_str() {
        "turns" => "Maximum number of turns, including those already used",
        "tokens" => "Maximum number of tokens, including those already used",
        "cost" => "Maximum cost in US dollars, including what is already spent",
        _ => return argument,
    };
    let is_turns = argument.get_id() == "turns";
    argument.help(help).required(is_turns)
}

struct Object;

impl<'de> Visitor<'de> for Object {
    type Value = PartialLimits;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<PartialLimits, A::Error> {
        PartialLimits::deserialize(MapAccessDeserializer::new(fields))
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        control::Verb,
        model::{PartialLimits, usage::NanoUsd},
    };

    #[test]
    fn limits_of_a_verb_are_read_strictly() {
        for verb in ["set_budget", "continue"] {
            let read = |limits: &str| {
                let text = format!(r#"{{"verb":"{verb}","session":"s","limits":{limits}}}"#);
                Verb::from_json(text.as_bytes()).map_err(|refused| refused.message)
            };
            for (limits, says) in [
                (r#"{"max_turns":30,"max_token":1000}"#, "`max_token`"),
                (r#"{"max_turns":30,"max_costs":1}"#, "`max_costs`"),
                (r#"{"max_turns":30,"max_turns":31}"#, "`max_turns`"),
                ("[30]", "an object"),
                ("[30,1000,1]", "an object"),
                ("30", "an object"),
                ("null", "an object"),
            ] {
                let refused = read(limits).unwrap_err();
                assert!(refused.contains(says), "{verb} {limits}: {refused}");
            }
            let given = read(r#"{"max_turns":30,"max_tokens":1000,"max_cost":7}"#).unwrap();
            let (Verb::SetBudget { limits, .. } | Verb::Continue { limits, .. }) = &given else {
                panic!("{given:?}")
            };
            let wanted = PartialLimits {
                max_turns: Some(30),
                max_tokens: Some(1000),
                max_cost: Some(NanoUsd(7)),
            };
            assert_eq!(*limits, wanted, "{verb}");
            let again = serde_json::to_vec(&given).unwrap();
            assert_eq!(Verb::from_json(&again).unwrap(), given, "{verb}");
        }
    }
}
