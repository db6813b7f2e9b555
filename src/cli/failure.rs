//! Describes why a question failed.

use crate::model::FaultCode;

/// Describes a failure with its code, and advice if the provider caused it.
pub(super) fn failure(code: &FaultCode, detail: &str) -> String {
    let remedy = match code {
        FaultCode::Unauthorized | FaultCode::Forbidden | FaultCode::Quota => {
            "; run `oracle doctor` to see which key was used"
        }
        FaultCode::ModelNotFound => "; run `oracle models` for a list",
        FaultCode::Connect | FaultCode::Dns | FaultCode::Tls | FaultCode::HeadersTimeout => {
            "; run `oracle doctor` to test the connection"
        }
        _ => "",
    };
    format!("{detail} ({code}){remedy}")
}
