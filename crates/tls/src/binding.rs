//! The channel binding `tls-server-end-point` (RFC 5929, 4): a hash of the server's certificate, by the hash
//! of its own signature. A password proof that is bound to it is of no use to a server in the middle.

use sha2::{Digest, Sha256, Sha384, Sha512};

// Signature algorithms as they are encoded in a certificate.
const RSA_MD5: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 4];
const RSA_SHA1: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 5];
const RSA_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 11];
const RSA_SHA384: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 12];
const RSA_SHA512: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 13];
const ECDSA_SHA1: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 1];
const ECDSA_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2];
const ECDSA_SHA384: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 3];
const ECDSA_SHA512: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 4];

const SEQUENCE: u8 = 0x30;
const OBJECT: u8 = 0x06;

/// Hashes a server's certificate to its channel binding; `None` where the standard gives none.
pub(crate) fn end_point(certificate: &[u8]) -> Option<Vec<u8>> {
    let algorithm = signature_algorithm(certificate)?;
    if [RSA_MD5, RSA_SHA1, RSA_SHA256, ECDSA_SHA1, ECDSA_SHA256].contains(&algorithm) {
        return Some(Sha256::digest(certificate).to_vec());
    }
    if [RSA_SHA384, ECDSA_SHA384].contains(&algorithm) {
        return Some(Sha384::digest(certificate).to_vec());
    }
    let is_sha512 = [RSA_SHA512, ECDSA_SHA512].contains(&algorithm);
    is_sha512.then(|| Sha512::digest(certificate).to_vec())
}

/// Finds the algorithm's OID in a `Certificate`, which is
/// `SEQUENCE { tbsCertificate, signatureAlgorithm SEQUENCE { algorithm, .. }, .. }`.
fn signature_algorithm(certificate: &[u8]) -> Option<&[u8]> {
    let (whole, _) = element(SEQUENCE, certificate)?;
    let (_, after) = element(SEQUENCE, whole)?;
    let (algorithm, _) = element(SEQUENCE, after)?;
    Some(element(OBJECT, algorithm)?.0)
}

/// Splits the content of the first DER element from the rest; `None` if it is no `tag`.
fn element(tag: u8, bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&[found, first], rest) = bytes.split_first_chunk()?;
    let (length, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
        let length = digits.iter().try_fold(0_usize, |length, digit| {
            length.checked_mul(256)?.checked_add(usize::from(*digit))
        });
        (length?, rest)
    };
    (found == tag).then(|| rest.split_at_checked(length))?
}

#[cfg(test)]
mod tests {
    use soldonce_testkit::{Authority, Validity};

    use super::*;

    #[test]
    fn the_hash_is_that_of_the_certificates_own_signature() {
        let authority = Authority::new().unwrap();
        let certificate = authority.certify("localhost", Validity::Now).unwrap();
        let der = certificate.der();
        assert_eq!(signature_algorithm(der), Some(ECDSA_SHA256));
        assert_eq!(end_point(der), Some(Sha256::digest(der).to_vec()));
    }

    #[test]
    fn what_is_no_certificate_binds_nothing() {
        for bytes in [
            &[][..],
            &[0x30],
            &[0x30, 0x80],
            &[0x30, 0xff, 1],
            &[0x30, 3, 0x30, 5, 0],
        ] {
            assert_eq!(end_point(bytes), None, "{bytes:?}");
        }
    }
}
