//! Signatures of Standard Webhooks from the receiver's side, written for it alone: base 64 is read here,
//! where the sender writes it.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::Received;

/// What a secret `whsec_..` signs; nothing when it is none.
///
/// # Panics
/// Never: HMAC takes keys of any length.
pub fn sign(secret: &str, id: &str, timestamp: &str, body: &[u8]) -> Option<Vec<u8>> {
    let key = unbase64(secret.strip_prefix("whsec_")?)?;
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("HMAC takes keys of any length");
    for part in [id.as_bytes(), b".", timestamp.as_bytes(), b".", body] {
        mac.update(part);
    }
    Some(mac.finalize().into_bytes().to_vec())
}

/// Whether a request has a signature by one of these secrets.
pub fn is_by_one_of(secrets: &[&str], request: &Received) -> bool {
    let offered = request.signature.split(' ');
    let offered: Vec<Vec<u8>> = offered
        .filter_map(|one| unbase64(one.strip_prefix("v1,")?))
        .collect();
    let mut expected = secrets
        .iter()
        .filter_map(|secret| sign(secret, &request.id, &request.timestamp, &request.body));
    expected.any(|one| offered.contains(&one))
}

/// Bytes in base 64 with padding.
pub(super) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bit = |at: usize| {
        let byte = bytes.get(at / 8).copied().unwrap_or_default();
        usize::from(byte >> (7 - at % 8) & 1)
    };
    let six = |at: usize| (6 * at..6 * at + 6).fold(0, |six, at| six * 2 + bit(at));
    let digits = (0..(bytes.len() * 8).div_ceil(6)).map(six);
    let digits = digits.filter_map(|six| DIGITS.get(six).copied().map(char::from));
    let mut text: String = digits.collect();
    while !text.len().is_multiple_of(4) {
        text.push('=');
    }
    text
}

/// Base 64 with padding; nothing when it is none.
fn unbase64(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let bare = text.trim_end_matches('=');
    let (mut bits, mut count, mut bytes) = (0_u32, 0, Vec::new());
    for digit in bare.bytes() {
        let six = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = ((bits << 6) | u32::from(six)) & 0xffff;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from((bits >> count) & 0xff).ok()?);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the convention's own documentation, computed anew with openssl: the key is that of
    /// the secret in base 64, the message `msg_p5jXN8AQM9LWM0D4loKWxJek.1614265330.{"test": 2432232314}`.
    #[test]
    fn a_known_signature() {
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        let id = "msg_p5jXN8AQM9LWM0D4loKWxJek";
        let body = br#"{"test": 2432232314}"#;
        let signature = sign(secret, id, "1614265330", body).unwrap();
        let known = "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
        assert_eq!(signature, unbase64(known).unwrap());
        assert_ne!(signature, sign(secret, id, "1614265331", body).unwrap());
    }

    #[test]
    fn base_64_is_read() {
        for (text, bytes) in [
            ("", &b""[..]),
            ("Zg==", b"f"),
            ("Zm8=", b"fo"),
            ("+//+", &[251, 255, 254]),
        ] {
            assert_eq!(unbase64(text).as_deref(), Some(bytes), "{text}");
        }
        for text in ["Zg", "Z-==", "Zm8 "] {
            assert_eq!(unbase64(text), None, "{text}");
        }
    }
}
