//! Stripe's signature of notices: HMAC-SHA-256 over the second of signing, a dot and the body.

use std::fmt::Write;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Computes the `v1` value of a body that is signed at `seconds` (Unix time) with this secret.
///
/// # Panics
/// Never: HMAC takes keys of any length.
pub fn v1(secret: &str, seconds: i64, body: &[u8]) -> String {
    let mut mac =
        Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC takes keys of any length");
    mac.update(seconds.to_string().as_bytes());
    mac.update(b".");
    mac.update(body);
    let mut text = String::with_capacity(64);
    for byte in mac.finalize().into_bytes() {
        write!(text, "{byte:02x}").expect("a text takes what is written to it");
    }
    text
}

/// Builds the `Stripe-Signature` header of a body that is signed with these secrets. Stripe sends
/// several while a secret is being replaced.
pub fn header(secrets: &[&str], seconds: i64, body: &[u8]) -> String {
    let mut text = format!("t={seconds}");
    for secret in secrets {
        text.push_str(",v1=");
        text.push_str(&v1(secret, seconds, body));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the output of `printf '1700000000.{}' | openssl dgst -sha256 -hmac whsec_test`.
    #[test]
    fn a_known_signature() {
        assert_eq!(v1("whsec_test", 1_700_000_000, b"{}"), KNOWN);
        let two = header(&["whsec_test", "x"], 1_700_000_000, b"{}");
        assert!(two.starts_with(&format!("t=1700000000,v1={KNOWN},v1=")));
    }

    const KNOWN: &str = "35495024f4ef3f94e5a93e22221544c4b75e9a42300cd965ab81cb85cd994e91";
}
