//! The reasons why an attempt got no answer, in one word each, for the log of deliveries.

use std::error::Error;
use std::net::SocketAddr;

use rustls::CertificateError;

/// A name resolves to an address that may not be connected to.
#[derive(Debug, thiserror::Error)]
#[error("the name leads to {0}, which may not be connected to")]
pub(super) struct ForbiddenAddress(pub(super) SocketAddr);

pub(super) fn in_a_word(error: &reqwest::Error) -> &'static str {
    if cause::<ForbiddenAddress>(error).is_some() {
        "forbidden_address"
    } else if let Some(refused) = cause::<rustls::Error>(error) {
        of_tls(refused)
    } else if error.is_timeout() {
        "no_answer_in_time"
    } else if error.is_connect() {
        "no_connection"
    } else {
        "connection_broke"
    }
}

/// Finds the first of its causes that is a `T`.
fn cause<'a, T: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a T> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        // An error of the system that carries another one does not name it as its source.
        let io = error.downcast_ref::<std::io::Error>();
        cause = match io.and_then(std::io::Error::get_ref) {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    None
}

fn of_tls(error: &rustls::Error) -> &'static str {
    let rustls::Error::InvalidCertificate(certificate) = error else {
        return "tls_failed";
    };
    if is_over(certificate) {
        "certificate_expired"
    } else if is_of_another_name(certificate) {
        "certificate_of_another_name"
    } else {
        "certificate_not_trusted"
    }
}

fn is_over(error: &CertificateError) -> bool {
    matches!(
        error,
        CertificateError::Expired | CertificateError::ExpiredContext { .. }
    )
}

fn is_of_another_name(error: &CertificateError) -> bool {
    matches!(
        error,
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. }
    )
}
