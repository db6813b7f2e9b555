//! What the end of a call says of the provider and of the model: what a circuit breaker counts.
//!
//! Faults of the connection are the provider's; a model is away if its server says so or says nothing.
//! What the caller did wrong (4xx), the rate (429), a broken stream and what we ended ourselves are no
//! outage.

use super::{breaker::Health, pump::End};

/// Of the provider as a whole.
pub(super) fn of_provider(end: &End) -> Health {
    match end {
        End::Answered(_) => Health::Fine,
        End::GaveUp | End::Lost => Health::Unknown,
        End::Failed(fault) => match fault.code.as_str() {
            "connect" | "dns" | "tls" | "hung_up" => Health::Failed,
            // It answered.
            "bad_request" | "unauthorized" | "forbidden" | "model_not_found"
            | "request_timeout" | "conflict" | "too_large" | "rate_limited" | "server_error"
            | "overloaded" | "context" | "quota" => Health::Fine,
            _ => Health::Unknown,
        },
    }
}

/// Of the model.
pub(super) fn of_model(end: &End) -> Health {
    match end {
        End::Answered(_) => Health::Fine,
        End::GaveUp | End::Lost => Health::Unknown,
        End::Failed(fault) => match fault.code.as_str() {
            "server_error" | "overloaded" | "stall" | "headers_timeout" => Health::Failed,
            _ => Health::Unknown,
        },
    }
}

/// Whether the call was refused before it cost anything.
pub(super) fn cost_nothing(end: &End) -> bool {
    match end {
        End::Failed(fault) => matches!(
            fault.code.as_str(),
            "connect" | "dns" | "tls" | "rate_limited" | "overloaded" | "unauthorized" | "quota"
        ),
        End::Answered(_) | End::GaveUp | End::Lost => false,
    }
}

/// The code of a refusal for the rate.
pub(super) const RATE_LIMITED: &str = "rate_limited";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Fault, Usage};

    #[test]
    fn whose_fault_it_is() {
        use Health::{Failed, Fine, Unknown};
        let failed = |code: &str| End::Failed(Fault::retryable(code, "it did not work"));
        for (end, provider, model) in [
            (End::Answered(Usage::default()), Fine, Fine),
            (End::GaveUp, Unknown, Unknown),
            (End::Lost, Unknown, Unknown),
            (failed("connect"), Failed, Unknown),
            (failed("dns"), Failed, Unknown),
            (failed("hung_up"), Failed, Unknown),
            (failed("tls"), Failed, Unknown),
            (failed("server_error"), Fine, Failed),
            (failed("overloaded"), Fine, Failed),
            (failed("stall"), Unknown, Failed),
            (failed("headers_timeout"), Unknown, Failed),
            (failed("bad_request"), Fine, Unknown),
            (failed("unauthorized"), Fine, Unknown),
            (failed(RATE_LIMITED), Fine, Unknown),
            (failed("cut"), Unknown, Unknown),
            (failed("bad_stream"), Unknown, Unknown),
        ] {
            let found = (of_provider(&end), of_model(&end));
            assert_eq!(found, (provider, model), "{end:?}");
        }
    }
}
