//! Strict deserialization: objects that are objects, counts with a bound, coordinates in hundredths
//! without floating-point arithmetic.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};
use soldonce_core::limits::UNITS_PER_CHART_MAX;

/// A `T` written as a JSON object. Serde alone would also take an array of the fields' values.
#[derive(Debug)]
pub struct Object<T>(pub T);

struct Fields<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(Fields(PhantomData)).map(Object)
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map))
    }
}

/// A count: `1..=UNITS_PER_CHART_MAX`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Count(pub(super) u32);

struct CountVisitor;

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_u32(CountVisitor)
    }
}

impl Visitor<'_> for CountVisitor {
    type Value = Count;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a whole number from 1 to {UNITS_PER_CHART_MAX}")
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Count, E> {
        match u32::try_from(value) {
            Ok(count @ 1..=UNITS_PER_CHART_MAX) => Ok(Count(count)),
            Ok(_) | Err(_) => Err(E::invalid_value(Unexpected::Unsigned(value), &self)),
        }
    }
}

/// A coordinate or a length: a JSON number, kept in hundredths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Hundredths(pub(super) i32);

struct HundredthsVisitor;

impl<'de> Deserialize<'de> for Hundredths {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_f64(HundredthsVisitor)
    }
}

impl Visitor<'_> for HundredthsVisitor {
    type Value = Hundredths;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number from -21474836 to 21474836")
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Hundredths, E> {
        match i64::try_from(value) {
            Ok(value) => self.visit_i64(value),
            Err(_) => Err(E::invalid_value(Unexpected::Unsigned(value), &self)),
        }
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Hundredths, E> {
        let hundredths = value
            .checked_mul(100)
            .and_then(|product| i32::try_from(product).ok());
        let refusal = || E::invalid_value(Unexpected::Signed(value), &self);
        hundredths.map(Hundredths).ok_or_else(refusal)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Hundredths, E> {
        // Two decimals of the text, rounded by the formatter, are exactly the hundredths; `inf` and
        // `NaN` do not parse.
        let text = format!("{value:.2}").replace('.', "");
        let refusal = |_| E::invalid_value(Unexpected::Float(value), &self);
        text.parse().map(Hundredths).map_err(refusal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hundredths(json: &str) -> Option<i32> {
        serde_json::from_str::<Hundredths>(json)
            .ok()
            .map(|number| number.0)
    }

    #[test]
    fn coordinates_become_hundredths() {
        let good = [
            ("0", 0),
            ("-0.0", 0),
            ("7", 700),
            ("-7", -700),
            ("0.07", 7),
            ("1.005", 100),
            ("-12.349", -1235),
            ("1e3", 100_000),
            ("21474836.47", i32::MAX),
            ("-21474836.48", i32::MIN),
        ];
        for (json, expected) in good {
            assert_eq!(hundredths(json), Some(expected), "{json}");
        }
        let bad = "21474836.48 21474837 -21474837 1e300 1e999 18446744073709551615 \
            \"1\" null NaN true [1]";
        for json in bad.split(' ') {
            assert_eq!(hundredths(json), None, "{json}");
        }
    }

    #[test]
    fn every_hundredth_survives_its_text() {
        let numbers = (-5_000..5_000).chain([i32::MIN, i32::MIN + 1, i32::MAX - 1, i32::MAX]);
        for number in numbers.chain((0..2_000).map(|n| n * 1_000_003)) {
            let json = (f64::from(number) / 100.0).to_string();
            assert_eq!(hundredths(&json), Some(number), "{json}");
        }
    }

    #[test]
    fn counts_have_bounds() {
        let count = |json| {
            serde_json::from_str::<Count>(json)
                .ok()
                .map(|count| count.0)
        };
        assert_eq!(count("1"), Some(1));
        assert_eq!(count("4000000"), Some(UNITS_PER_CHART_MAX));
        for json in "0 4000001 -1 1.0 \"1\" 99999999999999999999 null".split(' ') {
            assert_eq!(count(json), None, "{json}");
        }
    }

    #[test]
    fn an_array_is_no_object() {
        #[derive(Debug, Deserialize)]
        struct Pair {
            a: u8,
            b: u8,
        }
        let read: Object<Pair> = serde_json::from_str(r#"{"a":1,"b":2}"#).unwrap();
        assert_eq!((read.0.a, read.0.b), (1, 2));
        let refused = serde_json::from_str::<Object<Pair>>("[1,2]")
            .unwrap_err()
            .to_string();
        assert!(refused.contains("expected an object"), "{refused}");
    }
}
