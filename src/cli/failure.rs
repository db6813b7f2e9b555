//! Describes why a question failed, and what to do about it.

use super::{terminal::one_line, text::cut};
use crate::model::{FaultCode, record::FailedOver};
use oracle_config::Preset;

/// Columns of a provider's own words in a line about a failover.
const CAUSE: usize = 300;

/// Describes a failover with its cause, on one line.
pub(super) fn failover(failed: &FailedOver) -> String {
    let FailedOver {
        fault, from, to, ..
    } = failed;
    let (detail, code) = (one_line(&fault.detail), &fault.code);
    let cause = match detail.split_once(" responded with status ") {
        Some((_, answer)) => {
            let (status, words) = answer.split_at(answer.find(':').unwrap_or(answer.len()));
            format!("{status} {code}{words}")
        }
        None if detail.is_empty() => code.to_string(),
        None => format!("{code}: {detail}"),
    };
    let cause = cut(&cause, CAUSE);
    format!("{from} failed ({cause}); went on with {to}")
}

/// Describes a failure with its code, and advice if the provider or the network caused it.
pub(super) fn failure(code: &FaultCode, detail: &str) -> String {
    let code_text = Some(format!(" ({code})")).filter(|text| !detail.contains(text));
    let (shown, remedy) = (code_text.unwrap_or_default(), remedy(code, detail));
    format!("{detail}{shown}{remedy}")
}

fn remedy(code: &FaultCode, detail: &str) -> String {
    // Only the text of `llm::fault` names the provider.
    let answered = detail.split_once(" responded with status ");
    let preset = answered.and_then(|(provider, _)| Preset::named(provider));
    let key = preset.and_then(|preset| Some((preset.provider().key_env?, preset.keys_url?)));
    match (code, key) {
        (FaultCode::Unauthorized, Some((variable, url))) => format!(
            "; the key in {variable} is invalid or has expired: get a new one at {url}, and run \
             `oracle doctor` to test it"
        ),
        (FaultCode::Forbidden | FaultCode::Quota, Some((variable, url))) => format!(
            "; check the permissions of the key in {variable} and the account's credit at {url}"
        ),
        (FaultCode::Unauthorized | FaultCode::Forbidden | FaultCode::Quota, None) => {
            "; run `oracle doctor` to see which key was used".to_owned()
        }
        (FaultCode::ModelNotFound, _) => "; run `oracle models` for a list".to_owned(),
        _ if detail.contains("cannot reach http") => {
            "; check the address and the network connection, or use `--model offline`".to_owned()
        }
        (FaultCode::Tls | FaultCode::HeadersTimeout, _) => {
            "; run `oracle doctor` to test the connection".to_owned()
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failure_says_what_to_do() {
        for (code, detail, remedy) in [
            (
                "unauthorized",
                "openai responded with status 401: no",
                "; the key in OPENAI_API_KEY is invalid or has expired: get a new one at \
                 https://platform.openai.com/api-keys, and run `oracle doctor` to test it",
            ),
            (
                "forbidden",
                "anthropic responded with status 403",
                "; check the permissions of the key in ANTHROPIC_API_KEY and the account's credit at \
                 https://console.anthropic.com/settings/keys",
            ),
            (
                "unauthorized",
                "my-server responded with status 401",
                "; run `oracle doctor` to see which key was used",
            ),
            (
                "model_not_found",
                "openai responded with status 404",
                "; run `oracle models` for a list",
            ),
            (
                "unavailable",
                "`openai/x` has been unavailable for 5 s; last error: cannot reach \
                 https://api.openai.com/v1: no such host",
                "; check the address and the network connection, or use `--model offline`",
            ),
            (
                "connect",
                "cannot reach http://127.0.0.1:11434/v1: connection refused",
                "; check the address and the network connection, or use `--model offline`",
            ),
            (
                "unavailable",
                "last error: openai responded with status 503",
                "",
            ),
        ] {
            let said = failure(&code.into(), detail);
            assert_eq!(said, format!("{detail} ({code}){remedy}"));
        }
        let named = failure(&"overloaded".into(), "later (overloaded)");
        assert_eq!(named, "later (overloaded)");
    }

    #[test]
    fn failover_has_its_cause_on_one_line() {
        for (code, detail, cause) in [
            (
                "rate_limited",
                "openai responded with status 429: Slow\ndown,\u{1b}[2J please",
                "429 rate_limited: Slow down,\u{fffd}[2J please",
            ),
            (
                "overloaded",
                "openai responded with status 503",
                "503 overloaded",
            ),
            (
                "connect",
                "cannot reach http://127.0.0.1:1: connection refused",
                "connect: cannot reach http://127.0.0.1:1: connection refused",
            ),
        ] {
            let failed = FailedOver {
                attempt: crate::model::Attempt(0),
                fault: crate::model::Fault::permanent(code, detail),
                from: "openai/a".into(),
                to: "local/b".into(),
                usage: crate::model::Usage::default(),
            };
            let expected = format!("openai/a failed ({cause}); went on with local/b");
            assert_eq!(failover(&failed), expected);
        }
    }
}
