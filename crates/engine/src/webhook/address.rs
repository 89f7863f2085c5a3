//! Decides where messages may be sent (against SSRF). The caller that names an endpoint must not
//! reach through it what only this server can: the machine itself, its network, its metadata
//! service (assurance.md S11).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use reqwest::Url;

use crate::limits::WEBHOOK_URL_BYTES_MAX;

/// The allowed destinations of endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Destinations {
    /// Public addresses of the internet, encrypted.
    #[default]
    Public,
    /// For development: also on this machine and in its network, and without encryption. What is
    /// local to the link, metadata above all, stays out of reach.
    Any,
}

impl Destinations {
    /// Tells whether a connection to this address is allowed.
    pub fn allow(self, address: IpAddr) -> bool {
        let address = match address {
            IpAddr::V6(v6) => v6.to_ipv4_mapped().map_or(address, IpAddr::V4),
            IpAddr::V4(_) => address,
        };
        is_public(address) || (self == Self::Any && is_near(address))
    }

    /// Checks the URL of an endpoint, and returns it as it was parsed: the checked text is what is
    /// stored. Names are looked up with each connection.
    ///
    /// # Errors
    /// [`UrlProblem`], in words for the caller.
    pub fn require(self, text: &str) -> Result<String, UrlProblem> {
        if text.len() > WEBHOOK_URL_BYTES_MAX {
            return Err(UrlProblem::TooLong);
        }
        // A parser drops some of them, so that others may read another address.
        if text.chars().any(char::is_control) {
            return Err(UrlProblem::HasControl);
        }
        let url = Url::parse(text).map_err(|_| UrlProblem::NotOne)?;
        match (url.scheme(), self) {
            ("https", _) | ("http", Self::Any) => {}
            _ => return Err(UrlProblem::NotEncrypted),
        }
        let has_login = !url.username().is_empty() || url.password().is_some();
        if has_login || url.fragment().is_some() {
            return Err(UrlProblem::HasMore);
        }
        self.require_host(&url)?;
        let understood = String::from(url);
        if understood.len() > WEBHOOK_URL_BYTES_MAX {
            return Err(UrlProblem::TooLong);
        }
        Ok(understood)
    }

    /// Checks that the host of a URL is a name, or an address that is allowed.
    pub(super) fn require_host(self, url: &Url) -> Result<(), UrlProblem> {
        let host = url.host_str().ok_or(UrlProblem::NotOne)?;
        // However an address was written, as decimal, octal or short: here it has its usual form.
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        match bare.parse::<IpAddr>() {
            Ok(address) if !self.allow(address) => Err(UrlProblem::Forbidden),
            Ok(_) | Err(_) => Ok(()),
        }
    }
}

/// Why a URL is not allowed for an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlProblem {
    /// It cannot be parsed, or has no host.
    #[error("not a URL with a host")]
    NotOne,
    /// `http`, where only `https` is allowed.
    #[error("must begin with https://")]
    NotEncrypted,
    /// A user, a password or a fragment.
    #[error("must have no user, password or fragment")]
    HasMore,
    /// A line break or another control character.
    #[error("must have no control characters")]
    HasControl,
    /// An address that may not be connected to.
    #[error("must be out in the internet: this address is private, local or reserved")]
    Forbidden,
    /// Too many bytes.
    #[error("must have at most {WEBHOOK_URL_BYTES_MAX} bytes")]
    TooLong,
}

/// Tells whether an address is reachable from the internet.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => is_public_v4(v4),
        IpAddr::V6(v6) => is_public_v6(v6),
    }
}

fn is_public_v4(v4: Ipv4Addr) -> bool {
    let [a, b, c, d] = v4.octets();
    match a {
        // This network, private, the own machine, several receivers, reserved.
        0 | 10 | 127 | 224..=255 => false,
        // Shared behind a provider's translation.
        100 => !(64..=127).contains(&b),
        // The link, with its metadata.
        169 => b != 254,
        // The host of Azure, which gives settings to its virtual machines.
        168 => (b, c, d) != (63, 129, 16),
        172 => !(16..=31).contains(&b),
        // Private, protocols, examples, old relays.
        192 => b != 168 && !matches!((b, c), (0, 0 | 2) | (88, 99)),
        // Measurements and examples.
        198 => !matches!(b, 18 | 19) && (b, c) != (51, 100),
        203 => (b, c) != (0, 113),
        _ => true,
    }
}

/// Tells whether an address is of those for hosts (`2000::/3`): not for examples, and not for the
/// old ways to carry IPv4, behind which any address of the own network could be.
fn is_public_v6(v6: Ipv6Addr) -> bool {
    let [a, b, ..] = v6.segments();
    let is_given = (0x2000..=0x3fff).contains(&a);
    let is_special = match a {
        0x2001 => b < 0x0200 || b == 0x0db8,
        0x2002 => true,
        0x3fff => b < 0x1000,
        _ => false,
    };
    is_given && !is_special
}

/// Tells whether an address is of the own machine or network, for development.
fn is_near(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_loopback() || v4.is_private(),
        IpAddr::V6(v6) => {
            // Metadata services of clouds, with credentials, inside the unique-local range.
            let is_metadata = matches!(v6.segments(), [0xfd00, 0x0ec2, ..] | [0xfd20, 0x00ce, ..]);
            v6.is_loopback() || (v6.is_unique_local() && !is_metadata)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Addresses that are refused; those behind `near` only in public.
    const REFUSED: &str = "\
        0.0.0.0 0.1.2.3 100.64.0.1 100.127.255.255 168.63.129.16 169.254.0.1 169.254.169.254 \
        192.0.0.170 192.0.2.1 192.88.99.1 198.18.0.1 198.19.255.255 198.51.100.7 203.0.113.9 \
        224.0.0.1 240.0.0.1 255.255.255.255 :: ::ffff:169.254.169.254 ::ffff:100.64.0.1 ::1.2.3.4 \
        64:ff9b::a00:1 100::1 2001::1 2001:db8::1 2002:a00:1:: 3fff::1 5f00::1 fd00:ec2::23 \
        fd00:ec2::254 fd20:ce::254 fe80::1 fec0::1 ff02::1";
    const NEAR: &str = "\
        10.0.0.1 10.255.255.255 127.0.0.1 127.255.255.254 172.16.0.1 172.31.255.255 192.168.0.1 \
        ::1 ::ffff:127.0.0.1 ::ffff:10.0.0.1 fc00::1 fd12:3456::1";
    const PUBLIC: &str = "\
        1.1.1.1 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 \
        169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 192.167.255.255 192.169.0.0 \
        198.17.255.255 198.20.0.0 223.255.255.255 ::ffff:1.1.1.1 2001:4860:4860::8888 \
        2606:4700::1111 2a00::1";

    #[test]
    fn each_address_is_allowed_where_it_should_be() {
        let of = |texts: &'static str| {
            let both = |text: &str| {
                let address = text.parse().unwrap();
                let allowed = |by: Destinations| by.allow(address);
                (allowed(Destinations::Public), allowed(Destinations::Any))
            };
            texts.split(' ').map(move |text| (text, both(text)))
        };
        for (text, allowed) in of(REFUSED) {
            assert_eq!(allowed, (false, false), "{text}");
        }
        for (text, allowed) in of(NEAR) {
            assert_eq!(allowed, (false, true), "{text}");
        }
        for (text, allowed) in of(PUBLIC) {
            assert_eq!(allowed, (true, true), "{text}");
        }
    }

    #[test]
    fn an_address_is_known_in_every_spelling() {
        let public = |text: &str| Destinations::Public.require(text);
        let hosts = "127.0.0.1 2130706433 0x7f000001 0177.0.0.1 127.1 0 [::1] [::ffff:127.0.0.1] \
            [::ffff:7f00:1] [0:0:0:0:0:ffff:a9fe:a9fe] 169.254.169.254/latest/meta-data 2852039166 \
            0xa9.0xfe.0xa9.0xfe 0251.0376.0251.0376 ①②⑦.0.0.1 127.0.0.1. 10.0.0.1:8443 [fd00:ec2::254]";
        for host in hosts.split(' ') {
            let refused = public(&format!("https://{host}/"));
            assert_eq!(refused, Err(UrlProblem::Forbidden), "{host}");
        }
        for (text, understood) in [
            (
                "https://example.org/hooks?a=1",
                "https://example.org/hooks?a=1",
            ),
            ("https://1.1.1.1/", "https://1.1.1.1/"),
            ("https://EXAMPLE.org", "https://example.org/"),
            ("https://example.org/a b", "https://example.org/a%20b"),
            ("https://0x01.1.1.1/", "https://1.1.1.1/"),
        ] {
            assert_eq!(public(text).as_deref(), Ok(understood));
        }
    }

    #[test]
    fn only_what_is_encrypted_and_bare_is_taken() {
        let long = format!("https://example.org/{}", "a".repeat(WEBHOOK_URL_BYTES_MAX));
        for (text, problem) in [
            ("", UrlProblem::NotOne),
            ("example.org", UrlProblem::NotOne),
            ("https://", UrlProblem::NotOne),
            ("http://example.org/", UrlProblem::NotEncrypted),
            ("ftp://example.org/", UrlProblem::NotEncrypted),
            ("file:///etc/passwd", UrlProblem::NotEncrypted),
            ("https://user:word@example.org/", UrlProblem::HasMore),
            ("https://example.org/#a", UrlProblem::HasMore),
            ("https://a.example/x\r\nX-Y: 1", UrlProblem::HasControl),
            ("https://a.example/\tx", UrlProblem::HasControl),
            ("https://a.example/\u{85}", UrlProblem::HasControl),
            ("\0https://a.example/", UrlProblem::HasControl),
            (long.as_str(), UrlProblem::TooLong),
        ] {
            assert_eq!(Destinations::Public.require(text), Err(problem), "{text}");
        }
        let any = |text: &str| Destinations::Any.require(text);
        let own = "http://127.0.0.1:9000/hooks";
        assert_eq!(any(own).as_deref(), Ok(own));
        assert_eq!(any("http://169.254.169.254/"), Err(UrlProblem::Forbidden));
    }
}
