//! When the certificate of a server ends.

use soldonce_testkit::{Authority, Certificate, TempFolder, Validity};
use soldonce_tls::Listener;

#[test]
fn the_end_of_a_certificate_is_known_also_when_it_is_over() {
    let (authority, at) = (Authority::new().unwrap(), TempFolder::new().unwrap());
    let ends_at = |certificate: Certificate| {
        let [certificate, key] = certificate.write(at.path(), "own").unwrap();
        Listener::load(certificate, key).unwrap().ends_at()
    };
    let certified = |validity| authority.certify("localhost", validity).unwrap();
    // 2021-01-01 and 4096-01-01, which are two kinds of time in a certificate.
    assert_eq!(ends_at(certified(Validity::Over)), Some(1_609_459_200));
    assert_eq!(ends_at(certified(Validity::Now)), Some(67_090_118_400));
    let own = Certificate::self_signed("localhost").unwrap();
    assert_eq!(ends_at(own), Some(67_090_118_400));
}
