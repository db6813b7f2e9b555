//! Trusted certificate authorities: the platform's, or Mozilla's bundled ones where it has none,
//! and those that a provider configures.

use std::sync::{Arc, OnceLock};

use rustls::{
    ClientConfig, Error, RootCertStore,
    client::danger::ServerCertVerifier,
    crypto::{CryptoProvider, ring},
    pki_types::{
        CertificateDer,
        pem::{self, PemObject},
    },
};
use rustls_platform_verifier::Verifier;

use super::{ProviderSettings, SetupError};

type Authorities = Vec<CertificateDer<'static>>;

pub(super) fn tls(settings: &ProviderSettings) -> Result<ClientConfig, SetupError> {
    let provider = settings.name.clone();
    let Some(pem) = &settings.authorities else {
        return plain().map_err(|why| SetupError::Client { provider, why });
    };
    match read(pem) {
        Ok(authorities) => new(authorities).map_err(|why| SetupError::Client { provider, why }),
        Err(why) => Err(SetupError::Authorities { provider, why }),
    }
}

/// TLS with the authorities of the machine, and those of a PEM file.
///
/// # Errors
/// What is wrong with the file or the machine's authorities.
pub fn trusted(pem: Option<&[u8]>) -> Result<ClientConfig, String> {
    match pem {
        None => plain(),
        Some(pem) => new(read(pem)?),
    }
}

/// Built once, because reading the platform's authorities takes milliseconds.
pub(super) fn plain() -> Result<ClientConfig, String> {
    static CONFIG: OnceLock<Result<ClientConfig, String>> = OnceLock::new();
    CONFIG.get_or_init(|| new(Vec::new())).clone()
}

fn read(pem: &[u8]) -> Result<Authorities, String> {
    let read: Result<Authorities, _> = CertificateDer::pem_slice_iter(pem).collect();
    let authorities = read.map_err(|error| match error {
        pem::Error::MissingSectionEnd { .. } => "one of them is incomplete".to_owned(),
        error => error.to_string(),
    })?;
    if authorities.is_empty() {
        return Err("it contains none".to_owned());
    }
    // Checks that each could be bundled, even where the platform's verifier accepts it.
    bundled(authorities.clone())?;
    Ok(authorities)
}

fn new(authorities: Authorities) -> Result<ClientConfig, String> {
    let crypto = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&crypto))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let mut config = match platform(&authorities, crypto) {
        Ok(platform) => builder
            .dangerous()
            .with_custom_certificate_verifier(platform)
            .with_no_client_auth(),
        Err(_) => builder
            .with_root_certificates(bundled(authorities)?)
            .with_no_client_auth(),
    };
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// With extra authorities a verifier would succeed even on a platform without any, and the bundled
/// ones would be skipped.
fn platform(
    authorities: &Authorities,
    crypto: Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, Error> {
    let platform = Verifier::new(Arc::clone(&crypto))?;
    if authorities.is_empty() {
        return Ok(Arc::new(platform));
    }
    let extended = Verifier::new_with_extra_roots(authorities.iter().cloned(), crypto)?;
    Ok(Arc::new(extended))
}

fn bundled(authorities: Authorities) -> Result<RootCertStore, String> {
    let mut roots: RootCertStore = webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect();
    for authority in authorities {
        roots.add(authority).map_err(|error| error.to_string())?;
    }
    Ok(roots)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_certificate_is_refused() {
        for (pem, why) in [
            ("", "it contains none"),
            ("a key\n", "it contains none"),
            (
                "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
                "invalid peer certificate: BadEncoding",
            ),
            (
                "-----BEGIN CERTIFICATE-----\nAAAA\n",
                "one of them is incomplete",
            ),
        ] {
            assert_eq!(read(pem.as_bytes()).unwrap_err(), why, "{pem}");
        }
    }

    #[test]
    fn bundled_root_certificates_replace_missing_platform_ones() {
        assert!(bundled(Vec::new()).unwrap().len() > 50);
    }
}
