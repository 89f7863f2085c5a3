//! Secrets derived from the ledger's master keys and therefore never stored: of holds and bookings,
//! shoppers' sessions, signing secrets of webhooks. None is logged or shown in `Debug`.

use std::sync::Arc;

use hmac::{Hmac, KeyInit, Mac};
use secrecy::ExposeSecret;
use sha2::Sha256;
use soldonce_core::{BookingId, CallerId, HoldId, HolderName, Timestamp, decode_128, encode_128};
use subtle::ConstantTimeEq;

use crate::ledger::MasterKey;
use crate::webhook::EndpointId;

/// Derives and checks secrets. Old key versions still open the secrets that they made.
#[derive(Clone)]
pub struct Secrets {
    /// Newest first; never empty.
    keys: Arc<[KeyMacs]>,
    /// A number that tells the ledger from others.
    ledger: u64,
}

/// A master key, hashed in with each label: each secret after that costs half the hashing.
struct KeyMacs {
    hold: Hmac<Sha256>,
    booking: Hmac<Sha256>,
    session: Hmac<Sha256>,
    webhook: Hmac<Sha256>,
}

impl KeyMacs {
    fn new(key: &MasterKey) -> Self {
        Self {
            hold: keyed(key, b"soldonce hold secret"),
            booking: keyed(key, b"soldonce booking secret"),
            session: keyed(key, b"soldonce session"),
            webhook: keyed(key, b"soldonce webhook secret"),
        }
    }
}

/// Starts HMAC-SHA-256 under a master key. The label keeps kinds of secrets apart.
fn keyed(key: &MasterKey, label: &[u8]) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key.secret.expose_secret())
        .expect("HMAC takes keys of any length");
    mac.update(label);
    mac
}

/// A shopper's session, as its token contains it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Its id as a caller.
    pub caller: CallerId,
    /// The one holder it acts for.
    pub holder: HolderName,
    /// The time from which on it is refused.
    pub expires_at: Timestamp,
}

impl Session {
    /// Creates the session of this caller.
    ///
    /// # Panics
    /// Never: every caller's name in base 32 is a legal holder.
    pub fn new(caller: CallerId, expires_at: Timestamp) -> Self {
        let bits = encode_128(u128::from_be_bytes(*caller.bytes()));
        let holder = HolderName::parse(&format!("shopper-{bits}")).expect("base 32 is legal");
        Self {
            caller,
            holder,
            expires_at,
        }
    }
}

impl Secrets {
    /// Takes a ledger's master keys, newest first.
    pub fn new(keys: &[MasterKey]) -> Self {
        // The oldest key is kept as long as anything it made.
        let oldest = keys.last();
        let name = oldest.map_or(0, |key| derive(&keyed(key, b"soldonce ledger"), &[]));
        Self {
            keys: keys.iter().map(KeyMacs::new).collect(),
            ledger: u64::try_from(name >> 64).unwrap_or_default(),
        }
    }

    /// Returns a number that all servers of this ledger share, and no other ledger's. Not secret.
    pub fn ledger(&self) -> u64 {
        self.ledger
    }

    /// Derives the secret of a hold: 128 bits of HMAC-SHA-256 over its id (model.md 1).
    pub fn of_hold(&self, hold: HoldId) -> String {
        let secret = self.newest(|key| &key.hold, hold.bytes());
        format!("hs_{secret}")
    }

    /// Tells whether `text` is the secret of `hold`, under any key version; in constant time.
    pub fn opens_hold(&self, hold: HoldId, text: &str) -> bool {
        let offered = text.strip_prefix("hs_").and_then(decode_128);
        offered.is_some_and(|offered| self.matches(|key| &key.hold, hold.bytes(), offered))
    }

    /// Derives the secret of a booking, valid for as long as it is kept: a buyer's link carries it.
    pub fn of_booking(&self, booking: BookingId) -> String {
        let secret = self.newest(|key| &key.booking, booking.bytes());
        format!("bs_{secret}")
    }

    /// Tells whether `text` is the secret of `booking`, under any key version; in constant time.
    pub fn opens_booking(&self, booking: BookingId, text: &str) -> bool {
        let offered = text.strip_prefix("bs_").and_then(decode_128);
        offered.is_some_and(|offered| self.matches(|key| &key.booking, booking.bytes(), offered))
    }

    /// Builds the token of a session: caller, end and HMAC.
    pub fn session_token(&self, session: &Session) -> String {
        let message = session_message(session.caller, session.expires_at);
        let proof = self.newest(|key| &key.session, &message);
        let caller = encode_128(u128::from_be_bytes(*session.caller.bytes()));
        format!("ses_{caller}.{}.{proof}", session.expires_at.ms())
    }

    /// Checks the token of a session; `None` if it is forged or expired at `now`.
    pub fn open_session(&self, token: &str, now: Timestamp) -> Option<Session> {
        let mut parts = token.strip_prefix("ses_")?.split('.');
        let caller = CallerId::from_bits(decode_128(parts.next()?)?);
        let expires_at = Timestamp::from_ms(parts.next()?.parse().ok()?);
        let proof = decode_128(parts.next()?)?;
        if parts.next().is_some() {
            return None;
        }
        let message = session_message(caller, expires_at);
        let genuine = self.matches(|key| &key.session, &message, proof);
        (genuine && now < expires_at).then(|| Session::new(caller, expires_at))
    }

    /// Derives the signing secrets of a webhook endpoint after `rotation` rotations, newest key
    /// version first. The first is the one that its owner is shown.
    pub(crate) fn of_endpoint(&self, endpoint: EndpointId, rotation: u32) -> Vec<[u8; 32]> {
        let one = |key: &KeyMacs| {
            let mut mac = key.webhook.clone();
            mac.update(endpoint.bytes());
            mac.update(&rotation.to_be_bytes());
            mac.finalize().into_bytes().into()
        };
        self.keys.iter().map(one).collect()
    }

    /// Computes the code of `message` under the newest key.
    fn newest(&self, kind: fn(&KeyMacs) -> &Hmac<Sha256>, message: &[u8]) -> String {
        let newest = self.keys.first();
        encode_128(newest.map_or(0, |key| derive(kind(key), message)))
    }

    fn matches(&self, kind: fn(&KeyMacs) -> &Hmac<Sha256>, message: &[u8], offered: u128) -> bool {
        let one = |key: &KeyMacs| {
            derive(kind(key), message)
                .to_be_bytes()
                .ct_eq(&offered.to_be_bytes())
        };
        self.keys
            .iter()
            .map(one)
            .fold(subtle::Choice::from(0), |any, this| any | this)
            .into()
    }
}

fn session_message(caller: CallerId, expires_at: Timestamp) -> Vec<u8> {
    [&caller.bytes()[..], &expires_at.ms().to_be_bytes()[..]].concat()
}

/// Returns the first 128 bits of the code of `message`.
fn derive(keyed: &Hmac<Sha256>, message: &[u8]) -> u128 {
    let mut mac = keyed.clone();
    mac.update(message);
    let digest: [u8; 32] = mac.finalize().into_bytes().into();
    u128::from_be_bytes(digest.first_chunk().copied().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use secrecy::SecretBox;

    use super::*;

    fn secrets(fills: &[u8]) -> Secrets {
        let key = |(version, fill): (u32, &u8)| MasterKey {
            version,
            secret: Arc::new(SecretBox::new(Box::new([*fill; 32]))),
        };
        Secrets::new(&(1..).zip(fills).map(key).collect::<Vec<_>>())
    }

    #[test]
    fn a_hold_is_opened_by_its_own_secret_alone() {
        let secrets = secrets(&[1]);
        let (a, b) = (HoldId::from_bits(1), HoldId::from_bits(2));
        let secret = secrets.of_hold(a);
        assert!(secrets.opens_hold(a, &secret));
        assert!(!secrets.opens_hold(b, &secret));
        for text in [
            "",
            "hs_",
            &secret[3..],
            &secret.to_uppercase(),
            &format!("{secret}0"),
        ] {
            assert!(!secrets.opens_hold(a, text), "{text:?}");
        }
    }

    #[test]
    fn a_booking_is_opened_by_its_own_secret_alone() {
        let secrets = secrets(&[2, 1]);
        let (a, b) = (BookingId::from_bits(1), BookingId::from_bits(2));
        let secret = secrets.of_booking(a);
        assert!(secrets.opens_booking(a, &secret));
        assert!(!secrets.opens_booking(b, &secret));
        // Neither does the secret of a hold with the same bits under another prefix.
        let of_hold = secrets.of_hold(HoldId::from_bits(1));
        assert!(!secrets.opens_booking(a, &of_hold));
        assert!(!secrets.opens_booking(a, &of_hold.replace("hs_", "bs_")));
        assert!(!secrets.opens_hold(HoldId::from_bits(1), &secret.replace("bs_", "hs_")));
    }

    /// Checks that a million secrets have no duplicate, every bit set in half of them, and no byte
    /// value that stands out: six standard deviations, passed by chance once in a million runs.
    #[test]
    fn a_million_secrets_look_random() {
        const COUNT: u64 = 1_000_000;
        let secrets = secrets(&[7]);
        let of = |n: u64| {
            let text = secrets.of_hold(HoldId::from_bits(u128::from(n)));
            decode_128(&text[3..]).unwrap()
        };
        let mut all: Vec<u128> = (0..COUNT).map(of).collect();
        let mut bytes = [0_u64; 256];
        for secret in &all {
            for byte in secret.to_be_bytes() {
                bytes[usize::from(byte)] += 1;
            }
        }
        for bit in 0..128 {
            let set = all.iter().filter(|secret| *secret >> bit & 1 == 1).count();
            let off = u64::try_from(set).unwrap().abs_diff(COUNT / 2);
            assert!(off < 3_000, "bit {bit} is set in {set}");
        }
        for (value, count) in bytes.iter().enumerate() {
            let off = count.abs_diff(COUNT * 16 / 256);
            assert!(off < 1_500, "byte {value:#04x} occurs {count} times");
        }
        all.sort_unstable();
        all.dedup();
        assert_eq!(u64::try_from(all.len()).unwrap(), COUNT);
    }

    #[test]
    fn an_older_key_still_opens_what_it_made() {
        let before = secrets(&[1]);
        let rotated = secrets(&[2, 1]);
        let hold = HoldId::from_bits(9);
        assert!(rotated.opens_hold(hold, &before.of_hold(hold)));
        assert_ne!(rotated.of_hold(hold), before.of_hold(hold));
        assert!(!secrets(&[3]).opens_hold(hold, &before.of_hold(hold)));
    }

    #[test]
    fn each_endpoint_and_each_rotation_has_its_own_secret() {
        let (a, b) = (
            EndpointId::from_bytes([1; 16]),
            EndpointId::from_bytes([2; 16]),
        );
        let of = |keys: &[u8], endpoint, rotation| secrets(keys).of_endpoint(endpoint, rotation);
        let first = of(&[1], a, 0);
        assert_eq!(first, of(&[1], a, 0));
        for other in [of(&[1], b, 0), of(&[1], a, 1), of(&[2], a, 0)] {
            assert_ne!(other, first);
        }
        // What the owner was shown before the master key rotated still signs, behind the new one.
        assert_eq!(of(&[2, 1], a, 0), [of(&[2], a, 0), first].concat());
    }

    #[test]
    fn a_session_ends_and_cannot_be_lengthened() {
        let secrets = secrets(&[1]);
        let end = Timestamp::from_ms(1_000);
        let session = Session::new(CallerId::from_bits(7), end);
        let token = secrets.session_token(&session);
        assert_eq!(
            secrets.open_session(&token, Timestamp::from_ms(999)),
            Some(session)
        );
        assert_eq!(secrets.open_session(&token, end), None);
        let longer = token.replace(".1000.", ".9000.");
        assert_eq!(secrets.open_session(&longer, Timestamp::from_ms(1)), None);
    }
}
