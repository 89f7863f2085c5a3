//! Signatures of Standard Webhooks on the receiver's side, which shares no code with the sender's.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::Received;

/// Signs a message (HMAC-SHA-256) with a secret `whsec_..`; `None` if it is no such secret.
///
/// # Panics
/// Never: HMAC takes keys of any length.
pub fn sign(secret: &str, id: &str, timestamp: &str, body: &[u8]) -> Option<Vec<u8>> {
    let key = STANDARD.decode(secret.strip_prefix("whsec_")?).ok()?;
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("HMAC takes keys of any length");
    for part in [id.as_bytes(), b".", timestamp.as_bytes(), b".", body] {
        mac.update(part);
    }
    Some(mac.finalize().into_bytes().to_vec())
}

/// Tells whether a request has a signature by one of these secrets.
pub fn is_by_one_of(secrets: &[&str], request: &Received) -> bool {
    let offered = request.signature.split(' ');
    let offered: Vec<Vec<u8>> = offered
        .filter_map(|one| STANDARD.decode(one.strip_prefix("v1,")?).ok())
        .collect();
    let mut expected = secrets
        .iter()
        .filter_map(|secret| sign(secret, &request.id, &request.timestamp, &request.body));
    expected.any(|one| offered.contains(&one))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the example of the convention's own documentation, computed anew with openssl: the
    /// key is that of the secret in base 64, the message
    /// `msg_p5jXN8AQM9LWM0D4loKWxJek.1614265330.{"test": 2432232314}`.
    #[test]
    fn a_known_signature() {
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        let id = "msg_p5jXN8AQM9LWM0D4loKWxJek";
        let body = br#"{"test": 2432232314}"#;
        let signature = sign(secret, id, "1614265330", body).unwrap();
        let known = "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
        assert_eq!(signature, STANDARD.decode(known).unwrap());
        assert_ne!(signature, sign(secret, id, "1614265331", body).unwrap());
    }
}
