//! Which certificates a server may have.

use std::sync::Arc;

use rustls::crypto::ring::default_provider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

/// Returns the settings for connections to servers whose certificate this authority signed (PEM),
/// or one of the system's.
///
/// # Errors
/// What is wrong with the authority.
pub(crate) fn client_config(authority: Option<&[u8]>) -> Result<Arc<ClientConfig>, String> {
    let mut roots = RootCertStore::empty();
    match authority {
        Some(pem) => {
            for certificate in CertificateDer::pem_slice_iter(pem) {
                let certificate = certificate.map_err(|_| unusable("is not a PEM file"))?;
                let added = roots.add(certificate);
                added.map_err(|_| unusable("contains a certificate that cannot be read"))?;
            }
            if roots.is_empty() {
                return Err(unusable("contains no certificate"));
            }
        }
        None => {
            let system = rustls_native_certs::load_native_certs();
            roots.add_parsable_certificates(system.certs);
            if roots.is_empty() {
                return Err(NO_AUTHORITIES.to_owned());
            }
        }
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()));
    let builder = builder.with_safe_default_protocol_versions().map_err(|e| e.to_string())?;
    Ok(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
}

fn unusable(what: &str) -> String {
    format!(
        "the file that `ca` of [store] names {what}; name the PEM file of the authority that \
         signed the server's certificate, which has lines -----BEGIN CERTIFICATE-----"
    )
}

const NO_AUTHORITIES: &str = "this system has no certificate authorities; set `ca` in [store] to \
                              the file of the authority that signed the server's certificate";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_an_authority_is_refused_with_a_remedy() {
        let broken = b"-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----\n";
        let short = b"-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n";
        for (pem, what) in [
            (&b"no PEM at all"[..], "contains no certificate"),
            (b"", "contains no certificate"),
            (broken, "is not a PEM file"),
            (short, "a certificate that cannot be read"),
        ] {
            let error = client_config(Some(pem)).unwrap_err();
            let (before, remedy) = error.split_once("; ").unwrap();
            assert!(before.contains(what) && remedy.contains("BEGIN CERTIFICATE"), "{error}");
        }
    }
}
