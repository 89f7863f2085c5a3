//! Parses an address in the form of a URL.

use std::path::PathBuf;

use super::tls::Tls;
use super::{Address, PORT};

/// The schemes without and with TLS.
const SCHEMES: [&str; 2] = ["redis", "rediss"];

/// Parses a URL. Errors never repeat it, because it may hold a password.
pub(super) fn parse(url: &str) -> Result<Address, String> {
    let Some(parsed) = redis::parse_redis_url(url) else {
        return Err("the address must look like redis://host:6379".to_owned());
    };
    if !SCHEMES.contains(&parsed.scheme()) {
        return Err("the address must begin with redis:// or rediss://".to_owned());
    }
    if parsed.fragment().is_some() {
        return Err(
            "the address holds a #, and no connection verifies less than it can".to_owned(),
        );
    }
    let plain = |part: &str| decoded(part).ok_or("the login of the address is not valid");
    let database = match parsed.path().trim_matches('/') {
        "" => 0,
        text => text
            .parse::<u16>()
            .map_err(|_| "the database of the address is no number")?,
    };
    let host = parsed.host_str().filter(|host| !host.is_empty());
    let host = host.ok_or("the address has no host")?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let user = Some(parsed.username()).filter(|user| !user.is_empty());
    Ok(Address {
        host: host.to_owned(),
        port: parsed.port().unwrap_or(PORT),
        user: user.map(plain).transpose()?,
        password: parsed.password().map(plain).transpose()?,
        database: i64::from(database),
        tls: tls(parsed.scheme(), parsed.query().unwrap_or_default())?,
    })
}

/// Parses the TLS parameters of an address, which has no other parameters.
fn tls(scheme: &str, query: &str) -> Result<Option<Tls>, String> {
    let (mut authorities, mut certificate, mut key) = (None, None, None);
    for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        let place = match name {
            "sslrootcert" => &mut authorities,
            "sslcert" => &mut certificate,
            "sslkey" => &mut key,
            _ => {
                return Err(
                    "the address has a parameter that is none of sslrootcert, sslcert, sslkey"
                        .to_owned(),
                );
            }
        };
        let file = decoded(value).ok_or("a parameter of the address is not valid")?;
        *place = Some(PathBuf::from(file));
    }
    let own = match (certificate, key) {
        (Some(certificate), Some(key)) => Some([certificate, key]),
        (None, None) => None,
        (Some(_), None) | (None, Some(_)) => {
            return Err("sslcert and sslkey go together".to_owned());
        }
    };
    let encrypted = scheme == SCHEMES[1];
    if !encrypted && (authorities.is_some() || own.is_some()) {
        return Err("sslrootcert, sslcert and sslkey need rediss://".to_owned());
    }
    Ok(encrypted.then_some(Tls { authorities, own }))
}

/// Splits the URL of a cluster into one URL for each seed; `None` for any other scheme.
pub(super) fn of_seeds(url: &str) -> Option<impl Iterator<Item = String>> {
    let (scheme, rest) = url.split_once("+cluster://")?;
    if !SCHEMES.contains(&scheme) {
        return None;
    }
    let (seeds, after) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let first = seeds.split(',').next().unwrap_or_default();
    let end = first.rfind('@');
    let login = end.and_then(|at| first.get(..=at)).unwrap_or_default();
    Some(seeds.split(',').map(move |seed| {
        let login = if seed.contains('@') { "" } else { login };
        format!("{scheme}://{login}{seed}{after}")
    }))
}

/// Undoes percent encoding; `None` if it is not valid.
fn decoded(part: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let mut digit = || char::from(rest.next()?).to_digit(16);
            bytes.push(u8::try_from(digit()? * 16 + digit()?).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}
