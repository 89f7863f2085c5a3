//! Signatures by Standard Webhooks: HMAC-SHA-256 over id, time and body, once for each valid
//! secret, so that a secret can be changed without a gap.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use soldonce_core::Timestamp;

use super::MessageId;

/// Writes the secret as an endpoint's owner is shown it: `whsec_` and base 64.
pub(crate) fn secret_text(secret: &[u8; 32]) -> String {
    format!("whsec_{}", STANDARD.encode(secret))
}

/// Writes the header `webhook-signature`: one `v1` for each secret, newest first.
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
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    };
    secrets.iter().map(one).collect::<Vec<_>>().join(" ")
}

/// Converts a time to the seconds of the header `webhook-timestamp`.
pub(super) fn seconds(at: Timestamp) -> i64 {
    at.ms().div_euclid(1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

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
