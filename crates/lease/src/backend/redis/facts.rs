//! What a server tells of itself, read into fields.

use redis::Value;

/// The fields of `INFO`.
pub(super) struct ServerFacts<'a>(&'a str);

impl<'a> ServerFacts<'a> {
    pub(super) fn of(info: &'a str) -> Self {
        Self(info)
    }

    pub(super) fn field(&self, name: &str) -> Option<&'a str> {
        let mut fields = self.0.lines().filter_map(|line| line.split_once(':'));
        fields.find_map(|(key, value)| (key == name).then(|| value.trim()))
    }

    fn number(&self, place: usize) -> u32 {
        // Valkey tells the Redis version that it is compatible with in the same field.
        let version = self.field("redis_version").unwrap_or_default();
        let part = version.split('.').nth(place);
        part.and_then(|part| part.parse().ok()).unwrap_or(0)
    }

    /// Major and minor.
    pub(super) fn version(&self) -> (u32, u32) {
        (self.number(0), self.number(1))
    }

    pub(super) fn patch(&self) -> u32 {
        self.number(2)
    }
}

/// The text of an answer, the parts of a list in lines.
pub(super) fn text(value: Value) -> Option<String> {
    if let Value::BulkString(bytes) = value {
        return String::from_utf8(bytes).ok();
    }
    if let Value::VerbatimString { text, .. } | Value::SimpleString(text) = value {
        return Some(text);
    }
    if let Value::Int(number) = value {
        return Some(number.to_string());
    }
    if let Value::Array(parts) = value {
        let parts: Option<Vec<String>> = parts.into_iter().map(text).collect();
        return Some(parts?.join("\n"));
    }
    None
}

/// Milliseconds since 1970-01-01 UTC of an answer to `TIME`: seconds, then their microseconds.
pub(super) fn time_ms(answer: &str) -> Option<i64> {
    let mut lines = answer.lines();
    let seconds: i64 = lines.next()?.parse().ok()?;
    let micros: i64 = lines.next()?.parse().ok()?;
    seconds.checked_mul(1_000)?.checked_add(micros / 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_and_versions_are_read() {
        let facts = ServerFacts::of("# Server\r\nredis_version:7.0.15\r\nrole:master\r\n");
        assert_eq!((facts.version(), facts.patch()), ((7, 0), 15));
        assert_eq!(facts.field("role"), Some("master"));
        assert_eq!(facts.field("rol"), None);
        assert_eq!(ServerFacts::of("").version(), (0, 0));
    }

    #[test]
    fn a_time_is_read_with_its_microseconds() {
        assert_eq!(time_ms("1770000000\n671999"), Some(1_770_000_000_671));
        assert_eq!(time_ms("1770000000\n104"), Some(1_770_000_000_000));
        assert_eq!(time_ms("1770000000"), None);
    }
}
