//! Query strings: known names, each at most once. Never logged.

use std::borrow::Cow;

use soldonce_core::{Fence, HolderName, Seq};
use soldonce_engine::live::Digest;

use super::problem::Problem;
use super::route::Parameter;
use crate::limits::PAGE_MAX;

/// A commit that a reader knows, with its digest if the reader has that, too.
pub(super) type KnownCommit = (Seq, Option<Digest>);

/// Most characters of an unknown name that a refusal quotes.
const NAME_CHARS_MAX: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Query<'a> {
    values: Vec<(Cow<'a, str>, Cow<'a, str>)>,
}

impl<'a> Query<'a> {
    pub(super) fn parse(text: &'a str, known: &[Parameter]) -> Result<Self, Problem> {
        let rule = "behind a percent sign are two hexadecimal digits, of UTF-8";
        let read = |text: &'a str| decode_form(text).ok_or_else(|| Problem::invalid("query", rule));
        let mut query = Self::default();
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (name, value) = (read(name)?, read(value)?);
            if !known.iter().any(|(known, ..)| *known == name) {
                return Err(unknown(&name, known));
            }
            if query.get(&name).is_some() {
                let reason = format!("`{name}` is given twice");
                return Err(Problem::invalid("query", reason));
            }
            query.values.push((name, value));
        }
        Ok(query)
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let found = self.values.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| &**value)
    }

    /// Parses a whole number; None where it is not given.
    pub(super) fn number(&self, name: &'static str) -> Result<Option<u64>, Problem> {
        let Some(text) = self.get(name) else {
            return Ok(None);
        };
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse().ok().filter(|_| digits);
        number
            .map(Some)
            .ok_or_else(|| Problem::invalid(name, "it must be a whole number of 0 or more"))
    }

    /// Parses `limit`; without one it is as many as a page may have.
    pub(super) fn limit(&self) -> Result<usize, Problem> {
        match self.number("limit")? {
            None => Ok(usize::try_from(PAGE_MAX).unwrap_or(usize::MAX)),
            Some(limit @ 1..=PAGE_MAX) => Ok(usize::try_from(limit).unwrap_or(usize::MAX)),
            Some(limit) => {
                let reason = format!("{limit} is outside 1 ..= {PAGE_MAX}");
                Err(Problem::invalid("limit", reason))
            }
        }
    }

    /// Parses `after` and `digest`; None where `after` is not given.
    pub(super) fn commit(&self) -> Result<Option<KnownCommit>, Problem> {
        let digest = self.get("digest").map(|text| {
            let rule = "it must be the `digest` of a snapshot or of a frame";
            Digest::parse(text).ok_or_else(|| Problem::invalid("digest", rule))
        });
        let digest = digest.transpose()?;
        Ok(self.number("after")?.map(|after| (Seq(after), digest)))
    }

    pub(super) fn fence(&self) -> Result<Option<Fence>, Problem> {
        Ok(self.number("fence")?.map(Fence))
    }

    pub(super) fn holder(&self) -> Result<Option<HolderName>, Problem> {
        let named = self.get("holder").map(HolderName::parse).transpose();
        named.map_err(|error| Problem::invalid("holder", error))
    }
}

fn unknown(name: &str, known: &[Parameter]) -> Problem {
    let name: String = name.chars().take(NAME_CHARS_MAX).collect();
    let name = name.escape_debug();
    let reason = match known {
        [] => format!("unknown name `{name}`; this route takes none"),
        known => {
            let known: Vec<&str> = known.iter().map(|(known, ..)| *known).collect();
            let known = known.join("`, `");
            format!("unknown name `{name}`; there are `{known}`")
        }
    };
    Problem::invalid("query", reason)
}

/// Decodes a name or a value, in which a plus is a space; None when that is no text.
fn decode_form(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains('+') {
        return decode(text);
    }
    Some(Cow::Owned(decode(&text.replace('+', " "))?.into_owned()))
}

/// Decodes a text's percent signs; None when that is no text.
pub(super) fn decode(text: &str) -> Option<Cow<'_, str>> {
    if !text.as_bytes().contains(&b'%') {
        return Some(Cow::Borrowed(text));
    }
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let high = char::from(bytes.next()?).to_digit(16)?;
        let low = char::from(bytes.next()?).to_digit(16)?;
        decoded.push(u8::try_from(high * 16 + low).ok()?);
    }
    String::from_utf8(decoded).ok().map(Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::operation::{AFTER, LIMIT};

    const KNOWN: [Parameter; 2] = [AFTER, LIMIT];

    #[test]
    fn percent_signs_are_decoded_or_refused() {
        assert_eq!(decode("A-1").as_deref(), Some("A-1"));
        assert_eq!(decode("A%2d1%2F").as_deref(), Some("A-1/"));
        for text in ["%", "%2", "%g0", "%ff", "%2 "] {
            assert_eq!(decode(text), None, "{text}");
        }
    }

    #[test]
    fn names_are_known_and_distinct() {
        let query = Query::parse("after=a%20b&limit=5&", &KNOWN).unwrap();
        assert_eq!(query.get("after"), Some("a b"));
        assert_eq!(query.number("limit").unwrap(), Some(5));
        assert_eq!(query.get("fence"), None);
        for text in ["page=1", "after=1&after=2", "after=%"] {
            assert!(Query::parse(text, &[AFTER]).is_err(), "{text}");
        }
        for number in ["", "-1", "+1", "1e3", "99999999999999999999"] {
            let text = format!("limit={}", number.replace('+', "%2B"));
            let query = Query::parse(&text, &KNOWN).unwrap();
            assert!(query.number("limit").is_err(), "{number}");
        }
    }
}
