//! The format of an answer: the instructions for the model, and the check of its answer.
//!
//! The first answer that does not match is rejected, and the model gets a final turn to repair it.

use serde_json::Value;

use super::{
    draft::{self, Draft},
    effect::Decision,
    guard, guidance,
    schema::problem_of_answer,
    turn_end,
    verdict::Verdict,
};
use crate::model::{
    AnswerFormat, FaultCode,
    record::{AnswerRejected, QueryFact},
};

/// Maximum length of a problem in the guidance, in characters.
const LONGEST_PROBLEM: usize = 500;

/// The instructions for a format, which follow the prompt.
pub fn instruction(format: &AnswerFormat) -> Option<String> {
    let (what, schema) = match format {
        AnswerFormat::Text => return None,
        AnswerFormat::Json => ("a JSON object".to_owned(), String::new()),
        AnswerFormat::Schema {
            description,
            schema,
            ..
        } => {
            let purpose = description.as_ref().map(|text| format!(" ({text})"));
            let purpose = purpose.unwrap_or_default();
            let what = format!("JSON{purpose} that matches the schema below");
            (what, format!("\n\n{schema}"))
        }
    };
    Some(format!(
        "# Format of the answer\n\nA program reads the answer. The reply that gives it must be {what}, \
         without other text, code fence or signal. Replies that only call tools are not \
         affected.{schema}"
    ))
}

pub(super) fn applies(draft: &Draft<'_>, verdict: Verdict) -> bool {
    let gives_an_answer = matches!(
        verdict,
        Verdict::Answered | Verdict::Partial | Verdict::Stuck
    );
    let options = draft.query.options();
    gives_an_answer && !options.format.is_text() && !options.is_task
}

/// Whether the model is asked for the answer again.
pub(super) fn is_rejected(draft: &Draft<'_>, verdict: Verdict) -> bool {
    let query = &draft.query;
    let fits = || find(&query.options().format, &draft::answer(query)).is_ok();
    applies(draft, verdict) && !query.repaired && !fits()
}

/// Ends the query if its answer has the format; otherwise asks for it again, once.
pub(super) fn end(mut draft: Draft<'_>, verdict: Verdict, mut notes: Vec<String>) -> Decision {
    let text = draft::answer(&draft.query);
    match find(&draft.query.options().format, &text) {
        Ok(answer) => {
            let (outcome, answer) = (turn_end::outcome(&draft, verdict), answer.to_owned());
            draft.finish_with(outcome, answer)
        }
        Err(problem) if draft.query.repaired => {
            let detail = format!(
                "the model gave no answer in the requested format: {problem}; ask again, or use \
                 another model"
            );
            draft.fail(FaultCode::AnswerFormat, detail)
        }
        Err(problem) => {
            notes.push(guidance::wrong_format(&problem));
            draft.emit(QueryFact::AnswerRejected(AnswerRejected { problem }));
            guard::begin_turn(draft, notes)
        }
    }
}

/// Checks an answer and returns its JSON, without the code fence that many models put around it.
fn find<'a>(format: &AnswerFormat, text: &'a str) -> Result<&'a str, String> {
    let text = text.trim();
    let fenced = text
        .strip_prefix("```")
        .and_then(|text| text.strip_suffix("```"));
    let fenced = fenced.map(|text| text.strip_prefix("json").unwrap_or(text).trim());
    let text = fenced.unwrap_or(text);
    let value: Value = serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))?;
    match format {
        AnswerFormat::Text => Ok(text),
        AnswerFormat::Json if value.is_object() => Ok(text),
        AnswerFormat::Json => Err("not a JSON object".to_owned()),
        AnswerFormat::Schema { schema, .. } => match problem_of_answer(schema, &value) {
            None => Ok(text),
            Some(problem) => Err(problem.chars().take(LONGEST_PROBLEM).collect()),
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> AnswerFormat {
        AnswerFormat::Schema {
            name: "city".into(),
            description: None,
            schema: json!({
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "people": {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "null"}]},
                    "near": {"type": "array", "items": {"$ref": "#/$defs/place"}},
                },
                "required": ["name", "people"],
                "additionalProperties": false,
                "$defs": {"place": {"type": "string", "minLength": 1}},
            }),
            strict: true,
        }
    }

    #[test]
    fn answer_is_checked_against_its_format() {
        let good = r#"{"name": "Bern", "people": 134000, "near": ["Thun"]}"#;
        let json = || AnswerFormat::Json;
        for (format, text, found) in [
            (json(), "{}", Ok("{}")),
            (json(), " {\"a\": 1}\n", Ok("{\"a\": 1}")),
            (json(), "```json\n{}\n```", Ok("{}")),
            (json(), "```\n{}\n```", Ok("{}")),
            (json(), "[1]", Err("not a JSON object")),
            (json(), "Bern.", Err("not JSON: ")),
            (json(), "{} and more", Err("not JSON: ")),
            (json(), "", Err("not JSON: ")),
            (schema(), good, Ok(good)),
            (
                schema(),
                r#"{"name": "Bern"}"#,
                Err("the field \"people\" is missing"),
            ),
            (
                schema(),
                r#"{"name": "Bern", "people": -1}"#,
                Err("the field \"people\" must match at least one"),
            ),
            (
                schema(),
                r#"{"name": "Bern", "people": null, "near": [""]}"#,
                Err("the field \"near[0]\" must have at least 1"),
            ),
            (schema(), "{}", Err("is missing")),
        ] {
            let checked = find(&format, text);
            match found {
                Ok(answer) => assert_eq!(checked, Ok(answer)),
                Err(problem) => {
                    let said = checked.unwrap_err();
                    assert!(said.contains(problem), "{text}: {said}");
                }
            }
        }
    }
}
