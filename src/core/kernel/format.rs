//! The format of an answer: the instructions for the model, and the check of its answer.

use serde_json::Value;

use super::schema::{Checked, Work, check_answer};
use crate::model::{AnswerFormat, json};

/// Maximum length of a problem in the guidance, in characters.
const LONGEST_PROBLEM: usize = 500;

/// The instructions for a format, which precede the question.
pub(super) fn instruction(format: &AnswerFormat) -> Option<String> {
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
        "# Format of the next answer\n\nA program reads the answer to the next question. The reply that gives it must be {what}, \
         without other text, code fence or signal. Replies that only call tools are not \
         affected.{schema}"
    ))
}

/// Checks an answer and returns its JSON, without the code fence that many models put around it.
pub(super) fn check<'a>(format: &AnswerFormat, text: &'a str, work: &mut Work) -> Checked<&'a str> {
    let wrong = |what: String| Some(what.chars().take(LONGEST_PROBLEM).collect::<String>());
    let text = text.trim();
    let fenced = text.strip_prefix("```");
    let fenced = fenced.and_then(|text| text.strip_suffix("```"));
    let fenced = fenced.map(|text| text.strip_prefix("json").unwrap_or(text).trim());
    let text = fenced.unwrap_or(text);
    let value: Value = json::read(text).map_err(|error| wrong(format!("not JSON: {error}")))?;
    match format {
        AnswerFormat::Text => Ok(text),
        AnswerFormat::Json if value.is_object() => Ok(text),
        AnswerFormat::Json => Err(wrong("not a JSON object".to_owned())),
        AnswerFormat::Schema { schema, .. } => {
            let checked = check_answer(schema, &value, work);
            checked.map_err(|why| why.and_then(wrong)).map(|()| text)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kernel::DecisionContext;

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
        let many = format!("[{}0]", r#"{"":0},"#.repeat(100_000));
        for (format, text, found) in [
            (json(), &*many, Err("more than 65536 values")),
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
            let checked = check(&format, text, &mut Work::new(DecisionContext::MOST_WORK));
            match found {
                Ok(answer) => assert_eq!(checked, Ok(answer)),
                Err(problem) => {
                    let Err(Some(said)) = checked else {
                        panic!("{text}: {checked:?}");
                    };
                    assert!(said.contains(problem), "{text}: {said}");
                }
            }
        }
    }
}
