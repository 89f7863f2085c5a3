//! The parameters of TLS in an address, which the driver does not know all, and the address without them.

use percent_encoding::percent_decode_str;

/// The TLS parameters of an address.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Parameters {
    pub(super) mode: Option<String>,
    pub(super) root_certificate: Option<String>,
    pub(super) certificate: Option<String>,
    pub(super) key: Option<String>,
}

impl Parameters {
    /// Takes a parameter and tells whether it is one of these; the last one of a name counts.
    fn takes(&mut self, name: &str, value: &str) -> bool {
        let place = match name {
            "sslmode" => &mut self.mode,
            "sslrootcert" => &mut self.root_certificate,
            "sslcert" => &mut self.certificate,
            "sslkey" => &mut self.key,
            _ => return false,
        };
        *place = Some(value.to_owned());
        true
    }
}

/// Separates an address from its TLS parameters. Both forms are read as the driver reads them,
/// which judges the rest.
pub(super) fn take(address: &str) -> (String, Parameters) {
    let mut given = Parameters::default();
    let is_url = address.starts_with("postgres://") || address.starts_with("postgresql://");
    let rest = if is_url {
        take_from_url(address, &mut given)
    } else {
        take_from_list(address, &mut given)
    };
    (rest, given)
}

fn take_from_url(url: &str, given: &mut Parameters) -> String {
    // A login ends at the first `@`, and may hold a `?`.
    let login = url.find('@').unwrap_or_default();
    let query = url.get(login..).and_then(|after| after.find('?'));
    let Some((head, query)) = query.and_then(|at| url.split_at_checked(login + at + 1)) else {
        return url.to_owned();
    };
    let decoded = |text| percent_decode_str(text).decode_utf8_lossy();
    let kept = query.split('&').filter(|parameter| {
        let parted = parameter.split_once('=');
        !parted.is_some_and(|(name, value)| given.takes(&decoded(name), &decoded(value)))
    });
    let kept: Vec<&str> = kept.collect();
    format!("{head}{}", kept.join("&"))
}

fn take_from_list(list: &str, given: &mut Parameters) -> String {
    let (mut rest, mut left) = (String::new(), list.trim_start());
    while let Some((parameter, after)) = left.split_at_checked(parameter_end(left)) {
        if parameter.is_empty() {
            break;
        }
        let parted = parameter.split_once('=');
        if !parted.is_some_and(|(name, value)| given.takes(name.trim(), &unquoted(value.trim()))) {
            rest.extend([parameter, " "]);
        }
        left = after.trim_start();
    }
    rest
}

/// Finds the end of the first parameter of a list: behind its value, in which a space may be quoted
/// or escaped.
fn parameter_end(list: &str) -> usize {
    let value = list.split_once('=').map(|(_, value)| value.trim_start());
    let Some(value) = value else {
        return list.len();
    };
    let start = list.len().saturating_sub(value.len());
    let is_quoted = value.starts_with('\'');
    let mut is_escaped = false;
    for (at, letter) in value.char_indices().skip(usize::from(is_quoted)) {
        let may_end = if is_quoted {
            letter == '\''
        } else {
            letter.is_whitespace()
        };
        if may_end && !is_escaped {
            return start
                .saturating_add(at)
                .saturating_add(usize::from(is_quoted));
        }
        is_escaped = letter == '\\' && !is_escaped;
    }
    list.len()
}

fn unquoted(value: &str) -> String {
    let inner = value
        .strip_prefix('\'')
        .and_then(|inner| inner.strip_suffix('\''));
    let mut letters = inner.unwrap_or(value).chars();
    let unescaped = std::iter::from_fn(|| match letters.next()? {
        '\\' => letters.next(),
        letter => Some(letter),
    });
    unescaped.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_taken_and_the_rest_stays() {
        for (address, rest, taken) in [
            ("postgres://db/main", "postgres://db/main", [None, None]),
            (
                "postgres://db/main?sslmode=require",
                "postgres://db/main?",
                [Some("require"), None],
            ),
            (
                "postgres://app:a?b@db?application_name=x&sslmode=verify-full&sslrootcert=/ca%20x.pem&port=1",
                "postgres://app:a?b@db?application_name=x&port=1",
                [Some("verify-full"), Some("/ca x.pem")],
            ),
            (
                "host=db sslmode = 'verify-ca'  sslrootcert=/a\\ b password='x sslmode=disable '",
                "host=db password='x sslmode=disable ' ",
                [Some("verify-ca"), Some("/a b")],
            ),
            (
                "host=db sslmode=require sslmode=disable",
                "host=db ",
                [Some("disable"), None],
            ),
            ("nonsense", "nonsense ", [None, None]),
            (
                "password='open sslmode=require",
                "password='open sslmode=require ",
                [None, None],
            ),
        ] {
            let (found, given) = take(address);
            let found = (
                found.as_str(),
                [given.mode.as_deref(), given.root_certificate.as_deref()],
            );
            assert_eq!(found, (rest, taken), "{address}");
        }
    }
}
