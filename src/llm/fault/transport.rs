//! Faults of the connection: no response arrived, or it broke off.

use std::{error::Error, io, time::Duration};

use super::{Code, cause, cut};
use crate::model::Fault;

pub(in crate::llm) fn of_send(error: &reqwest::Error, place: &str) -> Fault {
    let why = cause(error);
    let reach = |code| Fault::unavailable(code, format!("cannot reach {place}: {why}"));
    if error.is_builder() {
        let detail = format!("cannot build a request to {place}: {why}");
        return Fault::permanent(Code::BadRequest, detail);
    }
    if let Some(tls) = tls(error) {
        let detail = format!("cannot establish a secure connection to {place}: {tls}");
        return Fault::permanent(Code::Tls, detail);
    }
    if error.is_dns() {
        return reach(Code::Dns);
    }
    if error.is_connect() {
        return reach(Code::Connect);
    }
    // The server may have read the request.
    let detail = format!("{place} closed the connection before it responded: {why}");
    Fault::unavailable(Code::HungUp, detail)
}

pub(in crate::llm) fn of_body(error: &reqwest::Error) -> Fault {
    Fault::retryable(Code::Cut, format!("{}: {}", cut().detail, cause(error)))
}

pub(in crate::llm) fn headers_late(place: &str, waited: Duration, local: bool) -> Fault {
    let detail = format!(
        "{place} did not respond within {waited:?}; if it needs longer, raise \
         `model.headers_deadline`"
    );
    match local {
        // Repeating the call would make it load the model anew.
        true => Fault::permanent(Code::HeadersTimeout, detail),
        false => Fault::unavailable(Code::HeadersTimeout, detail),
    }
}

fn explain(error: &rustls::Error) -> String {
    use rustls::{CertificateError as Bad, Error::InvalidCertificate};
    match error {
        InvalidCertificate(Bad::UnknownIssuer) => {
            "its certificate is from an untrusted authority; to trust a private authority, set \
             `ca_file`"
        }
        InvalidCertificate(Bad::NotValidForName | Bad::NotValidForNameContext { .. }) => {
            "its certificate is for another host name"
        }
        InvalidCertificate(Bad::Expired | Bad::ExpiredContext { .. }) => {
            "its certificate has expired, or this machine's clock is wrong"
        }
        other => return other.to_string(),
    }
    .to_owned()
}

/// Finds rustls's error among the sources.
fn tls(error: &(dyn Error + 'static)) -> Option<String> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(tls) = error.downcast_ref::<rustls::Error>() {
            return Some(explain(tls));
        }
        let held = error.downcast_ref().and_then(io::Error::get_ref);
        if let Some(found) = held.and_then(|held| tls(held)) {
            return Some(found);
        }
        next = error.source();
    }
    None
}
