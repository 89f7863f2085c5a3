//! Request bodies: parsed once, borrowed from the bytes that came. A refusal names the place in the
//! JSON; that costs a second look, which only a wrong body pays.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};
use soldonce_core::{Fence, HolderName, Span, Text, Timestamp};
use soldonce_engine::chart::{Object, explain};

use super::problem::Problem;

pub(super) fn parse<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, Problem> {
    let read = serde_json::from_slice::<Object<T>>(body).map_err(|error| {
        let reason = explain("body", body, &error);
        Problem::detailed(&super::kinds::INVALID_REQUEST, reason)
    });
    Ok(read?.0)
}

/// A JSON string, borrowed where it has no escapes. (`Option<Cow<str>>` alone always copies.) In a struct
/// of several fields one `#[serde(borrow)]` bounds the lifetime of all of them.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(super) struct Str<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

/// A whole number, however it is written: `3.0` is an integer to JSON Schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Whole<T>(pub(super) T);

impl<'de, T: TryFrom<i128>> Deserialize<'de> for Whole<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_i64(WholeVisitor(PhantomData)).map(Self)
    }
}

struct WholeVisitor<T>(PhantomData<T>);

impl<T: TryFrom<i128>> Visitor<'_> for WholeVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number")?;
        if T::try_from(-1).is_err() {
            f.write_str(" of 0 or more")?;
        }
        if T::try_from(1 << 32).is_err() {
            f.write_str(", below 2^32")?;
        }
        Ok(())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        let refusal = |_| E::invalid_value(Unexpected::Unsigned(number), &self);
        T::try_from(number.into()).map_err(refusal)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        let refusal = |_| E::invalid_value(Unexpected::Signed(number), &self);
        T::try_from(number.into()).map_err(refusal)
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<T, E> {
        let digits = || number.to_string().parse::<i128>().ok();
        let whole = digits().and_then(|whole| T::try_from(whole).ok());
        whole.ok_or_else(|| E::invalid_type(Unexpected::Float(number), &self))
    }
}

/// A point of time as the API writes it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Time(pub(super) Timestamp);

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_str(TimeVisitor).map(Time)
    }
}

/// Refuses while the parser is still at the text, so that the refusal names its place.
struct TimeVisitor;

impl Visitor<'_> for TimeVisitor {
    type Value = Timestamp;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a time of RFC 3339 before 9999-12-30, such as 2026-12-01T19:30:00.000Z")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Timestamp, E> {
        time_of(text).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
    }
}

/// Parses a point of time as the API writes it.
pub(super) fn time_of(text: &str) -> Option<Timestamp> {
    let time: jiff::Timestamp = text.parse().ok()?;
    Some(Timestamp::from_ms(time.as_millisecond()))
}

pub(super) fn holder(named: Option<&Str<'_>>) -> Result<Option<HolderName>, Problem> {
    let parsed = named.map(|name| HolderName::parse(&name.0)).transpose();
    parsed.map_err(|error| Problem::invalid("holder", error))
}

/// Reads a field that may be left out and is not `null`.
pub(super) fn given<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

/// Parses a free text of a body.
pub(super) fn text(field: &'static str, given: Option<&Str<'_>>) -> Result<Option<Text>, Problem> {
    let parsed = given.map(|text| Text::parse(&text.0)).transpose();
    parsed.map_err(|error| Problem::invalid(field, error))
}

/// Checks an address of a body, which a page or an app can be sent to: it has a scheme.
pub(super) fn url(field: &'static str, given: Option<&Str<'_>>) -> Result<(), Problem> {
    let is_one = |text: &Text| {
        let parsed: Option<axum::http::Uri> = text.as_str().parse().ok();
        parsed.is_some_and(|url| url.scheme().is_some())
    };
    match text(field, given)? {
        Some(text) if !is_one(&text) => {
            let rule = "write a whole address, such as `https://shop.example/paid`";
            Err(Problem::invalid(field, rule))
        }
        Some(_) | None => Ok(()),
    }
}

/// Parses staff's reason; without one it is empty.
pub(super) fn reason(given: Option<&Str<'_>>) -> Result<Text, Problem> {
    let nothing = Str(Cow::Borrowed(""));
    let text = text("reason", Some(given.unwrap_or(&nothing)))?;
    text.ok_or_else(|| Problem::invalid("reason", "it is missing"))
}

/// Reads `fence` of a body.
pub(super) fn fence(given: Option<Whole<u64>>) -> Option<Fence> {
    given.map(|fence| Fence(fence.0))
}

/// Reads `ttl_ms` of a body.
pub(super) fn ttl(given: Option<Whole<u64>>) -> Option<Span> {
    given.map(|ttl| Span::from_ms(ttl.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_borrowed_when_they_can_be() {
        let read: Vec<Option<Str<'_>>> =
            serde_json::from_slice(br#"["A-1","A\u002d1",null]"#).unwrap();
        assert!(matches!(
            read.as_slice(),
            [
                Some(Str(Cow::Borrowed("A-1"))),
                Some(Str(Cow::Owned(_))),
                None
            ]
        ));
    }

    #[test]
    fn whole_numbers_may_be_written_with_a_point() {
        let read = |json: &str| serde_json::from_str::<Whole<u32>>(json).map(|whole| whole.0);
        for (json, number) in [
            ("3", 3),
            ("3.0", 3),
            ("4294967295.0", u32::MAX),
            ("1e3", 1000),
            ("-0.0", 0),
        ] {
            assert_eq!(read(json).ok(), Some(number), "{json}");
        }
        for json in [
            "3.5",
            "-1",
            "-1.0",
            "4294967296",
            "4294967296.0",
            "1e300",
            "\"3\"",
            "null",
        ] {
            let error = read(json).unwrap_err().to_string();
            assert!(
                error.contains("expected a whole number of 0 or more, below 2^32"),
                "{json}: {error}"
            );
        }
    }

    #[test]
    fn times_have_a_zone() {
        let ms = |json: &str| {
            serde_json::from_str::<Time>(json)
                .ok()
                .map(|time| time.0.ms())
        };
        assert_eq!(ms(r#""1970-01-01T00:00:01.5Z""#), Some(1_500));
        assert_eq!(ms(r#""1970-01-01T01:00:00+01:00""#), Some(0));
        for json in [
            "\"1970-01-01T00:00:00\"",
            "\"1970-01-01\"",
            "\"now\"",
            "5",
            "\"\"",
        ] {
            assert_eq!(ms(json), None, "{json}");
        }
    }
}
