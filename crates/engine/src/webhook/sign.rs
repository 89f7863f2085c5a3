//! Signatures by Standard Webhooks: HMAC-SHA-256 over id, time and body, once for each secret that
//! counts, so that a secret can be changed without a gap.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use soldonce_core::Timestamp;

use super::MessageId;

/// What an endpoint's owner is shown: `whsec_` and the secret in base 64.
pub(crate) fn secret_text(secret: &[u8; 32]) -> String {
    format!("whsec_{}", base64(secret))
}

/// The header `webhook-signature`: one `v1` for each secret, newest first.
pub(crate) fn signatures(
    secrets: &[[u8; 32]],
    message: MessageId,
    at: Timestamp,
    body: &str,
) -> String {
    let one = |secret: &[u8; 32]| {
        let mut mac =
            Hmac::<Sha256>::new_from_slice(secret).expect("HMAC takes keys of any length");
        mac.update(format!("{message}.{}.", seconds(at)).as_bytes());
        mac.update(body.as_bytes());
        format!("v1,{}", base64(&mac.finalize().into_bytes()))
    };
    secrets.iter().map(one).collect::<Vec<_>>().join(" ")
}

/// The header `webhook-timestamp`.
pub(super) fn seconds(at: Timestamp) -> i64 {
    at.ms().div_euclid(1_000)
}

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Base 64 with padding (RFC 4648, 4).
fn base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let bits = (0..3).fold(0_u32, |bits, at| {
            (bits << 8) | chunk.get(at).copied().map_or(0, u32::from)
        });
        for at in 0..4_usize {
            let six = usize::try_from((bits >> (18 - 6 * at)) & 63).unwrap_or(0);
            let digit = DIGITS.get(six).copied().map_or('=', char::from);
            text.push(if at <= chunk.len() { digit } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 4648, 10.
    #[test]
    fn base_64_is_that_of_the_standard() {
        let pairs = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ];
        for (plain, text) in pairs {
            assert_eq!(base64(plain.as_bytes()), text);
        }
        assert_eq!(base64(&[0xfb, 0xff, 0xfe]), "+//+");
    }

    #[test]
    fn each_secret_signs_id_time_and_body() {
        let id = MessageId::from_bytes([7; 16]);
        let at = Timestamp::from_ms(1_700_000_000_999);
        let of = |secrets: &[[u8; 32]], body| signatures(secrets, id, at, body);
        let both = of(&[[1; 32], [2; 32]], "{}");
        let single = [of(&[[1; 32]], "{}"), of(&[[2; 32]], "{}")];
        assert_eq!(both, single.join(" "));
        assert_ne!(single[0], of(&[[1; 32]], "{ }"));
        // The second counts, not the millisecond: that is what the receiver is told.
        let same = signatures(&[[1; 32]], id, Timestamp::from_ms(1_700_000_000_000), "{}");
        assert_eq!(single[0], same);
        let later = signatures(&[[1; 32]], id, Timestamp::from_ms(1_700_000_001_000), "{}");
        assert_ne!(single[0], later);
    }
}
