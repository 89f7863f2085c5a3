//! Names places in a chart's JSON: `chart.zones[0].rows[3].seats[7].seat`. A valid chart costs
//! nothing here: a place is searched for only after an error.

use std::fmt::Display;

use serde::Deserialize;
use soldonce_core::{Id, Invalid};

/// Most characters of a place or of a reader's message: both may quote what the caller sent.
const QUOTE_CHARS_MAX: usize = 240;

/// Deserializes `json`; errors name the place, which begins with `root`.
pub(super) fn parse<'de, T: Deserialize<'de>>(
    root: &'static str,
    json: &'de [u8],
) -> Result<T, Invalid> {
    serde_json::from_slice(json).map_err(|error| Invalid::new("chart", explain(root, json, &error)))
}

/// Describes why `json` was not understood, with the place in it, which begins with `root`.
pub fn explain(root: &str, json: &[u8], error: &serde_json::Error) -> String {
    let (line, column) = (error.line(), error.column());
    // Of broken JSON the column names the byte that was not understood, of JSON that means nothing
    // here the end of the value that was.
    let last = usize::from(error.is_syntax());
    let offset = offset_of(json, line, column).saturating_sub(last);
    let place = place_at(root, json, offset);
    let message = error.to_string();
    let suffix = format!(" at line {line} column {column}");
    let message = cut(message.strip_suffix(&suffix).unwrap_or(&message));
    format!("at {place} (line {line}, column {column}): {message}")
}

/// Adds the place of its cause to a refusal.
pub(super) fn at(place: impl Display, error: Invalid) -> Invalid {
    let Invalid { field, reason } = error;
    Invalid::new(field, format!("at {place}: {reason}"))
}

/// Finds the property of a seat that the builder refused; that of its id is `id_property`.
pub(super) fn seat_property(error: &Invalid, id: &str, id_property: &'static str) -> &'static str {
    match error.field {
        "chart.category" => "category",
        "chart.seat" if Id::parse(id).is_ok() => "label",
        _ => id_property,
    }
}

/// Adds the places of the seats that the finished chart was refused for: the refusal quotes their
/// name first.
pub(super) fn blame<P: Display, S: AsRef<str>>(
    error: Invalid,
    seats: impl Iterator<Item = (P, S)>,
) -> Invalid {
    let Some(name) = error.reason.split('`').nth(1).map(str::to_owned) else {
        return error;
    };
    let places: Vec<String> = seats
        .filter(|(_, id)| id.as_ref() == name)
        .take(2)
        .map(|(place, _)| place.to_string())
        .collect();
    if places.is_empty() {
        error
    } else {
        at(places.join(" and at "), error)
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(QUOTE_CHARS_MAX) {
        Some((end, _)) => format!("{}..", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Converts a position of `serde_json` to a byte offset: lines from 1, columns in bytes from 1
/// naming the last byte read.
fn offset_of(json: &[u8], line: usize, column: usize) -> usize {
    let lines_before = line.saturating_sub(1);
    let bytes_before = |count: usize| {
        let mut lines = json.split_inclusive(|byte| *byte == b'\n');
        lines.by_ref().take(count).map(<[u8]>::len).sum::<usize>()
    };
    bytes_before(lines_before).saturating_add(column)
}

/// The position of the scan in one open array or object.
enum Step<'a> {
    /// In an object, at this key; before the first key and after each comma at none.
    Key(Option<&'a [u8]>),
    /// In an array, at this index.
    Index(usize),
}

/// Finds the place of the token that ends at `offset` or is the next one after it.
fn place_at(root: &str, json: &[u8], offset: usize) -> String {
    let mut steps: Vec<Step<'_>> = Vec::new();
    let mut at = 0;
    while let Some(byte) = json.get(at) {
        let end = token_end(json, at);
        match byte {
            b'{' | b'[' if end > offset => break,
            b'{' => steps.push(Step::Key(None)),
            b'[' => steps.push(Step::Index(0)),
            b'}' | b']' => {
                steps.pop();
            }
            b',' => match steps.last_mut() {
                Some(Step::Key(key)) => *key = None,
                Some(Step::Index(index)) => *index = index.saturating_add(1),
                None => {}
            },
            b'"' => {
                if let Some(Step::Key(key @ None)) = steps.last_mut() {
                    *key = json.get(at + 1..end.saturating_sub(1));
                }
            }
            _ => {}
        }
        let is_value = !is_mark(*byte) || matches!(byte, b'}' | b']');
        if is_value && end >= offset {
            break;
        }
        at = end;
    }
    describe(root, &steps)
}

/// Finds the end of the token that begins at `at`: a mark, white space, a string, or a word.
fn token_end(json: &[u8], at: usize) -> usize {
    let rest = json.get(at..).unwrap_or_default();
    let length = match rest.first() {
        Some(b'"') => {
            let mut escaped = false;
            let closing = rest.iter().skip(1).position(|byte| {
                let closes = *byte == b'"' && !escaped;
                escaped = *byte == b'\\' && !escaped;
                closes
            });
            closing.map_or(rest.len(), |before| before + 2)
        }
        Some(byte) if is_mark(*byte) => 1,
        _ => rest
            .iter()
            .position(|byte| is_mark(*byte) || *byte == b'"')
            .unwrap_or(rest.len()),
    };
    at.saturating_add(length)
}

fn is_mark(byte: u8) -> bool {
    b"{}[],: \t\r\n".contains(&byte)
}

fn describe(root: &str, steps: &[Step<'_>]) -> String {
    let mut place = root.to_owned();
    for step in steps {
        place = match step {
            Step::Key(None) => place,
            Step::Index(index) => format!("{place}[{index}]"),
            Step::Key(Some(key)) => {
                let key = cut(&String::from_utf8_lossy(key));
                let plain = key
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
                if plain {
                    format!("{place}.{key}")
                } else {
                    format!("{place}[\"{}\"]", key.escape_debug())
                }
            }
        };
        if place.len() > QUOTE_CHARS_MAX {
            return cut(&place);
        }
    }
    place
}

#[cfg(test)]
mod tests {
    use super::super::strict::Object;
    use super::super::tests::cases;
    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only read")]
    struct Inner {
        seat: String,
        number: Option<u8>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only read")]
    struct Outer {
        list: Vec<Object<Inner>>,
    }

    /// Checks each line of a table: JSON, the place that its error names, and words of the message.
    #[track_caller]
    fn check(table: &str) {
        for [json, place, message] in cases::<3>(table) {
            for json in [
                json.to_owned(),
                json.replace(',', ",\n ").replace('{', "{ \r\n\t"),
            ] {
                let error = parse::<Object<Outer>>("chart", json.as_bytes())
                    .unwrap_err()
                    .reason;
                let expected = format!("at {place} (line ");
                assert!(error.starts_with(&expected), "{error}\n{json}");
                assert!(error.contains(message), "{error}\n{json}");
            }
        }
    }

    #[test]
    fn every_kind_of_error_has_its_place() {
        check(
            r#"
{"list":[{"seat":"a"},{"seat":5}]} | chart.list[1].seat | integer `5`, expected a string
{"list":[{"seat":{}}]} | chart.list[0].seat | map, expected a string
{"list":[{"seat":null}]} | chart.list[0].seat | null, expected a string
{"list":[{"seat":"a"},{}]} | chart.list[1] | missing field `seat`
{"list":[["a",1]]} | chart.list[0] | sequence, expected an object
{"list":[{"seat":"a"},"b"]} | chart.list[1] | string "b", expected an object
{"list":{}} | chart.list | map, expected a sequence
{"list":[{"seat":"a","number":300}]} | chart.list[0].number | `300`
{"list":[{"seat":"a","colour":3}]} | chart.list[0].colour | unknown field
{"list":[{"seat":"a","seat":"b"}]} | chart.list[0].seat | duplicate field
{"list":[{"se\"at":"a"}]} | chart.list[0]["se\\\"at"] | unknown field
{"lists":[]} | chart.lists | unknown field `lists`, expected `list`
{} | chart | missing field `list`
[] | chart | sequence, expected an object
7 | chart | integer `7`, expected an object
"#,
        );
    }

    #[test]
    fn broken_json_has_its_place_too() {
        check(
            r#"
 | chart | EOF
{"list":[{"seat":"a"} {"seat":"b"}]} | chart.list[0] | expected `,` or `]`
{"list":[{"seat":x}]} | chart.list[0].seat | expected value
{"list":[{"seat":"a"} | chart.list[0] | EOF
{"list":[]} x | chart | trailing characters
"#,
        );
    }

    #[test]
    fn what_is_quoted_has_a_bound() {
        let long = "é".repeat(10_000);
        for json in [
            format!(r#"{{"{long}":1}}"#),
            "[".repeat(1_000),
            r#"{"a":"#.repeat(1_000),
        ] {
            let error = parse::<Object<Outer>>("chart", json.as_bytes()).unwrap_err();
            assert!(
                error.reason.chars().count() < 3 * QUOTE_CHARS_MAX,
                "{error}"
            );
        }
    }
}
