//! Says why TLS could not be used, in words of its own, and what to do.
//!
//! Every text is `what; remedy` and follows the address of the server.

use std::io::{Error, ErrorKind};

use rustls::{AlertDescription, CertificateError};

/// Returns why TLS could not be used, if the failure is about it.
pub(crate) fn why(error: &Error) -> Option<String> {
    let error = error.get_ref()?.downcast_ref::<rustls::Error>()?;
    Some(match error {
        rustls::Error::InvalidCertificate(error) => certificate(error),
        rustls::Error::InvalidMessage(_) => NO_TLS.to_owned(),
        rustls::Error::AlertReceived(alert) => refused(*alert).to_owned(),
        rustls::Error::PeerIncompatible(_) => OLD_TLS.to_owned(),
        _ => CHECK.to_owned(),
    })
}

/// Whether the server closed the connection instead of answering, as one does that expects TLS.
pub(crate) fn is_closed(error: &Error) -> bool {
    use ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};

    matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof)
}

fn certificate(error: &CertificateError) -> String {
    use CertificateError as E;

    let what = match error {
        // An authority of the same name has another key.
        E::UnknownIssuer | E::BadSignature => UNKNOWN_AUTHORITY,
        E::Expired | E::ExpiredContext { .. } => {
            "has a certificate that has expired; renew it, or set the clock of this machine"
        }
        E::NotValidYet | E::NotValidYetContext { .. } => {
            "has a certificate that is not valid yet; set the clock of this machine"
        }
        E::NotValidForNameContext { presented, .. } => return other_names(presented),
        E::NotValidForName => return other_names(&[]),
        // The library hides the kind; its debug output is the name of it.
        E::Other(other) if format!("{other:?}").contains("CaUsedAsEndEntity") => {
            "has the certificate of an authority (CA:TRUE) instead of one for a server; give the \
             server a certificate that the authority signed"
        }
        _ => CHECK,
    };
    what.to_owned()
}

/// The certificate is for other hosts, given as `DnsName("a.example")` or `IpAddress(10.0.0.1)`.
fn other_names(presented: &[String]) -> String {
    let plain = |name: &String| {
        let inner = name.split_once('(').and_then(|(_, inner)| inner.strip_suffix(')'));
        inner.unwrap_or(name).trim_matches('"').to_owned()
    };
    let names: Vec<String> = presented.iter().take(MAX_NAMES).map(plain).collect();
    let use_which = match names.len() {
        0 => return format!("has a certificate for no host; {ISSUE_ANOTHER}"),
        1 => "use that name",
        _ => "use one of these names",
    };
    let names = names.join(", ");
    format!("has a certificate for {names}; {use_which} as the host in the store's URL")
}

/// What the server answered in the language of TLS.
const fn refused(alert: AlertDescription) -> &'static str {
    use AlertDescription as A;

    match alert {
        A::CertificateRequired | A::BadCertificate | A::NoCertificate => {
            "requires a certificate of its clients, and Standpipe has none; set `tls-auth-clients \
             no` on the server, and a password"
        }
        A::ProtocolVersion | A::HandshakeFailure | A::InsufficientSecurity => OLD_TLS,
        _ => CHECK,
    }
}

/// More names of a certificate are not shown.
const MAX_NAMES: usize = 3;

const UNKNOWN_AUTHORITY: &str = "has a certificate that is signed by an unknown authority; set \
                                 `ca` in [store] to the file with that authority's certificate";

const NO_TLS: &str = "does not speak TLS; write redis instead of rediss in the store's URL";

const OLD_TLS: &str = "speaks no version of TLS that is safe; enable TLS 1.2 or 1.3 on the server";

const ISSUE_ANOTHER: &str = "give the server a certificate with the host of the store's URL";

const CHECK: &str = "has a certificate or TLS settings that cannot be used; see its log, and what \
                     it presents: openssl s_client -connect HOST:PORT";

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rustls::pki_types::ServerName;
    use rustls::{InvalidMessage, OtherError, PeerIncompatible};

    use super::*;

    #[derive(Debug)]
    struct CaUsedAsEndEntity;

    impl std::fmt::Display for CaUsedAsEndEntity {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("words of the library")
        }
    }

    impl std::error::Error for CaUsedAsEndEntity {}

    fn names(presented: &[&str]) -> rustls::Error {
        let expected = ServerName::try_from("here.example").unwrap();
        let presented = presented.iter().map(ToString::to_string).collect();
        CertificateError::NotValidForNameContext { expected, presented }.into()
    }

    #[test]
    fn what_is_wrong_with_tls_is_said_in_own_words_with_a_remedy() {
        let of_ca = CertificateError::Other(OtherError(Arc::new(CaUsedAsEndEntity)));
        for (error, what, remedy) in [
            (CertificateError::UnknownIssuer.into(), "an unknown authority", "`ca` in [store]"),
            (CertificateError::Expired.into(), "has expired", "renew it"),
            (CertificateError::NotValidYet.into(), "not valid yet", "the clock"),
            (CertificateError::Revoked.into(), "cannot be used", "openssl s_client"),
            (of_ca.into(), "of an authority (CA:TRUE)", "that the authority signed"),
            (names(&["DnsName(\"a.example\")"]), "certificate for a.example;", "use that name"),
            (
                names(&["DnsName(\"a.example\")", "IpAddress(10.0.0.1)"]),
                "certificate for a.example, 10.0.0.1;",
                "use one of these names",
            ),
            (names(&[]), "for no host", "with the host of the store's URL"),
            (InvalidMessage::InvalidContentType.into(), "does not speak TLS", "redis instead of"),
            (
                rustls::Error::AlertReceived(AlertDescription::CertificateRequired),
                "requires a certificate of its clients",
                "`tls-auth-clients no`",
            ),
            (
                PeerIncompatible::ServerDoesNotSupportTls12Or13.into(),
                "no version of TLS",
                "TLS 1.2 or 1.3",
            ),
            (rustls::Error::DecryptError, "cannot be used", "see its log"),
        ] {
            let error: rustls::Error = error;
            let shown = why(&Error::new(ErrorKind::InvalidData, error.clone())).unwrap();
            let (before, after) = shown.split_once("; ").unwrap();
            assert!(format!("{before};").contains(what), "{error:?}: {shown}");
            assert!(after.contains(remedy), "{error:?}: {shown}");
            assert!(!shown.contains("library") && !shown.contains("DnsName"), "{shown}");
        }
        assert_eq!(why(&Error::from(ErrorKind::ConnectionReset)), None);
    }
}
