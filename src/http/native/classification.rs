//! What a query was taken for, as `/api` tells it.

use serde::Serialize;
use utoipa::ToSchema;

use super::shapes::UsageObject;
use crate::model::{
    QueryClassification,
    record::{OpinionOutcome, SecondOpinion},
};

/// What a query was taken for.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Classification)]
pub(super) struct ClassificationObject {
    /// `code`, `documentation`, `research`, `conversational` or `action`.
    query_type: &'static str,
    /// It needs the code.
    needs_code: bool,
    /// It needs notes and documents.
    needs_vault: bool,
    /// It needs the web.
    needs_web: bool,
    /// How sure, from 0 to 1.
    confidence: f64,
    /// What spoke for it.
    keywords_matched: Vec<String>,
}

impl From<QueryClassification> for ClassificationObject {
    fn from(of: QueryClassification) -> Self {
        Self {
            query_type: of.query_type.as_str(),
            needs_code: of.needs.needs_code,
            needs_vault: of.needs.needs_vault,
            needs_web: of.needs.needs_web,
            confidence: of.confidence,
            keywords_matched: of.keywords_matched,
        }
    }
}

/// What came of asking a model what a query is.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SecondOpinion)]
pub(super) struct SecondOpinionObject {
    /// The model asked, as `provider/model`.
    model: String,
    /// `agreed`, `changed`, `not_understood`, `late` or `failed`.
    outcome: &'static str,
    /// What the query was taken for before, where that was changed.
    from: Option<&'static str>,
    /// What was said, where it was none of the five types.
    said: Option<String>,
    /// The code of the fault, where it failed.
    code: Option<String>,
    /// What was the matter then.
    detail: Option<String>,
    /// What it used; part of the query's usage.
    usage: UsageObject,
}

impl From<SecondOpinion> for SecondOpinionObject {
    fn from(of: SecondOpinion) -> Self {
        let mut object = Self {
            model: of.model,
            outcome: "agreed",
            from: None,
            said: None,
            code: None,
            detail: None,
            usage: of.usage.into(),
        };
        match of.outcome {
            OpinionOutcome::Agreed => {}
            OpinionOutcome::Changed { from } => {
                (object.outcome, object.from) = ("changed", Some(from.as_str()));
            }
            OpinionOutcome::NotUnderstood { said } => {
                (object.outcome, object.said) = ("not_understood", Some(said));
            }
            OpinionOutcome::Late => object.outcome = "late",
            OpinionOutcome::Failed { code, detail } => {
                object.outcome = "failed";
                (object.code, object.detail) = (Some(code), Some(detail));
            }
        }
        object
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::model::{QueryType, Usage};

    #[test]
    fn each_outcome_of_a_second_opinion_is_told_with_its_own() {
        for (outcome, want) in [
            (OpinionOutcome::Agreed, json!({"outcome": "agreed"})),
            (
                OpinionOutcome::Changed {
                    from: QueryType::Code,
                },
                json!({"outcome": "changed", "from": "code"}),
            ),
            (
                OpinionOutcome::NotUnderstood { said: "hm".into() },
                json!({"outcome": "not_understood", "said": "hm"}),
            ),
            (OpinionOutcome::Late, json!({"outcome": "late"})),
            (
                OpinionOutcome::Failed {
                    code: "http_401".into(),
                    detail: "no key".into(),
                },
                json!({"outcome": "failed", "code": "http_401", "detail": "no key"}),
            ),
        ] {
            let opinion = SecondOpinion {
                model: "p/judge".into(),
                outcome,
                usage: Usage {
                    input_tokens: 90,
                    ..Usage::default()
                },
            };
            let told = serde_json::to_value(SecondOpinionObject::from(opinion)).unwrap();
            let Value::Object(mut told) = told else {
                panic!("{told}");
            };
            assert_eq!(told["model"], "p/judge");
            assert_eq!(told.remove("usage").unwrap()["input_tokens"], 90);
            told.remove("model");
            told.retain(|_, value| !value.is_null());
            assert_eq!(Value::Object(told), want);
        }
    }
}
