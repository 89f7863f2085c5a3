//! A certificate authority of one test: X.509 written by hand (RFC 5280, RFC 8410), with keys that are
//! drawn when the test runs and never stored. A client that trusts [`Authority::pem`] trusts what it certified.

use std::sync::Arc;

use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls::crypto::ring::default_provider;
use rustls::crypto::ring::sign::any_eddsa_type;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::sign::SigningKey;
use rustls::{ServerConfig, SignatureScheme};
use soldonce_clock::{Entropy, SystemEntropy};

/// When a certificate counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validity {
    /// When the test runs.
    Now,
    /// No more.
    Over,
}

impl Validity {
    /// First and last second.
    const fn times(self) -> [&'static str; 2] {
        match self {
            Self::Now => ["200101000000Z", "491231235959Z"],
            Self::Over => ["200101000000Z", "210101000000Z"],
        }
    }
}

/// The authority.
pub struct Authority {
    key: Key,
    certificate: Vec<u8>,
}

/// A certificate with its key.
pub struct Certificate {
    key: Key,
    certificate: Vec<u8>,
}

/// Ed25519.
struct Key {
    pkcs8: Vec<u8>,
    signing: Arc<dyn SigningKey>,
}

const NAME: &str = "an authority of a test";

// Object identifiers, encoded.
const ED25519: &[u8] = &[0x2b, 0x65, 0x70];
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
const ALTERNATIVE_NAME: &[u8] = &[0x55, 0x1d, 0x11];
const BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 0x13];

// Tags of DER (X.690).
const BOOLEAN: u8 = 0x01;
const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;
const OBJECT: u8 = 0x06;
const UTF8: u8 = 0x0c;
const UTC_TIME: u8 = 0x17;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const VERSION: u8 = 0xa0;
const EXTENSIONS: u8 = 0xa3;
const DNS_NAME: u8 = 0x82;

/// The head of an Ed25519 key in PKCS 8 (RFC 8410, 7): its 32 bytes follow.
const PKCS8_HEAD: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];

impl Key {
    fn draw() -> Result<Self> {
        let mut seed = [0; 32];
        SystemEntropy.fill(&mut seed);
        let pkcs8 = [&PKCS8_HEAD[..], &seed].concat();
        let signing = any_eddsa_type(&PrivatePkcs8KeyDer::from(pkcs8.clone()))?;
        Ok(Self { pkcs8, signing })
    }

    fn sign(&self, bytes: &[u8]) -> Result<Vec<u8>> {
        let signer = self.signing.choose_scheme(&[SignatureScheme::ED25519]);
        Ok(signer.context("an Ed25519 key")?.sign(bytes)?)
    }

    fn public(&self) -> Result<Vec<u8>> {
        Ok(self.signing.public_key().context("a public key")?.to_vec())
    }
}

impl Authority {
    /// A new one.
    pub fn new() -> Result<Self> {
        let key = Key::draw()?;
        let is_authority = put(BOOLEAN, &[0xff]);
        let constraints = extension(
            BASIC_CONSTRAINTS,
            &is_authority,
            &put(SEQUENCE, &is_authority),
        );
        let certificate = certified(&key, NAME, (&key, NAME), Validity::Now, &constraints)?;
        Ok(Self { key, certificate })
    }

    /// Its own certificate, for those who are to trust it.
    pub fn pem(&self) -> String {
        let text = STANDARD.encode(&self.certificate);
        format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n")
    }

    /// A certificate for a host of this name.
    pub fn certify(&self, host: &str, validity: Validity) -> Result<Certificate> {
        let key = Key::draw()?;
        let by = (&self.key, NAME);
        let certificate = certified(&key, host, by, validity, &named(host))?;
        Ok(Certificate { key, certificate })
    }
}

impl Certificate {
    /// A certificate by which a host of this name vouches for itself.
    pub fn self_signed(host: &str) -> Result<Self> {
        let key = Key::draw()?;
        let certificate = certified(&key, host, (&key, host), Validity::Now, &named(host))?;
        Ok(Self { key, certificate })
    }

    pub(super) fn server(&self) -> Result<Arc<ServerConfig>> {
        let chain = vec![CertificateDer::from(self.certificate.clone())];
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(self.key.pkcs8.clone()));
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, key)?;
        Ok(Arc::new(config))
    }
}

/// The certificate of `key` for `subject`, by this key of an issuer.
fn certified(
    key: &Key,
    subject: &str,
    issuer: (&Key, &str),
    validity: Validity,
    extensions: &[u8],
) -> Result<Vec<u8>> {
    let algorithm = put(SEQUENCE, &put(OBJECT, ED25519));
    let times = validity.times().map(|time| put(UTC_TIME, time.as_bytes()));
    // A serial number is positive; its value does not matter here.
    let body = [
        put(VERSION, &put(INTEGER, &[2])),
        put(INTEGER, &[1]),
        algorithm.clone(),
        distinguished(issuer.1),
        put(SEQUENCE, &times.concat()),
        distinguished(subject),
        key.public()?,
        put(EXTENSIONS, &put(SEQUENCE, extensions)),
    ];
    let body = put(SEQUENCE, &body.concat());
    let signature = [&[0][..], &issuer.0.sign(&body)?].concat();
    let whole = [body, algorithm, put(BIT_STRING, &signature)];
    Ok(put(SEQUENCE, &whole.concat()))
}

fn distinguished(name: &str) -> Vec<u8> {
    let value = [put(OBJECT, COMMON_NAME), put(UTF8, name.as_bytes())];
    put(SEQUENCE, &put(SET, &put(SEQUENCE, &value.concat())))
}

fn named(host: &str) -> Vec<u8> {
    let names = put(SEQUENCE, &put(DNS_NAME, host.as_bytes()));
    extension(ALTERNATIVE_NAME, &[], &names)
}

/// `critical` is the encoded mark of one that must be understood, or nothing.
fn extension(id: &[u8], critical: &[u8], value: &[u8]) -> Vec<u8> {
    let parts = [put(OBJECT, id), critical.to_vec(), put(OCTET_STRING, value)];
    put(SEQUENCE, &parts.concat())
}

/// A value with its tag and length.
fn put(tag: u8, content: &[u8]) -> Vec<u8> {
    let bytes = content.len().to_be_bytes();
    let digits: Vec<u8> = bytes.into_iter().skip_while(|byte| *byte == 0).collect();
    let mut all = vec![tag];
    match (digits.as_slice(), u8::try_from(digits.len())) {
        ([], _) => all.push(0),
        ([short @ 0..0x80], _) => all.push(*short),
        (long, count) => {
            all.push(0x80 | count.unwrap_or_default());
            all.extend_from_slice(long);
        }
    }
    all.extend_from_slice(content);
    all
}
